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
from everytick.node.claimer import Claimer
from everytick.node.clock import NodeClock
from everytick.node.events import Events, events_of, start_of
from everytick.node.health import Health
from everytick.node.held import CanBeTakenBack, Held, Running
from everytick.node.logs import Logs
from everytick.node.reporter import Reporter
from everytick.node.scope import Scope
from everytick.node.settings import NodeSettings
from everytick.node.slots import AHEAD_SECONDS, WAIT_SECONDS, Slots
from everytick.node.transactions import transaction
from everytick.node.watch import Watch
from everytick.node.workers import Workers
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
        self._held: dict[int, Held] = {}
        self._backlog: deque[Held] = deque()
        self._lingering: dict[int, Held] = {}  # no longer ours, and a body of it has not ended
        self._behind: dict[int, Held] = {}  # claimed anew: begins when what lingers under its handle has ended
        self._unwritable: set[ClaimKey] = set()
        self.unwritable: Callable[[Claim], None] | None = None
        self._is_backlog_timed = False
        self._stop: Stopping | None = None
        self._asides: set[asyncio.Task[None]] = set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._workers = Workers(self._attempt_ended, clock.monotonic, self.slots.ran)
        self._watch = Watch(store, clock, alarms, health, self._time_out)
        self.writer = writing(store, health, self._committed)
        if store.is_in_memory:
            # An end is not safer there for being written at once, and others wait to start.
            self.writer.give_way(lambda: self._workers.has_ready and self.slots.pace < AHEAD_SECONDS)
        self.claimer = Claimer(store, scope, settings, health, self, clock.monotonic)

    # ----------------------------------------------------------------------------------------------- what it holds

    @property
    def named(self) -> set[ClaimKey]:
        """What this node holds, for its beat; may be asked from another thread."""
        return self._unwritable | {held.claim.key for held in list(self._held.values())}

    @property
    def busy(self) -> int:
        """How many slots are taken."""
        return self.slots.busy

    @property
    def stuck(self) -> int:
        """How many workers have not ended; once closed, those whose attempt does not stop."""
        return self._workers.stuck

    @property
    def waiting(self) -> int:
        """How many were claimed and wait for a slot."""
        return len(self._backlog)

    @property
    def is_calm(self) -> bool:
        """Whether nothing waits to be started or written."""
        return not self._backlog and not self._workers.has_ready and not self.writer.waiting

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
        running = self._workers.latest
        return "" if running is None else running.held.claim.job.name

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
            held = self._held[claim.key.handle] = Held(claim, bodies or (), arrived_at, self._clock.ahead)
            held.asked_at = arrived_at if asked_at is None else asked_at
            if bodies is None or self._stop is not None or self._is_stale(held):
                self.feed(held, _RELEASED)
            elif claim.key.handle in self._lingering:
                self._behind[claim.key.handle] = held
            else:
                self._backlog.append(held)
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

    def _makes_way(self, known: Held, claim: Claim) -> bool:
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
            held = self._backlog.popleft()
            if held.is_gone:
                continue
            if self._is_stale(held):
                self.feed(held, _RELEASED)
            else:
                self._begin(held, now)

    def _is_stale(self, held: Held) -> bool:
        """Whether the claim was asked for so long ago that another node may have taken it over; tell of it."""
        passed = self._clock.monotonic() - held.asked_at
        if passed <= self._silence:
            return False
        _log.warning(
            "occurrence %s was asked for %.0f seconds ago and has not begun here: it is given back, since another node "
            "may have taken it over",
            held.claim.snapshot.id,
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

    def _begin(self, held: Held, now: datetime) -> None:
        self.slots.take()
        held.is_begun = True
        if self._reporter.greets(held.claim):
            self._reporter.started(held.claim, partial(self.feed, held, _CLAIMED))
        else:
            self.feed(held, _CLAIMED, now)
        timeout = held.snapshot.rules.execution_timeout
        if timeout is not None and not held.is_gone and held.snapshot.deadline is not None:
            self._remind(held, held.snapshot.deadline, DeadlinePassed())

    # --------------------------------------------------------------------------------------------------- one life

    def feed(self, held: Held, event: Event, now: datetime | None = None) -> None:
        """Let the event have its effect: decide, start what may start, write what must be written."""
        if held.is_gone:
            return
        if held.deferred is not None:
            held.deferred.append(event)
            return
        now = now or self._clock.now()
        step = advance(held.follow(self._clock), event, now)
        if step.after is not held.snapshot or step.commits:
            self._follow(held, step, now)

    def _follow(self, held: Held, step: Step, now: datetime) -> None:
        self._heed(held, step, now)
        if step.rows or step.end is not None or step.resume_at is not None or step.release:
            self.writer.put(held, step)
        else:
            for start in step.starts:
                self._start(held, start)
        if step.waits:
            self._park(held)

    def _heed(self, held: Held, step: Step, now: datetime) -> None:
        """Do what needs no commit: remember, tell open attempts to stop, wait, free the slot."""
        held.snapshot = step.after
        for cancel in step.cancels:
            place = step.after.rules.places[cancel.task]
            running = held.open.get(place)
            if running is not None and running.number == cancel.number:
                self._halt(running, _why(step, cancel), cancel.reason)
            else:
                held.called_off = {*(held.called_off or ()), (cancel.task, cancel.number)}
        for wait in step.waits:
            self._remind(held, wait.until, WaitOver(wait.task))
        if step.end is not None or step.resume_at is not None or step.release:
            self._free(held, now)

    def _remind(self, held: Held, until: datetime, event: Event) -> None:
        """Feed the event at that moment: counted on the monotonic clock, unless the store's clock is set back."""
        self._wind(held, self._clock.seconds_until(until), partial(self._rang, held, until, event))

    def _wind(self, held: Held, seconds: float, call: Callable[[], None]) -> None:
        alarm = self._alarms.after(seconds, call)
        # Without those that have rung: there may be very many retries.
        held.alarms = [*(each for each in held.alarms or () if each.call is not None), alarm]

    def _rang(self, held: Held, until: datetime, event: Event) -> None:
        if left := self._clock.seconds_until(until):
            # The store's clock was set back. It may be set right again at any time.
            self._wind(held, min(left, _LOOK_AGAIN), partial(self._rang, held, until, event))
            return
        if held.deferred is not None and isinstance(event, DeadlinePassed):
            # The event waits for the end of a task's transaction, which must not go on for ever.
            self._halt_all(held, Halt.TIMEOUT, EXECUTION_TIMEOUT)
        self.feed(held, event)

    def _free(self, held: Held, now: datetime) -> None:
        if held.alarms is not None:
            for alarm in held.alarms:
                self._alarms.turn_off(alarm)
            held.alarms = None
        if held.is_begun:
            held.is_begun = False
            self.slots.free()
            self._fill(now)
            self.claimer.slot_is_free()

    def _start(self, held: Held, start: Start) -> None:
        if held.called_off is not None and (start.task, start.number) in held.called_off:
            self.feed(held, AttemptEnded(start.task, start.number, Canceled("canceled")))
            return
        place = held.snapshot.rules.places[start.task]
        running = held.open[place] = Running(self, held, place, start.number, start.deadline)
        self._watch.begun(running)
        if self._events.wanted:
            self._events.tell(start_of(held.claim, start.task, start.number, self._clock.now()))
        if running.body.wants_previous:
            self._reporter.with_previous(running, partial(self._workers.put, running))
        else:
            self._workers.put(running)

    def _attempt_ended(self, running: Running, outcome: Outcome, reading: float) -> None:
        held = running.held
        if held.open.get(running.place) is running:
            del held.open[running.place]
        self._logs.close(running)
        self._watch.ended(running)
        if held.is_gone and not held.open:
            self._linger_no_more(held)
        if running.is_settled:
            return
        self.feed(held, AttemptEnded(running.task, running.number, outcome), self._clock.at(reading))

    def _committed(self, held: Held, step: Step, commit: Commit | None) -> None:
        self.claimer.has_written()
        if held.written is not None and not held.steps:
            held.written.set()
            held.written = None
        if commit is None:
            # The beat goes on naming it, or it would be handed to this node again, until somebody has settled it.
            self._unwritable.add(held.claim.key)
            self._let_go(held)
            self._forget(held)
            if self.unwritable is not None:
                self.unwritable(held.claim)
        elif commit is Commit.STALE:
            self._lose(held)
        else:
            self.has_committed(held, step)

    def has_committed(self, held: Held, step: Step) -> None:
        """Go on from a step that the store has: start what it starts, tell of an end."""
        for start in step.starts:
            self._start(held, start)
        if self._events.wanted:
            for event in events_of(held.claim, step, self._clock.now()):
                self._events.tell(event)
        if step.end is not None or step.resume_at is not None or step.release:
            self._forget(held)
            if step.end is not None:
                self._reporter.ended(held.claim, step.end)

    def _forget(self, held: Held) -> None:
        held.is_gone = True
        if self._held.get(held.claim.handle) is held:
            del self._held[held.claim.handle]
        if self._behind.get(held.claim.handle) is held:
            del self._behind[held.claim.handle]
        self._catalogue.forget(held.claim.snapshot.id)
        self._look_if_empty()

    def _look_if_empty(self) -> None:
        if not self._held and not self._lingering:
            self._empty.set()

    def _let_go(self, held: Held) -> None:
        held.is_gone = True
        if held.open:
            self._lingering[held.claim.handle] = held
        self._free(held, self._clock.now())
        self._halt_all(held, Halt.CANCEL, "no longer this node's")

    def _linger_no_more(self, held: Held) -> None:
        """Begin what was claimed anew while a body of the older claim had not ended (S2-007)."""
        handle = held.claim.handle
        if self._lingering.get(handle) is not held:
            return
        del self._lingering[handle]
        behind = self._behind.pop(handle, None)
        if behind is not None:
            self._backlog.append(behind)
            self._fill(self._clock.now())
        self._look_if_empty()

    def _lose(self, held: Held) -> None:
        """Another node has it now: stop what runs, record nothing."""
        if held.is_gone:
            return
        _log.warning("occurrence %s is no longer this node's: it is stopped here", held.claim.snapshot.id)
        self._let_go(held)
        self._forget(held)

    # ---------------------------------------------------------------------------------------- stopping an attempt

    def _halt(self, running: Running, why: Halt, reason: str) -> None:
        if running.context.halt is not None:
            return
        self._workers.halt(running, why, reason)
        grace = self.grace.total_seconds()
        if running.alarm is not None:
            self._alarms.turn_off(running.alarm)
        # The body itself may need the whole grace period to end what it began.
        running.alarm = self._alarms.after(grace + 1.0, partial(self._abandon, running))

    def _halt_all(self, held: Held, why: Halt, reason: str) -> None:
        for running in list(held.open.values()):
            self._halt(running, why, reason)

    def _abandon(self, running: Running) -> None:
        if not running.is_open:
            return
        if running.lent is not None and not running.lent.is_committing:
            aside = asyncio.get_running_loop().create_task(self._take_back(running, running.lent))
            self._asides.add(aside)
            aside.add_done_callback(self._asides.discard)
        self._workers.abandon(running)

    async def _take_back(self, running: Running, lent: CanBeTakenBack) -> None:
        """End the transaction of an attempt that was left behind, and let the events that waited for it come.

        Its turn goes with it: a retry must not wait for whoever does not end.
        """
        held = running.held
        deferred, held.deferred, held.turn = held.deferred or [], None, None
        try:
            await lent.take_back()
        except Exception:  # noqa: BLE001, its connection may be gone
            _log.exception("the transaction of task '%s' could not be taken back", running.task)
        for event in deferred:
            self.feed(held, event)

    def _time_out(self, running: Running) -> None:
        if running.is_open:
            self._halt(running, Halt.TIMEOUT, "")

    # --------------------------------------------------------------------------------------- orders from the beat

    def obey(self, orders: Orders) -> None:
        """Do what the store said to a beat: cancel, let go, take what was not known to be held."""
        for key, reason in orders.cancel:
            held = self._held_by(key)
            if held is not None:
                self._cancel(held, reason)
        for key in orders.gone:
            self._unwritable.discard(key)
            held = self._held_by(key)
            # What is being written may be why the store no longer counts it as held: its commit will tell.
            if held is not None and not held.steps and held.deferred is None:
                self._lose(held)
        told = {key.handle for key in orders.parks if self._held_by(key) is not None}
        for handle, held in list(self._held.items()):
            held.parks = handle in told
            self._park(held)
        self.claimer.adopt(orders.adopt)
        if self._backlog:
            self._fill(self._clock.now())

    def _park(self, held: Held) -> None:
        """Give a wait for a retry up that nobody may keep: its job is out of service."""
        if held.parks and held.snapshot.status is OccurrenceStatus.AWAITING_RETRY and held.snapshot.held:
            self.feed(held, Stopping(drain=True))

    def _held_by(self, key: ClaimKey) -> Held | None:
        """Return what is held by this very claim: the occurrence may have been claimed anew since."""
        held = self._held.get(key.handle)
        return held if held is not None and held.claim.key == key else None

    def _cancel(self, held: Held, reason: str) -> None:
        if held in self._backlog:
            self._backlog.remove(held)
        self._behind.pop(held.claim.handle, None)
        if held.deferred is not None:
            self._halt_all(held, Halt.CANCEL, reason)
        self.feed(held, CancelRequested(reason))

    # ------------------------------------------------------------------------------------------------------ stopping

    def stop(self, *, drain: bool = False) -> None:
        """Claim nothing more; give back what has not begun, and tell the rest to stop unless it may finish."""
        self._stop = Stopping(drain)
        self.claimer.stop()
        self._backlog.extend(self._behind.values())
        self._behind.clear()
        while self._backlog:
            self.feed(self._backlog.popleft(), _RELEASED)
        for held in list(self._held.values()):
            if held.deferred is not None and not drain:
                self._halt_all(held, Halt.SHUTDOWN, SHUTDOWN)
            self.feed(held, self._stop)

    async def close(self) -> None:
        """End what is left of this executor; whatever did not end is left to another node's reaper."""
        self._workers.close()
        await self._workers.closed()
        for held in list(self._held.values()):
            held.is_gone = True
        await self._watch.close()

    # --------------------------------------------------------------------------------- what a running attempt asks for

    def begun(self, running: Running) -> None:
        """Time the attempt from now on."""
        self._watch.timed(running)

    def logger(self, running: Running) -> Logger:
        """Return the logger of the attempt."""
        return self._logs.logger(running)

    def keep(self, running: Running, data: bytes) -> None:
        """Keep output of the attempt, from any thread."""
        self._logs.write(running, data)

    def transaction(self, running: Running) -> AbstractAsyncContextManager[TaskTransaction]:
        """Begin the attempt's one transaction."""
        return transaction(self, self._store, self._clock, running)

    async def look_up_previous(self, running: Running) -> datetime | None:
        """Ask the store which occurrence of the job ended last."""
        return await self._reporter.previous_of(running.held.claim.job)

    async def written(self, held: Held) -> None:
        """Return when everything that was decided about the occurrence is in the store."""
        if held.steps:
            # An event of its own: whoever waits may be canceled, and the writer must not notice.
            held.written = held.written or asyncio.Event()
            await held.written.wait()

    def settle(self, held: Held, step: Step) -> None:
        """Go on from a step that was committed in a task's transaction."""
        self._heed(held, step, self._clock.now())
        self.has_committed(held, step)


def _why(step: Step, cancel: Cancel) -> Halt:
    """Return why an attempt is to stop: a deadline binds every kind of body as its own timeout does."""
    if cancel.reason == EXECUTION_TIMEOUT:
        return Halt.TIMEOUT
    return Halt.CANCEL if step.after.stop is None else Halt.SHUTDOWN
