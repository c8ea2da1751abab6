"""The store's clock, as a node knows it between two answers of the store, and this host's offset from it."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import monotonic as host_monotonic

_log = logging.getLogger("everytick.node")

BOUND = timedelta(seconds=1)
"""A larger offset of this host's clock is logged. No decision depends on that clock, but logs and tasks read it."""

_STEP = timedelta(seconds=1)
"""A smaller difference is not a step of the store's clock: two clocks drift apart by milliseconds."""


class NodeClock:
    """The store's last answer plus the time since. It follows a store whose clock is set, in either direction.

    The store read its clock between the question and the arrival of the answer. That bounds
    what it showed when this process's monotonic clock showed zero: `_least` and `_most`. Times
    are counted from the lower bound, so this clock is behind the store's by the way of an
    answer and never ahead of it: nothing starts early. An answer that lies outside of what is
    known says that the store's clock was set. One that was long on its way lies inside.
    """

    __slots__ = ("_least", "_most", "ahead", "monotonic", "stepped")

    def __init__(self, monotonic: Callable[[], float] = host_monotonic) -> None:
        self.monotonic = monotonic
        self._least: datetime | None = None
        self._most: datetime | None = None
        self.ahead = timedelta(0)
        """How far the store's clock was set ahead in all since this clock knows it."""
        self.stepped: tuple[float, float] | None = None
        """When that was noticed last, on the monotonic clock, and by how many seconds it was set ahead."""

    @property
    def is_set(self) -> bool:
        """Whether the store has told the time."""
        return self._least is not None

    def learn(self, told: datetime, asked_at: float | None = None) -> None:
        """Take the time from the store's answer, which has just arrived.

        `asked_at` is what the monotonic clock showed when the store was asked. Without it the
        time may be of any moment before now, so it cannot show that the store's clock went back.
        """
        arrived = self.monotonic()
        least = told - timedelta(seconds=arrived)
        most = None if asked_at is None else told - timedelta(seconds=asked_at)
        if self._least is None or (most is not None and most < self._least):
            self._least, self._most = least, most
        elif self._most is not None and least - self._most > _STEP:
            self.ahead += least - self._least
            self.stepped = arrived, (least - self._least).total_seconds()
            self._least, self._most = least, most
        else:
            self._least = max(self._least, least)
            self._most = most if self._most is None or most is None else max(self._least, min(self._most, most))

    def now(self) -> datetime:
        """Return the store's time."""
        return self.at(self.monotonic())

    def at(self, reading: float) -> datetime:
        """Return what the store's time was, or is, when the monotonic clock showed this."""
        assert self._least is not None, "the store has not told the time yet"
        return self._least + timedelta(seconds=reading)

    def seconds_until(self, moment: datetime) -> float:
        """Return how far away the moment is, at least zero."""
        return max(0.0, (moment - self.now()).total_seconds())


def host_time() -> datetime:
    """Return what the host's clock shows."""
    return datetime.now(UTC)


class Offset:
    """Compares this host's clock with the store's. Warns once it is off twice in a row, and says when it agrees again.

    Once is not enough: while a task blocks the event loop, the store's answer waits and looks old.
    """

    def __init__(self, host: Callable[[], datetime] = host_time) -> None:
        self._host = host
        self._is_off = self._was_off = False
        self.newest = timedelta(0)

    def compare(self, store: datetime) -> None:
        """Take the store's time, which has just arrived."""
        self.newest = self._host() - store
        was_off, self._was_off = self._was_off, abs(self.newest) > BOUND
        is_off = self._was_off and (was_off or self._is_off)
        if is_off and not self._is_off:
            seconds = self.newest.total_seconds()
            _log.warning(
                "this host's clock is %.1f seconds %s the store's, which decides what is due; set it with NTP",
                abs(seconds),
                "ahead of" if seconds > 0 else "behind",
            )
        elif self._is_off and not is_off:
            _log.warning("this host's clock agrees with the store's again; nothing has to be done")
        self._is_off = is_off
