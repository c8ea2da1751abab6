"""The store's clock on this host: it follows the host forward and never goes back.

It starts with the wall clock and goes on with one that no one can set, so that a host
whose clock is set back does not repeat an hour of instants. What another process has
already committed in the file is not undercut either.
"""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Lock

from everytick.stores.sqlite.rows import micros

_log = logging.getLogger(__name__)
_NOTICED = timedelta(seconds=1)


def _elapsed() -> float:
    """Seconds on a clock that nobody sets, and that counts a suspended host where the system has one."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class HostClock:
    """The wall clock at opening plus what has elapsed; a step forward is followed, a step back is not."""

    def __init__(
        self,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        elapsed: Callable[[], float] = _elapsed,
    ) -> None:
        self._wall, self._elapsed = wall, elapsed
        self._begun, self._mark = wall(), elapsed()
        self._is_behind = False

    def __call__(self) -> datetime:
        """Return the time; warn once when the host's clock was set back."""
        wall, counted = self._wall(), self._begun + timedelta(seconds=self._elapsed() - self._mark)
        if wall > counted:
            self._begun, self._mark = wall, self._elapsed()
            counted = wall
        behind = counted - wall > _NOTICED
        if behind and not self._is_behind:
            _log.warning("the host's clock was set back by %s: ignored until this process restarts", counted - wall)
        self._is_behind = behind
        return counted


class StoreClock:
    """Gives microseconds that never run backwards, neither here nor below what the file already holds."""

    def __init__(self, source: Callable[[], datetime]) -> None:
        self._source = source
        self._latest = micros(datetime.min.replace(tzinfo=UTC))
        self._lock = Lock()

    def now(self) -> int:
        """Return the store's time; its source is asked by one thread at a time."""
        with self._lock:
            self._latest = max(self._latest, micros(self._source()))
            return self._latest

    def raised_to(self, least: int) -> int:
        """Let the time be at least this, and return the latest time given so far."""
        with self._lock:
            self._latest = max(self._latest, least)
            return self._latest
