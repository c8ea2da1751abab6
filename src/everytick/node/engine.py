"""The engine: claim → run → advance → commit, until every occurrence it owns has ended or is given back.

The claim is the durable start of an occurrence's first attempts. Every later step is
committed before anything it starts begins; only the end is written behind, and frees the
slot at once.

An engine makes its parts and gives each what it needs. The parts put what happened into the
engine's inbox; only the engine handles it.
"""

import logging
from collections import deque
from datetime import datetime, timedelta

from everytick.domain.outcome import Canceled
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
    deadline_of,
)
from everytick.domain.texts import EXECUTION_TIMEOUT, SHUTDOWN
from everytick.node.attempts import Attempts
from everytick.node.claimer import Claimer
from everytick.node.events import events_of, start_of
from everytick.node.inbox import (
    Arrived,
    AttemptOver,
    BacklogDue,
    EngineEvent,
    GraceOver,
    Greeted,
    Inbox,
    OrdersCame,
    Prepared,
    Reminded,
    StepWritten,
    StopAsked,
    TimeoutPassed,
    TimeoutsDue,
    TransactionOver,
    Unwritable,
)
from everytick.node.loops import Loops
from everytick.node.occurrence import AttemptServices, OpenAttempt, OwnedOccurrence
from everytick.node.owned_keys import OwnedKeys
from everytick.node.planner import Planner
from everytick.node.scope import Scope
from everytick.node.slots import WAIT_SECONDS, Slots
from everytick.node.timeouts import Timeouts
from everytick.node.tools import Tools
from everytick.node.transactions import Transactions
from everytick.node.waking import Waking
from everytick.node.writer import Writer
from everytick.runners.context import Halt
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Claim, ClaimKey, Commit
from everytick.stores.protocols import PlanStore

_log = logging.getLogger("everytick.executor")

_CLAIMED, _RELEASED = Claimed(), Released()
_LOOK_AGAIN_SECONDS = 5.0
"""How often a moment is looked at that has moved away because the store's clock was set back."""


class Engine:
    """Plans what is due in one store, and runs what it claims there in its slots.

    `plans` is where the planner asks and writes: the store, or a gate before it.
    """

    def __init__(self, store: AnyStore, plans: PlanStore, tools: Tools, scope: Scope, owned: OwnedKeys) -> None:
        settings, clock, alarms, health = tools.settings, tools.clock, tools.alarms, tools.health
        self._tools, self._scope, self._owned = tools, scope, owned
        self._clock, self._alarms, self._events, self._reporter = clock, alarms, tools.events, tools.reporter
        self._silence, self._grace = settings.node_timeout.total_seconds(), settings.grace_period
        self._stopping: Stopping | None = None
        self._is_backlog_timed = False
        self.inbox = inbox = Inbox(
            {
                Arrived: self._arrived,
                Greeted: self._greeted,
                Prepared: self._prepared,
                AttemptOver: self._attempt_over,
                TransactionOver: self._transaction_over,
                StepWritten: self._step_written,
                OrdersCame: self._ordered,
                StopAsked: self._stop_asked,
                Reminded: self._reminded,
                TimeoutPassed: self._timed_out,
                GraceOver: self._grace_over,
                BacklogDue: self._backlog_due,
                TimeoutsDue: self._timeouts_due,
            },
            self._failed,
        )
        self.slots, self._ready = Slots(settings.slots, clock.monotonic), deque[OpenAttempt]()
        self._attempts = Attempts(inbox, clock, alarms, self.slots, owned, self._ready)
        self._timeouts = Timeouts(store, clock, alarms, health, inbox)
        self._transactions = Transactions(store, clock, inbox)
        self._services = AttemptServices(tools.logs, self._timeouts, self._transactions, tools.reporter)
        self.writer = Writer(store, health, inbox)
        self.claimer = Claimer(store, scope, settings, health, self.slots, self.writer, inbox, clock.monotonic)
        self.planner = Planner(
            plans,
            clock,
            tools.events,
            scope=scope,
            claimer=self.claimer,
            reporter=tools.reporter,
            inbox=inbox,
            limit=settings.plan_limit,
        )
        self.waking = Waking(store, tools, scope, self.planner, self.claimer, self)

    def begin(self, loops: Loops) -> None:
        """Plan, claim, run and write from now on."""
        loops.begin("writer", self.writer.run)
        loops.begin("claims", self.claimer.run)
        loops.begin("planner", self.waking.plan)
        loops.begin("bell", self.waking.listen)

    # ---------------------------------------------------------------------------------------------- what others may ask

    @property
    def stuck(self) -> int:
        """How many workers have not ended; once closed, those whose attempt does not stop."""
        return self._attempts.stuck

    @property
    def waiting(self) -> int:
        """How many were claimed and wait for a slot."""
        return self.slots.waiting

    @property
    def is_calm(self) -> bool:
        """Whether nothing waits to be started or written."""
        return not self.slots.waiting and not self._ready and not self.writer.waiting

    @property
    def unwritten(self) -> int:
        """How many have something that is not written yet."""
        return self.writer.waiting

    @property
    def named(self) -> set[ClaimKey]:
        """The keys that the beat names."""
        return self._owned.named()

    async def emptied(self) -> None:
        """Return when this engine owns nothing any more, and no body of it lingers."""
        await self._owned.emptied()

    def stop(self, *, drain: bool = False, grace: timedelta | None = None) -> None:
        """Claim nothing more; give back what has not begun, and tell the rest to stop unless it may finish.

        `grace` takes the place of the setting from now on.
        """
        self._grace = self._grace if grace is None else grace
        self.inbox.put(StopAsked(Stopping(drain)))

    async def close(self) -> None:
        """End what is left of this engine; what did not end is left to another node's reaper."""
        self._attempts.close()
        await self._attempts.closed()
        for occurrence in self._owned:
            occurrence.is_gone = True
        await self._timeouts.close()

    # --------------------------------------------------------------------------------------------------- what arrives

    def _arrived(self, arrived: Arrived) -> None:
        """Begin what came as soon as there is a slot. What cannot run here is given back.

        Claims that were asked for longer ago than `node_timeout` are given back too: this process
        stood still, and other nodes may have taken them over since.
        """
        self.claimer.arrived(arrived.claims)
        learned, now = None, self._clock.monotonic()
        for claim in arrived.claims:
            claimed_at = claim.life.claimed_at
            if claimed_at is not None and claimed_at is not learned:
                learned = claimed_at
                self._clock.learn(claimed_at, arrived.asked_at)
            self._own(claim, now, now if arrived.asked_at is None else arrived.asked_at)
        if self.slots.waiting:
            self._fill(self._clock.now())
            self._time_backlog()

    def _own(self, claim: Claim, arrived_at: float, asked_at: float) -> None:
        known = self._owned.get(claim.handle)
        if known is not None and not self._makes_way(known, claim):
            return
        bodies = self._scope.bodies(claim.job)
        occurrence = OwnedOccurrence(claim, bodies or (), arrived_at, asked_at, self._clock.ahead)
        self._owned.add(occurrence)
        if bodies is None or self._stopping is not None or self._is_stale(occurrence):
            self._feed(occurrence, _RELEASED)
        elif self._owned.has_to_wait(claim):
            self._owned.wait_behind(occurrence)
        else:
            self.slots.wait(occurrence)

    def _makes_way(self, known: OwnedOccurrence, claim: Claim) -> bool:
        """Let go of an older claim of the same handle, and tell whether the new one is to be taken.

        The fence says which is newer. Of two with the same fence and other tokens, the store was restored from an
        older copy and has given the handle to another occurrence.
        """
        if known.claim.fence > claim.fence or known.claim.key == claim.key:
            return False
        self._lose(known)
        return True

    def _is_stale(self, occurrence: OwnedOccurrence) -> bool:
        """Whether the claim was asked for so long ago that another node may have taken it over; log it."""
        passed = self._clock.monotonic() - occurrence.asked_at
        if passed <= self._silence:
            return False
        _log.warning(
            "occurrence %s was asked for %.0f seconds ago and has not begun here: it is given back, since another node "
            "may have taken it over",
            occurrence.claim.header.id,
            passed,
        )
        return True

    # ------------------------------------------------------------------------------------------------------------ slots

    def _fill(self, now: datetime) -> None:
        """Begin what waits while there are slots; what was taken from this node meanwhile needs none.

        A node that was silent for too long begins nothing: others may have what it holds. The
        next beat tells what is still its own.
        """
        slots, health = self.slots, self._tools.health
        while slots.waiting and slots.is_free and health.silent_for <= self._silence:
            occurrence = slots.next()
            if occurrence.is_gone:
                continue
            if self._is_stale(occurrence):
                self._feed(occurrence, _RELEASED)
            else:
                self._begin(occurrence, now)

    def _time_backlog(self) -> None:
        """Look at the backlog again once its first occurrence has waited too long."""
        left = self.slots.seconds_left()
        if left is not None and not self._is_backlog_timed:
            self._is_backlog_timed = True
            self._alarms.after(max(left, WAIT_SECONDS / 5), self.inbox, BacklogDue())

    def _backlog_due(self, _: BacklogDue) -> None:
        """Give back what has waited for a slot for too long: another node may have one, and it is not running."""
        self._is_backlog_timed = False
        self._fill(self._clock.now())
        while (occurrence := self.slots.take_overdue()) is not None:
            self.claimer.gave_back()
            self._feed(occurrence, _RELEASED)
        self._time_backlog()

    def _begin(self, occurrence: OwnedOccurrence, now: datetime) -> None:
        self.slots.take()
        occurrence.is_begun = True
        if self._reporter.greets(occurrence.claim):
            self._reporter.started(occurrence.claim, self.inbox, Greeted(occurrence))
        else:
            self._feed(occurrence, _CLAIMED, now)
        header = occurrence.claim.header
        if header.rules.execution_timeout is not None and not occurrence.is_gone:
            until = deadline_of(header, occurrence.life)
            if until is not None:
                self._remind(occurrence, until, DeadlinePassed())

    def _greeted(self, greeted: Greeted) -> None:
        self._feed(greeted.occurrence, _CLAIMED)

    # --------------------------------------------------------------------------------------------------------- one life

    def _feed(self, occurrence: OwnedOccurrence, event: Event, now: datetime | None = None) -> None:
        """Let the event have its effect: decide, start what may start, write what must be written."""
        now = now or self._clock.now()
        step = occurrence.feed(event, self._clock, now)
        if step is None:
            return
        self._heed(occurrence, step, now)
        if step.rows or step.end is not None or step.resume_at is not None or step.release:
            self.writer.put(occurrence, step)
        else:
            for start in step.starts:
                self._start(occurrence, start)
        if step.waits:
            self._park(occurrence)

    def _heed(self, occurrence: OwnedOccurrence, step: Step, now: datetime) -> None:
        """Do what needs no commit: tell open attempts to stop, set alarms, free the slot."""
        for cancel in step.cancels:
            attempt = occurrence.open.get(occurrence.claim.header.rules.places[cancel.task])
            if attempt is not None and attempt.number == cancel.number:
                self._halt(attempt, _why(step, cancel), cancel.reason)
            else:
                occurrence.call_off(cancel.task, cancel.number)
        for wait in step.waits:
            self._remind(occurrence, wait.until, WaitOver(wait.task))
        if step.end is not None or step.resume_at is not None or step.release:
            self._free(occurrence, now)

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

    def _remind(self, occurrence: OwnedOccurrence, until: datetime, event: Event) -> None:
        """Feed the event at that moment: counted on the monotonic clock, unless the store's clock is set back."""
        self._wind(occurrence, self._clock.seconds_until(until), Reminded(occurrence, until, event))

    def _wind(self, occurrence: OwnedOccurrence, seconds: float, reminded: Reminded) -> None:
        alarm = self._alarms.after(seconds, self.inbox, reminded)
        # Without those that have rung: there may be very many retries.
        occurrence.alarms = [*(each for each in occurrence.alarms or () if each.event is not None), alarm]

    def _reminded(self, reminded: Reminded) -> None:
        occurrence, event = reminded.occurrence, reminded.event
        if left := self._clock.seconds_until(reminded.until):
            # The store's clock was set back. It may be set right again at any time.
            self._wind(occurrence, min(left, _LOOK_AGAIN_SECONDS), reminded)
            return
        if occurrence.deferred is not None and isinstance(event, DeadlinePassed):
            # The event waits for the end of a task's transaction, which must not go on for ever.
            self._halt_all(occurrence, Halt.TIMEOUT, EXECUTION_TIMEOUT)
        self._feed(occurrence, event)

    # --------------------------------------------------------------------------------------------------------- attempts

    def _start(self, occurrence: OwnedOccurrence, start: Start) -> None:
        if occurrence.is_gone:
            return
        if occurrence.is_called_off(start):
            self._feed(occurrence, AttemptEnded(start.task, start.number, Canceled("canceled")))
            return
        place = occurrence.claim.header.rules.places[start.task]
        attempt = OpenAttempt(self._services, occurrence, place, start.number, start.deadline)
        occurrence.open[place] = attempt
        self._timeouts.begun(attempt)
        if self._events.wanted:
            self._events.tell(start_of(occurrence.claim, start.task, start.number, self._clock.now()))
        if attempt.body.wants_previous:
            self._reporter.with_previous(attempt, self.inbox, Prepared(attempt))
        else:
            self._attempts.put(attempt)

    def _prepared(self, prepared: Prepared) -> None:
        self._attempts.put(prepared.attempt)

    def _attempt_over(self, over: AttemptOver) -> None:
        attempt = over.attempt
        occurrence = attempt.occurrence
        if occurrence.open.get(attempt.place) is attempt:
            del occurrence.open[attempt.place]
        self._tools.logs.close(attempt)
        self._timeouts.ended(attempt)
        if occurrence.is_gone and not occurrence.open:
            self._linger_no_more(occurrence)
        if not attempt.is_settled:
            ended = AttemptEnded(attempt.task, attempt.number, over.outcome)
            self._feed(occurrence, ended, self._clock.at(over.reading))

    def _transaction_over(self, over: TransactionOver) -> None:
        """Go on from a step that was committed in a task's transaction, and from the events that waited for it."""
        if over.step is not None:
            over.occurrence.life = over.step.after
            self._heed(over.occurrence, over.step, self._clock.now())
            self._has_committed(over.occurrence, over.step)
        for event in over.deferred:
            self._feed(over.occurrence, event)

    def _halt(self, attempt: OpenAttempt, why: Halt, reason: str) -> None:
        self._attempts.halt(attempt, why, reason, self._grace)

    def _halt_all(self, occurrence: OwnedOccurrence, why: Halt, reason: str) -> None:
        for attempt in list(occurrence.open.values()):
            self._halt(attempt, why, reason)

    def _timed_out(self, timed_out: TimeoutPassed) -> None:
        if timed_out.attempt.is_open:
            self._halt(timed_out.attempt, Halt.TIMEOUT, "")

    def _grace_over(self, over: GraceOver) -> None:
        if over.attempt.is_open:
            self._transactions.take_back(over.attempt)
            self._attempts.abandon(over.attempt)

    def _timeouts_due(self, _: TimeoutsDue) -> None:
        self._timeouts.round()

    # ------------------------------------------------------------------------------------------------- what is written

    def _step_written(self, written: StepWritten) -> None:
        occurrence, answer = written.occurrence, written.answer
        self.claimer.has_written()
        occurrence.has_written()
        if answer is None:
            self._give_up(occurrence)
        elif answer is Commit.STALE:
            self._lose(occurrence)
        else:
            self._has_committed(occurrence, written.step)

    def _has_committed(self, occurrence: OwnedOccurrence, step: Step) -> None:
        """Go on from a step that the store has: start what it starts, tell of an end."""
        for start in step.starts:
            self._start(occurrence, start)
        if self._events.wants(step):
            for event in events_of(occurrence.claim, step, self._clock.now()):
                self._events.tell(event)
        if step.end is not None or step.resume_at is not None or step.release:
            self._forget(occurrence)
            if step.end is not None:
                self._reporter.ended(occurrence.claim, step.end)

    # --------------------------------------------------------------------------------------------------- letting go

    def _forget(self, occurrence: OwnedOccurrence) -> None:
        occurrence.is_gone = True
        self._owned.remove(occurrence)
        self._tools.catalogue.forget(occurrence.claim.header.id)

    def _let_go(self, occurrence: OwnedOccurrence) -> None:
        occurrence.is_gone = True
        self._owned.linger(occurrence)
        self._free(occurrence, self._clock.now())
        self._halt_all(occurrence, Halt.CANCEL, "no longer this node's")
        self._forget(occurrence)

    def _lose(self, occurrence: OwnedOccurrence) -> None:
        """Another node has it now: stop what runs, record nothing."""
        if not occurrence.is_gone:
            _log.warning("occurrence %s is no longer this node's: it is stopped here", occurrence.claim.header.id)
            self._let_go(occurrence)

    def _give_up(self, occurrence: OwnedOccurrence) -> None:
        """Let the reaper settle an occurrence about which this node cannot write."""
        key = occurrence.claim.key
        self._owned.give_up(key)
        self._let_go(occurrence)
        self._tools.inbox.put(Unwritable(key, occurrence.claim.header.id))

    def _failed(self, event: EngineEvent) -> None:
        """Give up the occurrence that the event was about: it would stand still for ever."""
        attempt = getattr(event, "attempt", None)
        occurrence = getattr(event, "occurrence", None) if attempt is None else attempt.occurrence
        if occurrence is not None and not occurrence.is_gone:
            _log.error("occurrence %s is given up here: the reaper settles it as lost", occurrence.claim.header.id)
            self._give_up(occurrence)

    def _linger_no_more(self, occurrence: OwnedOccurrence) -> None:
        """Begin what was claimed anew while a body of the older claim had not ended (S2-007)."""
        behind = self._owned.linger_no_more(occurrence)
        if behind is not None:
            self.slots.wait(behind)
            self._fill(self._clock.now())

    # --------------------------------------------------------------------------------------------- orders from the beat

    def _ordered(self, ordered: OrdersCame) -> None:
        """Do what the store said to a beat: cancel, let go, take what was not known to be held."""
        orders = ordered.orders
        for key, reason in orders.cancel:
            self._cancel(key, reason)
        for key in orders.gone:
            self._is_gone(key)
        parked = {key.handle for key in orders.parks if self._owned.find(key) is not None}
        for occurrence in self._owned:
            occurrence.parks = occurrence.claim.handle in parked
            self._park(occurrence)
        self.claimer.adopt(orders.adopt)
        self._fill(self._clock.now())

    def _is_gone(self, key: ClaimKey) -> None:
        self._owned.forget(key)
        occurrence = self._owned.find(key)
        # What is being written may be why the store no longer counts it as held: its commit will tell.
        if occurrence is not None and not occurrence.steps and occurrence.deferred is None:
            self._lose(occurrence)

    def _park(self, occurrence: OwnedOccurrence) -> None:
        """Give up a wait for a retry that no node may keep: its job is out of service."""
        if occurrence.keeps_a_wait_in_vain:
            self._feed(occurrence, Stopping(drain=True))

    def _cancel(self, key: ClaimKey, reason: str) -> None:
        occurrence = self._owned.find(key)
        if occurrence is None:
            return
        self.slots.remove(occurrence)
        self._owned.wait_no_more(key.handle)
        if occurrence.deferred is not None:
            self._halt_all(occurrence, Halt.CANCEL, reason)
        self._feed(occurrence, CancelRequested(reason))

    def _stop_asked(self, asked: StopAsked) -> None:
        """Claim nothing more; give back what has not begun, and tell the rest to stop unless it may finish."""
        self._stopping = asked.stopping
        self.claimer.stop()
        for occurrence in [*self.slots.take_backlog(), *self._owned.take_waiting()]:
            self._feed(occurrence, _RELEASED)
        for occurrence in self._owned:
            if occurrence.deferred is not None and not asked.stopping.drain:
                self._halt_all(occurrence, Halt.SHUTDOWN, SHUTDOWN)
            self._feed(occurrence, asked.stopping)


def _why(step: Step, cancel: Cancel) -> Halt:
    """Return why an attempt is to stop: a deadline binds every kind of body as its own timeout does."""
    if cancel.reason == EXECUTION_TIMEOUT:
        return Halt.TIMEOUT
    return Halt.CANCEL if step.after.stop is None else Halt.SHUTDOWN
