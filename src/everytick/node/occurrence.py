"""What a node keeps of an occurrence it owns, and of each attempt that is open on it."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from logging import Logger
from typing import Protocol

from everytick.domain.notes import Log, Progress
from everytick.domain.steps import Event, OccurrenceSnapshot, Step
from everytick.node.alarms import Alarm
from everytick.node.clock import NodeClock
from everytick.runners.base import Body
from everytick.runners.context import Context, TaskTransaction
from everytick.stores.base import Claim


class Attends(Protocol):
    """What the node does for one open attempt."""

    def logger(self, attempt: "OpenAttempt") -> Logger:
        """Return the logger of the attempt."""
        ...

    def begun(self, attempt: "OpenAttempt") -> None:
        """Time the attempt from now on."""
        ...

    def keep(self, attempt: "OpenAttempt", data: bytes) -> None:
        """Keep output of the attempt, from any thread."""
        ...

    def transaction(self, attempt: "OpenAttempt") -> AbstractAsyncContextManager[TaskTransaction]:
        """Begin the attempt's one transaction."""
        ...

    async def look_up_previous(self, attempt: "OpenAttempt") -> datetime | None:
        """Ask the store which occurrence of the job ended last."""
        ...


class CanBeTakenBack(Protocol):
    """A transaction in the hands of a task."""

    is_committing: bool

    async def take_back(self) -> None:
        """End it: what was not committed is rolled back."""
        ...


class OwnedOccurrence:
    """One occurrence that this node owns: the newest snapshot, what is open and what waits to be written.

    `is_begun` says that it takes a slot, `is_gone` that nothing more may be recorded about
    it here. `arrived_at` is what the monotonic clock showed when its claim came; `ahead` is how
    far the store's clock was set ahead when the snapshot last heard of it. While `deferred` is a
    list, a task's own transaction is open and events wait; `turn` is whose transaction it is.
    `written` is kept while a task waits for `steps` to be written. `parks` says that no
    wait for a retry is kept here.
    """

    __slots__ = (
        "ahead",
        "alarms",
        "arrived_at",
        "asked_at",
        "bodies",
        "called_off",
        "claim",
        "deferred",
        "is_begun",
        "is_gone",
        "is_queued",
        "open",
        "parks",
        "snapshot",
        "steps",
        "turn",
        "written",
    )

    open: "dict[int, OpenAttempt]"
    steps: tuple[Step, ...]
    called_off: set[tuple[str, int]] | None
    alarms: list[Alarm] | None
    snapshot: OccurrenceSnapshot
    deferred: list[Event] | None
    turn: asyncio.Lock | None
    written: asyncio.Event | None

    def __init__(self, claim: Claim, bodies: tuple[Body, ...], arrived_at: float, ahead: timedelta) -> None:
        self.claim, self.bodies, self.snapshot, self.arrived_at = claim, bodies, claim.snapshot, arrived_at
        self.asked_at = arrived_at
        # Made when they are needed: most occurrences need none, and each container is one more for the collector.
        self.open, self.steps = {}, ()
        self.alarms = self.called_off = self.deferred = self.turn = self.written = None
        self.is_begun = self.is_gone = self.is_queued = self.parks = False
        self.ahead = ahead

    def follow(self, clock: NodeClock) -> OccurrenceSnapshot:
        """Return the snapshot, whose deadline moves with a step ahead of the store's clock: no more time has passed."""
        if clock.ahead != self.ahead:
            self.snapshot = replace(self.snapshot, ahead=self.snapshot.ahead + clock.ahead - self.ahead)
            self.ahead = clock.ahead
        return self.snapshot


class OpenAttempt:
    """One open attempt; the services its context speaks to."""

    __slots__ = (
        "alarm",
        "attends",
        "body",
        "context",
        "has_transacted",
        "is_abandoned",
        "is_over",
        "is_settled",
        "lent",
        "log_place",
        "noted",
        "number",
        "occurrence",
        "place",
        "progress_made",
        "reason",
        "since",
        "until",
        "worker",
    )

    def __init__(
        self, attends: Attends, occurrence: OwnedOccurrence, place: int, number: int, until: datetime | None
    ) -> None:
        self.attends, self.occurrence, self.place, self.number, self.until = attends, occurrence, place, number, until
        self.body = occurrence.bodies[place]
        claim = occurrence.claim
        self.context = Context(claim.job, place, number, claim.record, occurrence.snapshot, claim.fence, self)
        self.alarm: Alarm | None = None
        self.lent: CanBeTakenBack | None = None
        self.worker: asyncio.Task[None] | None = None
        self.reason = ""
        self.since = 0.0
        self.is_abandoned = self.is_settled = self.is_over = self.has_transacted = False
        self.progress_made: Progress | None = None
        self.log_place: Log | None = None
        self.noted: tuple[Progress | None, Log | None] | None = None

    def part(self) -> None:
        """Let go of the context of an attempt that is over: each holds the other, and only the collector could tell.

        The task's code may keep it, and say something through it that goes nowhere. While a
        transaction is in its hands, both stay.
        """
        if self.lent is None:
            del self.context

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.occurrence.open.get(self.place) is self

    @property
    def task(self) -> str:
        """The task's name."""
        return self.occurrence.snapshot.rules.tasks[self.place].name

    def begun(self, context: Context) -> None:
        """Time this attempt from now on."""
        self.attends.begun(self)

    def log(self, context: Context) -> Logger:
        """Return the logger of this attempt."""
        return self.attends.logger(self)

    def output(self, context: Context, data: bytes) -> None:
        """Keep output of this attempt."""
        self.attends.keep(self, data)

    def progress(self, context: Context, progress: Progress) -> None:
        """Show people how far the attempt has come; they see it within a second or two."""
        self.progress_made = progress

    def transaction(self, context: Context) -> AbstractAsyncContextManager[TaskTransaction]:
        """Begin the attempt's one transaction."""
        return self.attends.transaction(self)

    async def look_up_previous(self, context: Context) -> datetime | None:
        """Ask the store which occurrence of the job ended last."""
        return await self.attends.look_up_previous(self)

    def wait_for_previous(self, context: Context) -> datetime | None:
        """Do the same from a thread, on the loop of the attempt's worker."""
        assert self.worker is not None, "an attempt that runs has a worker"
        asked = asyncio.run_coroutine_threadsafe(self.attends.look_up_previous(self), self.worker.get_loop())
        return asked.result()
