"""The store's clock, as a node knows it between two answers of the store."""

from collections.abc import Callable
from datetime import datetime, timedelta
from time import monotonic as host_monotonic


class NodeClock:
    """The newest time the store told, plus what has passed since; it never runs backwards.

    The store told it before its answer arrived, so this clock is behind the store's by the
    way of the answer and never ahead of it: nothing starts early.
    """

    __slots__ = ("_known", "_latest", "_read_at", "monotonic")

    def __init__(self, monotonic: Callable[[], float] = host_monotonic) -> None:
        self.monotonic = monotonic
        self._known: datetime | None = None
        self._latest: datetime | None = None
        self._read_at = 0.0

    @property
    def is_set(self) -> bool:
        """Whether the store has told the time."""
        return self._known is not None

    def learn(self, told: datetime) -> None:
        """Take the time from the store's answer, which has just arrived; one that tells of the past is no news."""
        if self._known is None or told >= self._known:
            self._known, self._read_at = told, self.monotonic()

    def now(self) -> datetime:
        """Return the store's time."""
        return self.at(self.monotonic())

    def at(self, reading: float) -> datetime:
        """Return what the store's time was, or is, when the monotonic clock showed this."""
        assert self._known is not None, "the store has not told the time yet"
        now = self._known + timedelta(seconds=reading - self._read_at)
        if self._latest is None or now > self._latest:
            self._latest = now
        return self._latest

    def seconds_until(self, moment: datetime) -> float:
        """Return how far away the moment is, at least zero."""
        return max(0.0, (moment - self.now()).total_seconds())
