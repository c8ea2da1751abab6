"""The offset: how far this host's clock is from the store's, measured all the time and told when it matters."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_log = logging.getLogger("everytick.node")

BOUND = timedelta(seconds=1)
"""A clock further off than this is worth a word: nothing depends on it, but logs and tasks read it."""


def host_time() -> datetime:
    """Return what the host's clock shows."""
    return datetime.now(UTC)


class Offset:
    """Compares clocks; a warning when the bound is passed, a word when it is kept again."""

    def __init__(self, host: Callable[[], datetime] = host_time) -> None:
        self._host = host
        self._is_off = False
        self.newest = timedelta(0)

    def compare(self, store: datetime) -> None:
        """Take the store's time, which has just arrived."""
        self.newest = self._host() - store
        is_off = abs(self.newest) > BOUND
        if is_off and not self._is_off:
            seconds = self.newest.total_seconds()
            _log.warning(
                "this host's clock is %.1f seconds %s the store's, which decides what is due; set it with NTP",
                abs(seconds),
                "ahead of" if seconds > 0 else "behind",
            )
        elif self._is_off and not is_off:
            _log.warning("this host's clock agrees with the store's again")
        self._is_off = is_off
