"""Slots: how many occurrences a node runs at once, which claimed ones wait for a slot, and how many more to claim.

A claim is the start that people, deadlines and takeovers count from, so a node claims only
what begins at once or within `AHEAD_SECONDS` at its present rate. That little is claimed
ahead because a node of 10 slots would otherwise ask the store once for every ten short
bodies (`bench/end_to_end_postgres.py`: without it a third of the rate).

An occurrence that only waits for an engine gives its slot up: nothing of it runs here. Of these there are at most
`engine_slots`; beyond that each keeps its slot, and the node claims less.

A call that may bring claims reserves slots for them until it is answered: a claim, and a commit
of plans that brings claims along.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from everytick.node.occurrence import OwnedOccurrence

AHEAD_SECONDS = 0.05
"""A claimed occurrence begins within this time, by the rate at which slots have been freed."""

WAIT_SECONDS = 0.25
"""The rate is an estimate: what still waits for a slot after this time is given back."""

MOST_AHEAD = 2_000
"""One answer of tens of thousands would keep the loop, and the store, for seconds."""

_AT_ONCE = 500
"""Largest number that one claim asks for on a node with fewer slots: its answer keeps the loop for 10 ms or so."""

_WINDOW_SECONDS = 0.02
"""The rate is measured no more often than this: over less time, one slot more or less would change it too much."""

_FORGOTTEN_SECONDS = 0.25
"""After a pause of this length the older rate says nothing any more, and only the newest measure counts."""

_AVERAGED_BODIES = 16
"""The length of a body is averaged over about this many: the mean follows a change of load within a few bodies."""


class Slots:
    """The slots of one engine: those that are taken, how fast they become free, and the backlog that waits for them."""

    def __init__(self, count: int, monotonic: Callable[[], float], engine_slots: int = 1_000) -> None:
        self.count, self.busy = count, 0
        self._engine_slots = engine_slots
        self.busy_engine_slots = 0
        """How many occurrences only wait for engines, and take an engine slot instead of a slot of this node."""
        self._monotonic = monotonic
        self._measured_at, self._freed, self._rate = monotonic(), 0, 0.0
        self._mean_seconds = self._mean_square = 0.0
        self._has_given_back = False
        self.backlog: deque[OwnedOccurrence] = deque()
        """The occurrences that were claimed and wait for a slot, first come first."""
        self.reserved: dict[int, int] = {}
        """How many slots are kept for each call under way that may bring claims, by its number."""
        self._is_answered = asyncio.Event()
        self._is_answered.set()
        self.next_call = 1
        """The number of the next call that may bring claims."""
        self.freed_at: datetime | None = None
        """The store's time at which something may begin, since a slot is free; None once the backlog was looked at."""
        self.low = 1
        """With fewer in the backlog than this, it is time to claim more."""

    @property
    def is_free(self) -> bool:
        """Whether an occurrence can begin now."""
        return self.busy < self.count

    def take(self) -> None:
        """Count an occurrence that begins."""
        self.busy += 1
        self._has_given_back = False

    def free(self, now: datetime) -> None:
        """Count an occurrence that needs its slot no more since `now`."""
        self.busy -= 1
        self._freed += 1
        self.freed_at = now

    def take_engine_slot(self) -> bool:
        """Count an occurrence that engines carry out, and that needs no slot here. False if no engine slot is free."""
        if self.busy_engine_slots >= self._engine_slots:
            return False
        self.keep_engine_slot()
        return True

    def keep_engine_slot(self) -> None:
        """Count an occurrence that engines carry out already for an earlier owner, whether an engine slot is free."""
        self.busy_engine_slots += 1

    def free_engine_slot(self) -> None:
        """Count an occurrence that waits no longer for engines alone."""
        self.busy_engine_slots -= 1

    def ran(self, seconds: float) -> None:
        """Learn how long an attempt has taken."""
        self._mean_seconds += (seconds - self._mean_seconds) / _AVERAGED_BODIES
        self._mean_square += (seconds * seconds - self._mean_square) / _AVERAGED_BODIES

    def give_back(self) -> None:
        """Note that a claim had to be given back: nothing is claimed ahead until something has begun."""
        self._has_given_back = True

    @property
    def pace(self) -> float:
        """The length of a body in seconds, weighted by length. A plain mean follows heartbeats that end at once."""
        return self._mean_square / self._mean_seconds if self._mean_seconds else 0.0

    # ------------------------------------------------------------------------------------------- how many to claim now

    def free_now(self) -> int:
        """Return how many slots are free, without those that something waits for or that are reserved."""
        return self.count - self.busy - len(self.backlog) - sum(self.reserved.values())

    def wanted(self) -> int:
        """Return how many to claim now: for the free slots, and for those that are free within `AHEAD_SECONDS`."""
        ahead = self.ahead()
        # Asked for while half of it is left: a node that runs dry first waits for the answer.
        self.low = max(1, ahead // 2)
        room = self.free_now() + ahead
        # Few at a time only where nothing is left to begin.
        least = max(1, ahead // 4) if self.backlog else 1
        return min(room, max(_AT_ONCE, self.count), MOST_AHEAD) if room >= least else 0

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
        passed = now - self._measured_at
        if passed < _WINDOW_SECONDS:
            return
        rate = self._freed / passed
        self._rate = rate if passed > _FORGOTTEN_SECONDS else (self._rate + rate) / 2
        self._measured_at, self._freed = now, 0

    # --------------------------------------------------------------------------------------------------- reservations

    @contextmanager
    def reserve(self, count: int) -> Iterator[None]:
        """Keep this many slots for the claims that a call to the store may bring, until it is answered."""
        call, self.next_call = self.next_call, self.next_call + 1
        self.reserved[call] = count
        self._is_answered.clear()
        try:
            yield
        finally:
            del self.reserved[call]
            if not self.reserved:
                self._is_answered.set()

    @property
    def oldest_call(self) -> int:
        """The number of the oldest call that is under way; of the next one if there is none."""
        return next(iter(self.reserved), self.next_call)

    async def answered(self) -> None:
        """Return once no call is under way that may bring claims."""
        await self._is_answered.wait()

    # ---------------------------------------------------------------------------------------------------- the backlog

    @property
    def waiting(self) -> int:
        """How many occurrences were claimed and wait for a slot."""
        return len(self.backlog)

    def add(self, occurrence: OwnedOccurrence) -> None:
        """Let the occurrence wait for a slot, behind those that wait."""
        self.backlog.append(occurrence)

    def look_again(self, now: datetime) -> None:
        """Have the engine look at the backlog after the event that it handles now."""
        self.freed_at = now

    def looked(self) -> None:
        """Note that the backlog was looked at since a slot became free."""
        self.freed_at = None

    def next(self) -> OwnedOccurrence | None:
        """Take the first occurrence out of the backlog; None if nothing waits or no slot is free."""
        return self.backlog.popleft() if self.backlog and self.busy < self.count else None

    def remove(self, occurrence: OwnedOccurrence) -> None:
        """Take the occurrence out of the backlog, if it is there."""
        if occurrence in self.backlog:
            self.backlog.remove(occurrence)

    def take_backlog(self) -> list[OwnedOccurrence]:
        """Empty the backlog and return its occurrences."""
        waiting = list(self.backlog)
        self.backlog.clear()
        return waiting

    def seconds_left(self) -> float | None:
        """Return in how many seconds the first of the backlog has waited too long; None if nothing waits."""
        return self.backlog[0].arrived_at + WAIT_SECONDS - self._monotonic() if self.backlog else None

    def take_overdue(self) -> OwnedOccurrence | None:
        """Take the first out of the backlog if it waited too long and no slot is free: another node may have one."""
        left = self.seconds_left()
        if left is None or left > 0 or self.is_free:
            return None
        self.give_back()
        return self.backlog.popleft()
