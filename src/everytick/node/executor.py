"""The executor: claim → run → advance → commit, until every occurrence it owns has ended or is given back.

The claim is the durable start of an occurrence's first attempts. Every later step is
committed before anything it starts begins; only the end is written behind, and frees the
slot at once.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from logging import Logger
from typing import TypeAlias

from everytick.deciding.advance import advance
from everytick.domain.job import Job
from everytick.domain.outcome import Canceled, Outcome
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.steps import (
    AttemptEnded,
    Cancel,
    CancelRequested,
    Claimed,
    DeadlinePassed,
    Event,
    Released,
    Start,
    Step,
    Stopping,
    WaitOver,
)
from everytick.domain.texts import EXECUTION_TIMEOUT, NOT_DISPATCHED, SHUTDOWN
from everytick.node.alarms import Alarms
from everytick.node.attempts import Attempts
from everytick.node.claimer import Claimer
from everytick.node.clock import NodeClock
from everytick.node.events import Events, events_of, start_of
from everytick.node.health import Health
from everytick.node.logs import Logs
from everytick.node.occurrence import CanBeTakenBack, OpenAttempt, OwnedOccurrence
from everytick.node.reporter import Reporter
from everytick.node.scope import Scope
from everytick.node.settings import NodeSettings
from everytick.node.slots import AHEAD_SECONDS, WAIT_SECONDS, Slots
from everytick.node.timeouts import Timeouts
from everytick.node.transactions import transaction
from everytick.node.writer import Committed, Writer
from everytick.runners.base import Body, Repertoire
from everytick.runners.context import Halt, TaskTransaction
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Claim, ClaimKey, Commit, Orders

_log = logging.getLogger("everytick.executor")

Writing: TypeAlias = Callable[[AnyStore, Health, Committed], Writer]
"""Makes the writer of an executor."""

_CLAIMED, _RELEASED = Claimed(), Released()
_LOOK_AGAIN = 5.0


class Executor:
    """Runs what this node claims, in its slots."""

    def __init__(
        self,
        store: AnyStore,
        node: str,
        settings: NodeSettings,
        catalogue: Repertoire,
        clock: NodeClock,
        alarms: Alarms,
        events: Events,
        health: Health,
        reporter: Reporter,
        logs: Logs,
        scope: Scope,
        writing: Writing = Writer,
    ) -> None:
        self._scope = scope
        self._store, self._node, self._settings, self._catalogue = store, node, settings, catalogue
        self.slots, self._silence = Slots(settings.slots, clock.monotonic), settings.node_timeout.total_seconds()
        self._clock, self._alarms, self._events, self._health = clock, alarms, events, health
        self._reporter, self._logs = reporter, logs
        self.grace = settings.grace_period
        """How long what is told to stop may take; a stop may say otherwise for itself."""
        self._held: dict[int, OwnedOccurrence] = {}
        self._backlog: deque[OwnedOccurrence] = deque()
        self._lingering: dict[int, OwnedOccurrence] = {}  # no longer ours, and a body of it has not ended
        self._behind: dict[
            int, OwnedOccurrence
        ] = {}  # claimed anew: begins when what lingers under its handle has ended
        self._unwritable: set[ClaimKey] = set()
        self.unwritable: Callable[[Claim], None] | None = None
        self._is_backlog_timed = False
        self._stop: Stopping | None = None
        self._asides: set[asyncio.Task[None]] = set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._attempts = Attempts(self._attempt_ended, clock.monotonic, self.slots.ran)
        self._timeouts = Timeouts(store, clock, alarms, health, self._time_out)
        self.writer = writing(store, health, self._committed)
        if store.is_in_memory:
            # An end is not safer there for being written at once, and others wait to start.
            self.writer.give_way(lambda: self._attempts.has_ready and self.slots.pace < AHEAD_SECONDS)
        self.claimer = Claimer(store, scope, settings, health, self, clock.monotonic)

    # ----------------------------------------------------------------------------------------------- what it holds

    @property
    def named(self) -> set[ClaimKey]:
        """What this node holds, for its beat; may be asked from another thread."""
        return self._unwritable | {occurrence.claim.key for occurrence in list(self._held.values())}

    @property
    def busy(self) -> int:
        """How many slots are taken."""
        return self.slots.busy

    @property
    def stuck(self) -> int:
        """How many workers have not ended; once closed, those whose attempt does not stop."""
        return self._attempts.stuck

    @property
    def waiting(self) -> int:
        """How many were claimed and wait for a slot."""
        return len(self._backlog)

    @property
    def is_calm(self) -> bool:
        """Whether nothing waits to be started or written."""
        return not self._backlog and not self._attempts.has_ready and not self.writer.waiting

    @property
    def unwritten(self) -> int:
        """How many have something that is not written yet and should be."""
        return self.writer.urgent

    def why_not(self, job: Job) -> str | None:
        """Say why this node cannot run the job; None if it knows what its tasks do."""
        try:
            return None if self._catalogue.bodies(job) is not None else self._catalogue.why(job)
        except Exception as error:  # noqa: BLE001, whatever a module raises when it is imported
            return str(error)

    def holds(self, key: ClaimKey) -> bool:
        """Whether the node knows that it holds this."""
        return self._held_by(key) is not None or key in self._unwritable

    @property
    def latest(self) -> str:
        """The job whose attempt began last: if the loop stands still, it is the one to look at."""
        attempt = self._attempts.latest
        return "" if attempt is None else attempt.occurrence.claim.job.name

    async def emptied(self) -> None:
        """Return when this node holds nothing any more."""
        await self._empty.wait()

    # ------------------------------------------------------------------------------------------------------- slots

    def take(self, claims: Iterable[Claim], asked_at: float | None = None) -> None:
        """Begin these as soon as there is a slot; what cannot be run here is given back.

        `asked_at` is what the monotonic clock showed when they were asked for; None where they
        were claimed before that. What was asked for longer ago than `node_timeout` is given back
        too: this process stood still, and other nodes may have taken it over since.
        """
        learned, arrived_at = None, self._clock.monotonic()
        for claim in claims:
            known = self._held.get(claim.key.handle)
            if known is not None and not self._makes_way(known, claim):
                continue
            claimed_at = claim.snapshot.claimed_at
            if claimed_at is not None and claimed_at is not learned:
                learned = claimed_at
                self._clock.learn(claimed_at, asked_at)
            bodies = self._bodies(claim.job)
            if not self._held:
                self._empty.clear()
            occurrence = self._held[claim.key.handle] = OwnedOccurrence(
                claim, bodies or (), arrived_at, self._clock.ahead
            )
            occurrence.asked_at = arrived_at if asked_at is None else asked_at
            if bodies is None or self._stop is not None or self._is_stale(occurrence):
                self.feed(occurrence, _RELEASED)
            elif claim.key.handle in self._lingering:
                self._behind[claim.key.handle] = occurrence
            else:
                self._backlog.append(occurrence)
        if self._backlog:
            self._fill(self._clock.now())
            self._time_backlog()

    def _time_backlog(self) -> None:
        """Look at what waits for a slot once the first of it has waited for too long."""
        if self._backlog and not self._is_backlog_timed:
            self._is_backlog_timed = True
            seconds = self._backlog[0].arrived_at + WAIT_SECONDS - self._clock.monotonic()
            self._alarms.after(max(seconds, WAIT_SECONDS / 5), self._give_back_what_waits)

    def _give_back_what_waits(self) -> None:
        """Give back what has waited for a slot for too long: another node may have one, and it is not running."""
        self._is_backlog_timed = False
        self._fill(self._clock.now())
        too_long = self._clock.monotonic() - WAIT_SECONDS
        while self._backlog and not self.slots.is_free and self._backlog[0].arrived_at <= too_long:
            self.slots.give_back()
            self.claimer.gave_back()
            self.feed(self._backlog.popleft(), _RELEASED)
        self._time_backlog()

    def _makes_way(self, known: OwnedOccurrence, claim: Claim) -> bool:
        """Let go of an older claim of the same handle, and tell whether the new one is to be taken.

        The fence says which is newer. Of two with the same fence and other tokens, the store was restored from an
        older copy and has given the handle to another occurrence.
        """
        if known.claim.fence > claim.fence or known.claim.key == claim.key:
            return False
        self._lose(known)
        return True

    def _fill(self, now: datetime) -> None:
        """Begin what waits while there are slots; what was taken from this node meanwhile needs none.

        A node that nobody has heard of for too long begins nothing: others may have what it
        holds. The next beat tells what is still its own.
        """
        while self._backlog and self.slots.is_free and self._health.silent_for <= self._silence:
            occurrence = self._backlog.popleft()
            if occurrence.is_gone:
                continue
            if self._is_stale(occurrence):
                self.feed(occurrence, _RELEASED)
            else:
                self._begin(occurrence, now)

    def _is_stale(self, occurrence: OwnedOccurrence) -> bool:
        """Whether the claim was asked for so long ago that another node may have taken it over; tell of it."""
        passed = self._clock.monotonic() - occurrence.asked_at
        if passed <= self._silence:
            return False
        _log.warning(
            "occurrence %s was asked for %.0f seconds ago and has not begun here: it is given back, since another node "
            "may have taken it over",
            occurrence.claim.snapshot.id,
            passed,
        )
        return True

    def _bodies(self, job: Job) -> tuple[Body, ...] | None:
        """Return what the job's tasks do; None, told to the claimer, where that cannot be found out here."""
        try:
            bodies = self._catalogue.bodies(job)
            if bodies is None:
                self._scope.cannot_run(job, self._catalogue.why(job))
        except Exception as error:  # noqa: BLE001, one that cannot be made must not take the others with it
            text = "%s: what job '%s' calls cannot be made ready: its occurrence is left to other nodes"
            _log.exception(text, NOT_DISPATCHED, job.name, extra={"component": "executor", "job": job.name})
            self._scope.cannot_run(job, str(error))
            return None
        return bodies

    def _begin(self, occurrence: OwnedOccurrence, now: datetime) -> None:
        self.slots.take()
        occurrence.is_begun = True
        if self._reporter.greets(occurrence.claim):
            self._reporter.started(occurrence.claim, partial(self.feed, occurrence, _CLAIMED))
        else:
            self.feed(occurrence, _CLAIMED, now)
        timeout = occurrence.snapshot.rules.execution_timeout
        if timeout is not None and not occurrence.is_gone and occurrence.snapshot.deadline is not None:
            self._remind(occurrence, occurrence.snapshot.deadline, DeadlinePassed())

    # --------------------------------------------------------------------------------------------------- one life

    def feed(self, occurrence: OwnedOccurrence, event: Event, now: datetime | None = None) -> None:
        """Let the event have its effect: decide, start what may start, write what must be written."""
        if occurrence.is_gone:
            return
        if occurrence.deferred is not None:
            occurrence.deferred.append(event)
            return
        now = now or self._clock.now()
        step = advance(occurrence.follow(self._clock), event, now)
        if step.after is not occurrence.snapshot or step.commits:
            self._follow(occurrence, step, now)

    def _follow(self, occurrence: OwnedOccurrence, step: Step, now: datetime) -> None:
        self._heed(occurrence, step, now)
        if step.rows or step.end is not None or step.resume_at is not None or step.release:
            self.writer.put(occurrence, step)
        else:
            for start in step.starts:
                self._start(occurrence, start)
        if step.waits:
            self._park(occurrence)

    def _heed(self, occurrence: OwnedOccurrence, step: Step, now: datetime) -> None:
        """Do what needs no commit: remember, tell open attempts to stop, wait, free the slot."""
        occurrence.snapshot = step.after
        for cancel in step.cancels:
            place = step.after.rules.places[cancel.task]
            attempt = occurrence.open.get(place)
            if attempt is not None and attempt.number == cancel.number:
                self._halt(attempt, _why(step, cancel), cancel.reason)
            else:
                occurrence.called_off = {*(occurrence.called_off or ()), (cancel.task, cancel.number)}
        for wait in step.waits:
            self._remind(occurrence, wait.until, WaitOver(wait.task))
        if step.end is not None or step.resume_at is not None or step.release:
            self._free(occurrence, now)

    def _remind(self, occurrence: OwnedOccurrence, until: datetime, event: Event) -> None:
        """Feed the event at that moment: counted on the monotonic clock, unless the store's clock is set back."""
        self._wind(occurrence, self._clock.seconds_until(until), partial(self._rang, occurrence, until, event))

    def _wind(self, occurrence: OwnedOccurrence, seconds: float, call: Callable[[], None]) -> None:
        alarm = self._alarms.after(seconds, call)
        # Without those that have rung: there may be very many retries.
        occurrence.alarms = [*(each for each in occurrence.alarms or () if each.call is not None), alarm]

    def _rang(self, occurrence: OwnedOccurrence, until: datetime, event: Event) -> None:
        if left := self._clock.seconds_until(until):
            # The store's clock was set back. It may be set right again at any time.
            self._wind(occurrence, min(left, _LOOK_AGAIN), partial(self._rang, occurrence, until, event))
            return
        if occurrence.deferred is not None and isinstance(event, DeadlinePassed):
            # The event waits for the end of a task's transaction, which must not go on for ever.
            self._halt_all(occurrence, Halt.TIMEOUT, EXECUTION_TIMEOUT)
        self.feed(occurrence, event)

    def _free(self, occurrence: OwnedOccurrence, now: datetime) -> None:
        if occurrence.alarms is not None:
            for alarm in occurrence.alarms:
                self._alarms.turn_off(alarm)
            occurrence.alarms = None
        if occurrence.is_begun:
            occurrence.is_begun = False
            self.slots.free()
            self._fill(now)
            self.claimer.slot_is_free()

    def _start(self, occurrence: OwnedOccurrence, start: Start) -> None:
        if occurrence.called_off is not None and (start.task, start.number) in occurrence.called_off:
            self.feed(occurrence, AttemptEnded(start.task, start.number, Canceled("canceled")))
            return
        place = occurrence.snapshot.rules.places[start.task]
        attempt = occurrence.open[place] = OpenAttempt(self, occurrence, place, start.number, start.deadline)
        self._timeouts.begun(attempt)
        if self._events.wanted:
            self._events.tell(start_of(occurrence.claim, start.task, start.number, self._clock.now()))
        if attempt.body.wants_previous:
            self._reporter.with_previous(attempt, partial(self._attempts.put, attempt))
        else:
            self._attempts.put(attempt)

    def _attempt_ended(self, attempt: OpenAttempt, outcome: Outcome, reading: float) -> None:
        occurrence = attempt.occurrence
        if occurrence.open.get(attempt.place) is attempt:
            del occurrence.open[attempt.place]
        self._logs.close(attempt)
        self._timeouts.ended(attempt)
        if occurrence.is_gone and not occurrence.open:
            self._linger_no_more(occurrence)
        if attempt.is_settled:
            return
        self.feed(occurrence, AttemptEnded(attempt.task, attempt.number, outcome), self._clock.at(reading))

    def _committed(self, occurrence: OwnedOccurrence, step: Step, commit: Commit | None) -> None:
        self.claimer.has_written()
        if occurrence.written is not None and not occurrence.steps:
            occurrence.written.set()
            occurrence.written = None
        if commit is None:
            # The beat goes on naming it, or it would be handed to this node again, until somebody has settled it.
            self._unwritable.add(occurrence.claim.key)
            self._let_go(occurrence)
            self._forget(occurrence)
            if self.unwritable is not None:
                self.unwritable(occurrence.claim)
        elif commit is Commit.STALE:
            self._lose(occurrence)
        else:
            self.has_committed(occurrence, step)

    def has_committed(self, occurrence: OwnedOccurrence, step: Step) -> None:
        """Go on from a step that the store has: start what it starts, tell of an end."""
        for start in step.starts:
            self._start(occurrence, start)
        if self._events.wanted:
            for event in events_of(occurrence.claim, step, self._clock.now()):
                self._events.tell(event)
        if step.end is not None or step.resume_at is not None or step.release:
            self._forget(occurrence)
            if step.end is not None:
                self._reporter.ended(occurrence.claim, step.end)

    def _forget(self, occurrence: OwnedOccurrence) -> None:
        occurrence.is_gone = True
        if self._held.get(occurrence.claim.handle) is occurrence:
            del self._held[occurrence.claim.handle]
        if self._behind.get(occurrence.claim.handle) is occurrence:
            del self._behind[occurrence.claim.handle]
        self._catalogue.forget(occurrence.claim.snapshot.id)
        self._look_if_empty()

    def _look_if_empty(self) -> None:
        if not self._held and not self._lingering:
            self._empty.set()

    def _let_go(self, occurrence: OwnedOccurrence) -> None:
        occurrence.is_gone = True
        if occurrence.open:
            self._lingering[occurrence.claim.handle] = occurrence
        self._free(occurrence, self._clock.now())
        self._halt_all(occurrence, Halt.CANCEL, "no longer this node's")

    def _linger_no_more(self, occurrence: OwnedOccurrence) -> None:
        """Begin what was claimed anew while a body of the older claim had not ended (S2-007)."""
        handle = occurrence.claim.handle
        if self._lingering.get(handle) is not occurrence:
            return
        del self._lingering[handle]
        behind = self._behind.pop(handle, None)
        if behind is not None:
            self._backlog.append(behind)
            self._fill(self._clock.now())
        self._look_if_empty()

    def _lose(self, occurrence: OwnedOccurrence) -> None:
        """Another node has it now: stop what runs, record nothing."""
        if occurrence.is_gone:
            return
        _log.warning("occurrence %s is no longer this node's: it is stopped here", occurrence.claim.snapshot.id)
        self._let_go(occurrence)
        self._forget(occurrence)

    # ---------------------------------------------------------------------------------------- stopping an attempt

    def _halt(self, attempt: OpenAttempt, why: Halt, reason: str) -> None:
        if attempt.context.halt is not None:
            return
        self._attempts.halt(attempt, why, reason)
        grace = self.grace.total_seconds()
        if attempt.alarm is not None:
            self._alarms.turn_off(attempt.alarm)
        # The body itself may need the whole grace period to end what it began.
        attempt.alarm = self._alarms.after(grace + 1.0, partial(self._abandon, attempt))

    def _halt_all(self, occurrence: OwnedOccurrence, why: Halt, reason: str) -> None:
        for attempt in list(occurrence.open.values()):
            self._halt(attempt, why, reason)

    def _abandon(self, attempt: OpenAttempt) -> None:
        if not attempt.is_open:
            return
        if attempt.lent is not None and not attempt.lent.is_committing:
            aside = asyncio.get_running_loop().create_task(self._take_back(attempt, attempt.lent))
            self._asides.add(aside)
            aside.add_done_callback(self._asides.discard)
        self._attempts.abandon(attempt)

    async def _take_back(self, attempt: OpenAttempt, lent: CanBeTakenBack) -> None:
        """End the transaction of an attempt that was left behind, and let the events that waited for it come.

        Its turn goes with it: a retry must not wait for whoever does not end.
        """
        occurrence = attempt.occurrence
        deferred, occurrence.deferred, occurrence.turn = occurrence.deferred or [], None, None
        try:
            await lent.take_back()
        except Exception:  # noqa: BLE001, its connection may be gone
            _log.exception("the transaction of task '%s' could not be taken back", attempt.task)
        for event in deferred:
            self.feed(occurrence, event)

    def _time_out(self, attempt: OpenAttempt) -> None:
        if attempt.is_open:
            self._halt(attempt, Halt.TIMEOUT, "")

    # --------------------------------------------------------------------------------------- orders from the beat

    def obey(self, orders: Orders) -> None:
        """Do what the store said to a beat: cancel, let go, take what was not known to be held."""
        for key, reason in orders.cancel:
            occurrence = self._held_by(key)
            if occurrence is not None:
                self._cancel(occurrence, reason)
        for key in orders.gone:
            self._unwritable.discard(key)
            occurrence = self._held_by(key)
            # What is being written may be why the store no longer counts it as held: its commit will tell.
            if occurrence is not None and not occurrence.steps and occurrence.deferred is None:
                self._lose(occurrence)
        told = {key.handle for key in orders.parks if self._held_by(key) is not None}
        for handle, occurrence in list(self._held.items()):
            occurrence.parks = handle in told
            self._park(occurrence)
        self.claimer.adopt(orders.adopt)
        if self._backlog:
            self._fill(self._clock.now())

    def _park(self, occurrence: OwnedOccurrence) -> None:
        """Give a wait for a retry up that nobody may keep: its job is out of service."""
        if (
            occurrence.parks
            and occurrence.snapshot.status is OccurrenceStatus.AWAITING_RETRY
            and occurrence.snapshot.held
        ):
            self.feed(occurrence, Stopping(drain=True))

    def _held_by(self, key: ClaimKey) -> OwnedOccurrence | None:
        """Return what is held by this very claim: the occurrence may have been claimed anew since."""
        occurrence = self._held.get(key.handle)
        return occurrence if occurrence is not None and occurrence.claim.key == key else None

    def _cancel(self, occurrence: OwnedOccurrence, reason: str) -> None:
        if occurrence in self._backlog:
            self._backlog.remove(occurrence)
        self._behind.pop(occurrence.claim.handle, None)
        if occurrence.deferred is not None:
            self._halt_all(occurrence, Halt.CANCEL, reason)
        self.feed(occurrence, CancelRequested(reason))

    # ------------------------------------------------------------------------------------------------------ stopping

    def stop(self, *, drain: bool = False) -> None:
        """Claim nothing more; give back what has not begun, and tell the rest to stop unless it may finish."""
        self._stop = Stopping(drain)
        self.claimer.stop()
        self._backlog.extend(self._behind.values())
        self._behind.clear()
        while self._backlog:
            self.feed(self._backlog.popleft(), _RELEASED)
        for occurrence in list(self._held.values()):
            if occurrence.deferred is not None and not drain:
                self._halt_all(occurrence, Halt.SHUTDOWN, SHUTDOWN)
            self.feed(occurrence, self._stop)

    async def close(self) -> None:
        """End what is left of this executor; whatever did not end is left to another node's reaper."""
        self._attempts.close()
        await self._attempts.closed()
        for occurrence in list(self._held.values()):
            occurrence.is_gone = True
        await self._timeouts.close()

    # --------------------------------------------------------------------------------- what a running attempt asks for

    def begun(self, attempt: OpenAttempt) -> None:
        """Time the attempt from now on."""
        self._timeouts.timed(attempt)

    def logger(self, attempt: OpenAttempt) -> Logger:
        """Return the logger of the attempt."""
        return self._logs.logger(attempt)

    def keep(self, attempt: OpenAttempt, data: bytes) -> None:
        """Keep output of the attempt, from any thread."""
        self._logs.write(attempt, data)

    def transaction(self, attempt: OpenAttempt) -> AbstractAsyncContextManager[TaskTransaction]:
        """Begin the attempt's one transaction."""
        return transaction(self, self._store, self._clock, attempt)

    async def look_up_previous(self, attempt: OpenAttempt) -> datetime | None:
        """Ask the store which occurrence of the job ended last."""
        return await self._reporter.previous_of(attempt.occurrence.claim.job)

    async def written(self, occurrence: OwnedOccurrence) -> None:
        """Return when everything that was decided about the occurrence is in the store."""
        if occurrence.steps:
            # An event of its own: whoever waits may be canceled, and the writer must not notice.
            occurrence.written = occurrence.written or asyncio.Event()
            await occurrence.written.wait()

    def settle(self, occurrence: OwnedOccurrence, step: Step) -> None:
        """Go on from a step that was committed in a task's transaction."""
        self._heed(occurrence, step, self._clock.now())
        self.has_committed(occurrence, step)


def _why(step: Step, cancel: Cancel) -> Halt:
    """Return why an attempt is to stop: a deadline binds every kind of body as its own timeout does."""
    if cancel.reason == EXECUTION_TIMEOUT:
        return Halt.TIMEOUT
    return Halt.CANCEL if step.after.stop is None else Halt.SHUTDOWN
