"""The clock of stores that live on this host, in memory or in a file: the wall clock, smoothed by the monotonic clock.

A step forward is followed at once: it is an outage of that length. A step back is followed as
soon as it has lasted for some seconds, so that every process of the host follows it within ten.
What was decided meanwhile stays decided (C-45).
"""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_log = logging.getLogger(__name__)

_STEP = timedelta(seconds=1)
"""A wall clock that is behind by less is slewed to: time stands still until it has caught up."""

_LASTS_SECONDS = 5.0
"""How long a step back must last until it is followed: shorter ones come from hosts that resume, and pass."""


def _elapsed() -> float:
    """Seconds on a clock that cannot be set, and that counts while the host is suspended if the system has one."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class HostClock:
    """The wall clock at opening plus what has elapsed; steps of the wall clock are followed, back ones after a while.

    It only sees a step when it is asked. A node asks at least every `poll`.
    """

    def __init__(
        self,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        elapsed: Callable[[], float] = _elapsed,
    ) -> None:
        self._wall, self._elapsed = wall, elapsed
        self._begun, self._mark = wall(), elapsed()
        self._latest = self._begun
        self._behind_since: float | None = None

    def __call__(self) -> datetime:
        """Return the time; say so when it follows the wall clock back."""
        wall, elapsed = self._wall(), self._elapsed()
        counted = self._begun + timedelta(seconds=elapsed - self._mark)
        if wall >= counted - _STEP:
            self._begun, self._mark, self._behind_since = wall, elapsed, None
            # Never back by less than a step.
            self._latest = max(wall, self._latest)
            return self._latest
        if self._behind_since is None:
            self._behind_since = elapsed
        if elapsed - self._behind_since < _LASTS_SECONDS:
            self._latest = max(counted, self._latest)
            return self._latest
        _log.warning(
            "this host's clock was set back by %.0f s: the store's time follows it; what was decided stays decided",
            (counted - wall).total_seconds(),
        )
        self._begun, self._mark, self._behind_since, self._latest = wall, elapsed, None, wall
        return wall
