"""What this node owns: its occurrences, each attempt that is open on one, and the keys that the beat names."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from logging import Logger
from typing import TYPE_CHECKING, Protocol

from everytick.deciding.advance import advance
from everytick.domain.notes import Log, Progress
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.steps import LifeEvent, OccurrenceLife, Step
from everytick.domain.values import value
from everytick.node.clock import NodeClock
from everytick.runners.base import Body
from everytick.runners.context import Context, TaskTransaction
from everytick.stores.base import Claim, ClaimKey

if TYPE_CHECKING:
    from everytick.node.alarms import Alarm
    from everytick.node.hand_overs import HandOvers
    from everytick.node.logs import Logs
    from everytick.node.reporter import Reporter
    from everytick.node.timeouts import Timeouts
    from everytick.node.transactions import Transactions
    from everytick.runners.engines import EngineBody


class OwnedOccurrence:
    """One occurrence that this node owns: its life as of the last step, its open attempts, the steps to be written."""

    __slots__ = (
        "ahead",
        "alarms",
        "arrived_at",
        "asked_at",
        "awaits_writes",
        "bodies",
        "called_off",
        "claim",
        "deferred",
        "handed",
        "has_engine_slot",
        "is_begun",
        "is_gone",
        "is_queued",
        "life",
        "open",
        "parks",
        "steps",
        "transaction_lock",
    )

    life: OccurrenceLife
    """Its life after the last step that was decided, written or not."""
    open: "dict[int, OpenAttempt]"
    """The open attempts, by the place of their task."""
    steps: tuple[Step, ...]
    """The steps that wait to be written, in order."""
    is_queued: bool
    """Whether it is in the queue of the writer."""
    awaits_writes: asyncio.Event | None
    """Set once all steps are written; None if no task waits for that."""
    arrived_at: float
    """When its claim came, on the monotonic clock."""
    asked_at: float
    """When the question was sent that brought its claim, on the monotonic clock."""
    ahead: timedelta
    """How far the store's clock had been set ahead when `life` last heard of it."""
    is_begun: bool
    """Whether it takes a slot."""
    has_engine_slot: bool
    """Whether it takes an engine slot instead: engines carry out all its open attempts."""
    is_gone: bool
    """Whether nothing more may be recorded about it here."""
    parks: bool
    """Whether no wait for a retry is kept here, because its job is out of service."""
    called_off: set[tuple[str, int]] | None
    """Attempts that were canceled before they began, by task and number."""
    alarms: "list[Alarm] | None"
    """Its alarms: of its deadline and of retries."""
    deferred: list[LifeEvent] | None
    """The events that wait for the end of a task's own transaction; None while no such transaction is open."""
    transaction_lock: asyncio.Lock | None
    """Held by the task whose own transaction is open: one at a time."""
    handed: "dict[tuple[str, int], tuple[EngineBody, str]] | None"
    """Body and id of each attempt that was handed over to an engine and whose end is not written."""

    def __init__(
        self, claim: Claim, bodies: tuple[Body, ...], arrived_at: float, asked_at: float, ahead: timedelta
    ) -> None:
        self.claim, self.bodies, self.life = claim, bodies, claim.life
        self.arrived_at, self.asked_at, self.ahead = arrived_at, asked_at, ahead
        # Made only when needed: most occurrences need none, and the garbage collector walks each container.
        self.open, self.steps = {}, ()
        self.alarms = self.called_off = self.deferred = self.transaction_lock = self.awaits_writes = self.handed = None
        self.is_begun = self.is_gone = self.is_queued = self.parks = self.has_engine_slot = False

    def __repr__(self) -> str:
        return f"<occurrence {self.claim.header.id}>"

    def follow(self, clock: NodeClock) -> OccurrenceLife:
        """Return the life. Its deadline moves with a step ahead of the store's clock: no more time has passed."""
        if clock.ahead != self.ahead:
            self.life = replace(self.life, ahead=self.life.ahead + clock.ahead - self.ahead)
            self.ahead = clock.ahead
        return self.life

    def feed(self, event: LifeEvent, clock: NodeClock, now: datetime) -> Step | None:
        """Decide the step that follows from the event, and keep it. None if nothing follows, or not yet."""
        if self.is_gone:
            return None
        if self.deferred is not None:
            self.deferred.append(event)
            return None
        before = self.life if clock.ahead == self.ahead else self.follow(clock)
        step = advance(self.claim.header, before, event, now)
        if step.after is before and not step.commits:
            return None
        self.life = step.after
        return step

    def call_off(self, task: str, number: int) -> None:
        """Note that this attempt must not begin."""
        self.called_off = {*(self.called_off or ()), (task, number)}

    @property
    def is_at_engines(self) -> bool:
        """Whether every open attempt was handed over to an engine, and every step is in the store."""
        return bool(self.open) and not self.steps and all(attempt.is_handed for attempt in self.open.values())

    @property
    def waits_out_of_service(self) -> bool:
        """Whether it waits for a retry although no wait may be kept: its job is out of service."""
        return self.parks and self.life.status is OccurrenceStatus.AWAITING_RETRY and self.life.is_owned

    async def written(self) -> None:
        """Return when every step that was decided is in the store."""
        if self.steps:
            # An event of its own: a task that waits may be canceled, and the writer must not notice.
            self.awaits_writes = self.awaits_writes or asyncio.Event()
            await self.awaits_writes.wait()

    def has_written(self) -> None:
        """Let a task go on that waits until every step is in the store."""
        if self.awaits_writes is not None and not self.steps:
            self.awaits_writes.set()
            self.awaits_writes = None


class CanBeTakenBack(Protocol):
    """A transaction in the hands of a task, or one that waits until the occurrence's other tasks are through theirs."""

    has_turn: bool

    def take(self) -> bool:
        """Take it from its task, which cannot commit it then. False if its commit is under way."""
        ...

    async def end(self) -> None:
        """End it: uncommitted rows are rolled back."""
        ...


@value
class AttemptServices:
    """The parts of an engine that a task may ask through its context."""

    logs: "Logs"
    timeouts: "Timeouts"
    transactions: "Transactions"
    reporter: "Reporter"
    hand_overs: "HandOvers"


class OpenAttempt:
    """One open attempt; its context speaks to the node through it.

    `since` is the monotonic time at which it began; `until` is its deadline by the store's clock. `noted` is what the
    store has been told of its progress and its log. `is_settled` says that its success was committed in its own
    transaction, `is_over` that its log is closed, and `is_abandoned` that the node waits for it no longer.
    """

    __slots__ = (
        "_services",
        "alarm",
        "body",
        "context",
        "handed_to",
        "has_transacted",
        "is_abandoned",
        "is_handed",
        "is_over",
        "is_settled",
        "log_place",
        "noted",
        "number",
        "occurrence",
        "open_transaction",
        "place",
        "progress_made",
        "reason",
        "since",
        "task",
        "until",
        "worker",
    )

    def __init__(
        self, services: AttemptServices, occurrence: OwnedOccurrence, place: int, number: int, until: datetime | None
    ) -> None:
        self._services, self.occurrence, self.place, self.number, self.until = (
            services,
            occurrence,
            place,
            number,
            until,
        )
        self.body = occurrence.bodies[place]
        claim, header = occurrence.claim, occurrence.claim.header
        self.task = header.rules.tasks[place].name
        self.context = Context(claim.job, place, number, claim.record, header, occurrence.life, claim.key.fence, self)
        # Most claims name none: they were not taken over from another node.
        self.handed_to = _engine_of(claim, self.task, number) if claim.handed else None
        self.is_handed = self.handed_to is not None
        self.alarm: Alarm | None = None
        self.open_transaction: CanBeTakenBack | None = None
        self.worker: asyncio.Task[None] | None = None
        self.reason = ""
        self.since = 0.0
        self.is_abandoned = self.is_settled = self.is_over = self.has_transacted = False
        self.progress_made: Progress | None = None
        self.log_place: Log | None = None
        self.noted: tuple[Progress | None, Log | None] | None = None

    def __repr__(self) -> str:
        return f"<attempt {self.number} of task {self.task!r} of {self.occurrence!r}>"

    def break_cycle(self) -> None:
        """Break the reference cycle between attempt and context, so that both are freed at once.

        The task's code may keep the context; what it says through it then goes nowhere. While a
        transaction is in the task's hands, the cycle stays.
        """
        if self.open_transaction is None:
            del self.context

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.occurrence.open.get(self.place) is self

    # -------------------------------------------------------------------------------------- what the context asks for

    def begun(self, context: Context) -> None:
        """Count the attempt's timeout from now on."""
        self._services.timeouts.timed(self)

    def log(self, context: Context) -> Logger:
        """Return the logger of this attempt."""
        return self._services.logs.logger(self)

    def output(self, context: Context, data: bytes) -> None:
        """Keep output of this attempt; may be called from any thread."""
        self._services.logs.write(self, data)

    def progress(self, context: Context, progress: Progress) -> None:
        """Show people how far the attempt has come; they see it within a second or two."""
        self.progress_made = progress

    def transaction(self, context: Context) -> AbstractAsyncContextManager[TaskTransaction]:
        """Begin the attempt's one transaction."""
        return self._services.transactions.begin(self)

    def known_to(self, context: Context) -> str | None:
        """Return what was noted of the engine that carries the attempt out; None if none does."""
        return self.handed_to

    async def hand_over(self, context: Context, handed_to: str) -> None:
        """Note to which engine the attempt is about to be handed. Raises `Fenced` if another node has it now."""
        await self._services.hand_overs.note(self, handed_to)

    def handed(self, context: Context) -> None:
        """Note that an engine has the attempt: it outlives this node, and needs no slot here."""
        self._services.hand_overs.done(self)

    async def look_up_previous(self, context: Context) -> datetime | None:
        """Ask the store which occurrence of the job ended last."""
        return await self._services.reporter.previous_of(self.occurrence.claim.job)

    def wait_for_previous(self, context: Context) -> datetime | None:
        """Do the same from a thread, on the loop of the attempt's worker."""
        assert self.worker is not None, "an attempt that runs has a worker"
        previous = asyncio.run_coroutine_threadsafe(self.look_up_previous(context), self.worker.get_loop())
        return previous.result()


def _engine_of(claim: Claim, task: str, number: int) -> str | None:
    """Return what was noted of the engine that carries the attempt out for an earlier owner; None if none does."""
    return next((handed.handed_to for handed in claim.handed if handed[:2] == (task, number)), None)


class OwnedKeys:
    """The occurrences of one engine, and the keys that the node's beat has to name.

    `lingering` are no longer this node's, and a body of them has not ended (S2-007). One that is
    claimed anew meanwhile waits `behind` it. The engine writes on its loop, the beat reads in its
    thread.
    """

    def __init__(self) -> None:
        self._occurrences: dict[int, OwnedOccurrence] = {}
        self.lingering: dict[int, OwnedOccurrence] = {}
        self._behind: dict[int, OwnedOccurrence] = {}
        self._unwritable: set[ClaimKey] = set()
        self._handed_over: Mapping[int, ClaimKey] = {}
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._latest: OpenAttempt | None = None

    # --------------------------------------------------------------------------------------- asked by the beat's thread

    def named(self) -> set[ClaimKey]:
        """Return the keys that the beat names; may be called from another thread."""
        # Iterate over copies: the engine changes the originals in its own thread.
        named = {occurrence.claim.key for occurrence in list(self._occurrences.values())}
        named.update(list(self._unwritable), list(self._handed_over.values()))
        return named

    @property
    def latest_job(self) -> str:
        """The job whose attempt began last: if the loop stands still, it is the one to look at."""
        latest = self._latest
        return "" if latest is None else latest.occurrence.claim.job.name

    # ---------------------------------------------------------------------------------------------- asked by the engine

    def __iter__(self) -> Iterator[OwnedOccurrence]:
        return iter(list(self._occurrences.values()))

    def get(self, handle: int) -> OwnedOccurrence | None:
        """Return the occurrence of this handle, with any fence."""
        return self._occurrences.get(handle)

    def find(self, key: ClaimKey) -> OwnedOccurrence | None:
        """Return the occurrence that is owned by this very claim: it may have been claimed anew since."""
        occurrence = self._occurrences.get(key.handle)
        return occurrence if occurrence is not None and occurrence.claim.key == key else None

    def knows(self, key: ClaimKey) -> bool:
        """Whether the beat names this key."""
        return self.find(key) is not None or key in self._unwritable

    def add(self, occurrence: OwnedOccurrence) -> None:
        """Own the occurrence from now on."""
        if not self._occurrences:
            self._is_empty.clear()
        self._occurrences[occurrence.claim.key.handle] = occurrence

    def remove(self, occurrence: OwnedOccurrence) -> None:
        """Own the occurrence no more."""
        handle = occurrence.claim.key.handle
        if self._occurrences.get(handle) is occurrence:
            del self._occurrences[handle]
        if self._behind and self._behind.get(handle) is occurrence:
            del self._behind[handle]
        if not self._occurrences and not self.lingering:
            self._is_empty.set()

    def began(self, attempt: OpenAttempt) -> None:
        """Note that this attempt began last."""
        self._latest = attempt

    async def emptied(self) -> None:
        """Return when nothing is owned and no body lingers."""
        await self._is_empty.wait()

    # ------------------------------------------------------------------------------------------ one handle, two claims

    def linger(self, occurrence: OwnedOccurrence) -> None:
        """Remember that bodies of this occurrence, which is no longer this node's, have not ended."""
        if occurrence.open:
            self.lingering[occurrence.claim.key.handle] = occurrence

    def wait_behind(self, occurrence: OwnedOccurrence) -> None:
        """Let the occurrence begin once the body of its older claim has ended.

        It is not given back after 250 ms like one that waits for a slot: another node would begin it beside the older
        body (S2-007), and this node would only claim it again. It waits for the grace period at most: then the
        older body is left behind.
        """
        self._behind[occurrence.claim.key.handle] = occurrence

    def linger_no_more(self, occurrence: OwnedOccurrence) -> OwnedOccurrence | None:
        """Forget an occurrence whose last body has ended; return the newer claim that waited for that."""
        handle = occurrence.claim.key.handle
        if self.lingering.get(handle) is not occurrence:
            return None
        del self.lingering[handle]
        if not self._occurrences and not self.lingering:
            self._is_empty.set()
        return self._behind.pop(handle, None)

    def wait_no_more(self, handle: int) -> None:
        """Let the occurrence of this handle not wait for an older claim."""
        self._behind.pop(handle, None)

    def take_waiting(self) -> list[OwnedOccurrence]:
        """Return every occurrence that waits for an older claim, and let none wait any more."""
        waiting = list(self._behind.values())
        self._behind.clear()
        return waiting

    # ------------------------------------------------------------------------------------- keys that were given up

    def give_up(self, key: ClaimKey) -> None:
        """Name the key until the store says that it is gone: else the beat would hand the occurrence over again."""
        self._unwritable.add(key)

    def forget(self, key: ClaimKey) -> None:
        """Name no longer a key that was given up: it is settled."""
        self._unwritable.discard(key)

    def name_too(self, keys: Mapping[int, ClaimKey]) -> None:
        """Name the keys in this mapping too, as it is at each beat: another engine of this node runs them."""
        self._handed_over = keys
