"""Slots: how many occurrences a node runs at once, and how many it may claim before a slot is free for them.

A claim is the start that people, deadlines and takeovers count from, so a node claims only
what begins at once or within `AHEAD_SECONDS` at its present rate. That little is claimed
ahead because a node of 10 slots would otherwise ask the store once for every ten short
bodies (`bench/end_to_end_postgres.py`: without it a third of the rate).
"""

from collections.abc import Callable

AHEAD_SECONDS = 0.05
"""A claimed occurrence begins within this time, by the rate at which slots have been freed."""

WAIT_SECONDS = 0.25
"""The rate is an estimate: what still waits for a slot after this time is given back."""

MOST_AHEAD = 2_000
"""One answer of tens of thousands would keep the loop, and the store, for seconds."""

_WINDOW_SECONDS = 0.02
_FORGOTTEN_SECONDS = 0.25
_KEPT = 16


class Slots:
    """The slots of one node: those that are taken, and how fast they become free."""

    def __init__(self, count: int, monotonic: Callable[[], float]) -> None:
        self.count, self.busy = count, 0
        self._monotonic = monotonic
        self._since, self._freed, self._rate = monotonic(), 0, 0.0
        self._length = self._square = 0.0
        self._has_given_back = False

    @property
    def is_free(self) -> bool:
        """Whether an occurrence can begin now."""
        return self.busy < self.count

    def take(self) -> None:
        """Count an occurrence that begins."""
        self.busy += 1
        self._has_given_back = False

    def free(self) -> None:
        """Count an occurrence that needs its slot no more."""
        self.busy -= 1
        self._freed += 1

    def ran(self, seconds: float) -> None:
        """Learn how long an attempt has taken."""
        self._length += (seconds - self._length) / _KEPT
        self._square += (seconds * seconds - self._square) / _KEPT

    def give_back(self) -> None:
        """Note that a claim had to be given back: nothing is claimed ahead until something has begun."""
        self._has_given_back = True

    @property
    def pace(self) -> float:
        """How many seconds the body takes that keeps a slot, each weighted by how long it keeps it.

        A plain mean would be that of a heartbeat which ends at once, while long bodies keep all other slots.
        """
        return self._square / self._length if self._length else 0.0

    def ahead(self) -> int:
        """Return how many may be claimed beyond the free slots: those that begin within `AHEAD_SECONDS`."""
        self._measure()
        if self._has_given_back:
            return 0
        pace = self.pace
        rate = min(self._rate, self.count / pace) if pace else self._rate
        return min(int(AHEAD_SECONDS * rate), MOST_AHEAD)

    def _measure(self) -> None:
        """Take the slots freed since the last measure into the rate; after a pause only these count."""
        now = self._monotonic()
        passed = now - self._since
        if passed < _WINDOW_SECONDS:
            return
        rate = self._freed / passed
        self._rate = rate if passed > _FORGOTTEN_SECONDS else (self._rate + rate) / 2
        self._since, self._freed = now, 0
