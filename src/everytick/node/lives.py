"""Lives: begins occurrences that have a slot, and carries out the steps of their events.

Every step is committed before anything that it starts begins; only the end is written behind, and
frees the slot at once. An occurrence is let go when its end is written, when it is given back, when
another node has it, or when the store refuses what this node says about it.
"""

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

from everytick.domain.outcome import Canceled
from everytick.domain.statuses import ATTEMPT_ENDED
from everytick.domain.steps import (
    AttemptEnded,
    CancelAttempt,
    CancelRequested,
    Claimed,
    DeadlinePassed,
    LifeEvent,
    Reattached,
    Released,
    Start,
    Step,
    Stopping,
    WaitOver,
    deadline_of,
)
from everytick.domain.texts import EXECUTION_TIMEOUT, SHUTDOWN
from everytick.node.attempts import Attempts
from everytick.node.events import events_of, has_failure, start_of
from everytick.node.inbox import (
    AttemptOver,
    GraceOver,
    HandedOver,
    Inbox,
    Prepared,
    Reminded,
    StartHookOver,
    StepsWritten,
    TimeoutPassed,
    TransactionOver,
    Unwritable,
)
from everytick.node.occurrence import AttemptServices, OpenAttempt, OwnedKeys, OwnedOccurrence
from everytick.node.slots import Slots
from everytick.node.tools import Tools
from everytick.node.writer import Writer
from everytick.runners.context import Halt
from everytick.runners.tracing import is_on as is_tracing
from everytick.runners.tracing import record_occurrence
from everytick.stores.base import ClaimKey, Commit, Orders

if TYPE_CHECKING:
    from everytick.runners.engines import EngineBody

_log = logging.getLogger("everytick.node")

_CLAIMED, _RELEASED = Claimed(), Released()
# Bound once: to look a member up in its class takes as long as to call a function.
_COMMITTED = Commit.COMMITTED
_LOOK_AGAIN_SECONDS = 5.0
"""How often a reminder is tried again after the store's clock was set back."""


class Lives:
    """Decides about the occurrences of one engine from their begin on, and has other parts act."""

    def __init__(
        self,
        tools: Tools,
        owned: OwnedKeys,
        slots: Slots,
        attempts: Attempts,
        writer: Writer,
        services: AttemptServices,
        inbox: Inbox,
    ) -> None:
        self._tools, self._clock, self._alarms, self._listeners = tools, tools.clock, tools.alarms, tools.listeners
        self._owned, self._slots, self._attempts, self._writer = owned, slots, attempts, writer
        self._services, self._timeouts, self._reporter = services, services.timeouts, tools.reporter
        self._inbox = inbox
        self.is_over = False
        """Whether the node stops: nothing begins any more."""
        self._grace = tools.settings.grace_period

    # --------------------------------------------------------------------------------------------------------- one life

    def reattach(self, occurrence: OwnedOccurrence) -> None:
        """Wait for the ends of the attempts that engines carry out; their earlier owner fell silent or stopped."""
        handed = occurrence.claim.handed
        where = ", ".join(attempt.handed_to for attempt in handed)
        _log.info("occurrence %s goes on: this node waits for %s", occurrence.claim.header.id, where)
        occurrence.has_engine_slot = True
        self._slots.keep_engine_slot()
        self.feed(occurrence, Reattached(frozenset(attempt.task for attempt in handed)))
        if not occurrence.is_gone:
            self._set_deadline_alarm(occurrence)

    def begin(self, occurrence: OwnedOccurrence, now: datetime) -> None:
        """Begin the occurrence in a slot."""
        self._slots.take()
        occurrence.is_begun = True
        if self._reporter.hooks.on_start and self._reporter.calls_on_start(occurrence.claim):
            self._reporter.call_on_start(occurrence.claim, self._inbox, StartHookOver(occurrence))
        else:
            self.feed(occurrence, _CLAIMED, now)
        if occurrence.claim.header.rules.execution_timeout is not None and not occurrence.is_gone:
            self._set_deadline_alarm(occurrence)

    def _set_deadline_alarm(self, occurrence: OwnedOccurrence) -> None:
        """Set the alarm of the deadline that the occurrence's `execution_timeout` makes."""
        until = deadline_of(occurrence.claim.header, occurrence.life)
        if until is not None:
            self._remind(occurrence, until, DeadlinePassed())

    def start_hook_over(self, over: StartHookOver) -> None:
        """Start the tasks of an occurrence whose `on_start` hook is over."""
        self.feed(over.occurrence, _CLAIMED)

    def feed(self, occurrence: OwnedOccurrence, event: LifeEvent, now: datetime | None = None) -> None:
        """Handle the event: decide, start tasks, and write the step."""
        now = now or self._clock.now()
        step = occurrence.feed(event, self._clock, now)
        if step is None:
            return
        lets_go = step.end is not None or step.resume_at is not None or step.release
        if step.cancels or step.waits:
            self._stop_and_set_alarms(occurrence, step)
        if lets_go:
            self._free(occurrence, now)
        if lets_go or step.rows:
            self._writer.put(occurrence, step)
        else:
            for start in step.starts:
                self._start(occurrence, start)
        if step.waits:
            self._park(occurrence)

    def _stop_and_set_alarms(self, occurrence: OwnedOccurrence, step: Step) -> None:
        """Do what needs no commit: tell open attempts to stop, and set alarms."""
        for cancel in step.cancels:
            attempt = occurrence.open.get(occurrence.claim.header.rules.places[cancel.task])
            if attempt is not None and attempt.number == cancel.number:
                self._halt(attempt, _why(step, cancel), cancel.reason)
            else:
                occurrence.call_off(cancel.task, cancel.number)
        for wait in step.waits:
            self._remind(occurrence, wait.until, WaitOver(wait.task))

    def _free(self, occurrence: OwnedOccurrence, now: datetime) -> None:
        """Turn off the occurrence's alarms, and free its slot."""
        if occurrence.alarms is not None:
            for alarm in occurrence.alarms:
                self._alarms.turn_off(alarm)
            occurrence.alarms = None
        if occurrence.has_engine_slot:
            occurrence.has_engine_slot = False
            self._slots.free_engine_slot()
        if occurrence.is_begun:
            occurrence.is_begun = False
            self._slots.free(now)

    def _remind(self, occurrence: OwnedOccurrence, until: datetime, event: LifeEvent) -> None:
        """Feed the event at that moment: counted on the monotonic clock, unless the store's clock is set back."""
        self._set_alarm(occurrence, self._clock.seconds_until(until), Reminded(occurrence, until, event))

    def _set_alarm(self, occurrence: OwnedOccurrence, seconds: float, reminded: Reminded) -> None:
        alarm = self._alarms.after(seconds, self._inbox, reminded)
        # Alarms that have rung are dropped: an occurrence may have very many retries.
        occurrence.alarms = [*(other for other in occurrence.alarms or () if other.event is not None), alarm]

    def reminded(self, reminded: Reminded) -> None:
        """Feed an event whose moment has come."""
        occurrence, event = reminded.occurrence, reminded.event
        if left := self._clock.seconds_until(reminded.until):
            # The store's clock was set back. It may be set right again at any time.
            self._set_alarm(occurrence, min(left, _LOOK_AGAIN_SECONDS), reminded)
            return
        if occurrence.deferred is not None and isinstance(event, DeadlinePassed):
            # The event waits for the end of a task's transaction, which must end in time.
            self._halt_all(occurrence, Halt.TIMEOUT, EXECUTION_TIMEOUT)
        self.feed(occurrence, event)

    # --------------------------------------------------------------------------------------------------------- attempts

    def _start(self, occurrence: OwnedOccurrence, start: Start) -> None:
        if occurrence.is_gone:
            return
        if occurrence.called_off is not None and (start.task, start.number) in occurrence.called_off:
            if start.began_at is not None:
                self._recall(occurrence, start)
            self.feed(occurrence, AttemptEnded(start.task, start.number, Canceled("canceled")))
            return
        place = occurrence.claim.header.rules.places[start.task]
        attempt = OpenAttempt(self._services, occurrence, place, start.number, start.deadline)
        occurrence.open[place] = attempt
        if attempt.is_handed:
            self._note_handed(attempt)
        began_at = start.began_at
        self._timeouts.begun(attempt, 0.0 if began_at is None else _seconds_since(began_at, self._clock.now()))
        if self._listeners.wanted and began_at is None:
            self._listeners.tell(start_of(occurrence.claim, start.task, start.number, self._clock.now()))
        if attempt.body.wants_previous:
            self._reporter.with_previous(attempt, self._inbox, Prepared(attempt))
        else:
            self._attempts.put(attempt)

    def _recall(self, occurrence: OwnedOccurrence, start: Start) -> None:
        """Tell an engine to stop an attempt that no longer counts."""
        place = occurrence.claim.header.rules.places[start.task]
        attempt = OpenAttempt(self._services, occurrence, place, start.number, start.deadline)
        cast("EngineBody", attempt.body).recall(attempt.context)

    def handed_over(self, over: HandedOver) -> None:
        """Free the slot of an occurrence once engines carry out all its open attempts."""
        occurrence = over.attempt.occurrence
        if occurrence.is_gone or not over.attempt.is_open:
            return
        self._note_handed(over.attempt)
        if occurrence.is_begun and occurrence.is_at_engines and self._slots.take_engine_slot():
            occurrence.is_begun, occurrence.has_engine_slot = False, True
            self._slots.free(self._clock.now())
        if self.is_over:
            self._leave_at_engines(occurrence)

    def _note_handed(self, attempt: OpenAttempt) -> None:
        """Remember which engine has the attempt: it is told once the end of the attempt is written."""
        occurrence = attempt.occurrence
        at_engine = cast("EngineBody", attempt.body), attempt.context.attempt_id
        occurrence.handed = {**(occurrence.handed or {}), (attempt.task, attempt.number): at_engine}

    def prepared(self, prepared: Prepared) -> None:
        """Carry out an attempt whose context is complete."""
        self._attempts.put(prepared.attempt)

    def attempt_over(self, over: AttemptOver) -> None:
        """Decide the step that follows from the end of an attempt."""
        attempt = over.attempt
        occurrence = attempt.occurrence
        if occurrence.open.get(attempt.place) is attempt:
            del occurrence.open[attempt.place]
        self._tools.logs.close(attempt)
        self._timeouts.ended(attempt)
        if occurrence.is_gone and not occurrence.open:
            self._linger_no_more(occurrence)
        if occurrence.has_engine_slot and not occurrence.is_gone:
            # The next task may run here.
            occurrence.has_engine_slot, occurrence.is_begun = False, True
            self._slots.free_engine_slot()
            self._slots.take()
        if not attempt.is_settled:
            ended = AttemptEnded(attempt.task, attempt.number, over.outcome)
            self.feed(occurrence, ended, self._clock.at(over.reading))
        if self.is_over:
            self._leave_at_engines(occurrence)

    def transaction_over(self, over: TransactionOver) -> None:
        """Go on from a step that was committed in a task's transaction, and from the events that waited for it."""
        if over.step is not None:
            over.occurrence.life = over.step.after
            self._stop_and_set_alarms(over.occurrence, over.step)
            if over.step.end is not None or over.step.resume_at is not None or over.step.release:
                self._free(over.occurrence, self._clock.now())
            self._listeners.meter.step(over.occurrence.claim, over.step)
            self._has_committed(over.occurrence, over.step, self._listeners.wanted)
        for event in over.deferred:
            self.feed(over.occurrence, event)

    def _trace(self, written: StepsWritten) -> None:
        """Record the spans of the occurrences that have ended. A recorder that fails must not end the node's work."""
        for occurrence, step, answer in written.answers:
            if step.end is not None and answer is Commit.COMMITTED:
                try:
                    record_occurrence(occurrence.claim.job.name, occurrence.claim.header, step.end)
                except Exception:  # noqa: BLE001, an exporter of the application's own may raise anything
                    _log.exception("the span of %r is not recorded; the occurrence itself is", occurrence)

    def timed_out(self, timed_out: TimeoutPassed) -> None:
        """Tell an attempt to stop whose timeout has passed."""
        if timed_out.attempt.is_open:
            self._halt(timed_out.attempt, Halt.TIMEOUT, "")

    def grace_over(self, over: GraceOver) -> None:
        """Leave an attempt behind that has not stopped within its grace period."""
        if over.attempt.is_open:
            self._services.transactions.take_back(over.attempt)
            self._attempts.abandon(over.attempt)

    def _halt(self, attempt: OpenAttempt, why: Halt, reason: str) -> None:
        if why is not Halt.SHUTDOWN or not attempt.is_handed:
            self._attempts.halt(attempt, why, reason, self._grace)

    def _halt_all(self, occurrence: OwnedOccurrence, why: Halt, reason: str) -> None:
        for attempt in list(occurrence.open.values()):
            self._halt(attempt, why, reason)

    # ------------------------------------------------------------------------------------------ the store's answers

    def steps_written(self, written: StepsWritten) -> None:
        """Go on from the store's answer about each step."""
        is_told = self._listeners.wanted
        self._listeners.meter.steps(written.answers)
        if is_tracing():
            self._trace(written)
        for occurrence, step, answer in written.answers:
            try:
                if occurrence.awaits_writes is not None:
                    occurrence.has_written()
                if answer is _COMMITTED:
                    self._has_committed(occurrence, step, is_told)
                    if self.is_over:
                        self._leave_at_engines(occurrence)
                elif answer is None:
                    self.give_up(occurrence)
                else:
                    self.lose(occurrence)
            except Exception:  # noqa: BLE001, a mistake of ours about one occurrence must keep no other from going on
                text = "occurrence %s: internal error after a step was written; the reaper settles it as lost"
                _log.exception(text, occurrence.claim.header.id)
                self.give_up(occurrence)

    def _has_committed(self, occurrence: OwnedOccurrence, step: Step, is_told: bool) -> None:
        """Go on from a committed step: start its tasks, tell of an end. A failure is always told."""
        for start in step.starts:
            self._start(occurrence, start)
        if occurrence.handed is not None:
            _tell_engines(occurrence, step)
        if is_told or has_failure(step):
            for event in events_of(occurrence.claim, step, self._clock.now()):
                self._listeners.tell(event)
        if step.end is not None or step.resume_at is not None or step.release:
            self._forget(occurrence)
            if step.end is not None:
                self._reporter.ended(occurrence.claim, step.end)

    # --------------------------------------------------------------------------------------------------- letting go

    def _forget(self, occurrence: OwnedOccurrence) -> None:
        occurrence.is_gone = True
        self._owned.remove(occurrence)
        self._tools.catalogue.forget(occurrence.claim.header.id)

    def _let_go(self, occurrence: OwnedOccurrence, engines: Halt = Halt.LEFT) -> None:
        """Record nothing more about the occurrence, and stop its attempts here. `engines` is why those at engines end.

        With LEFT they go on there, for the next owner.
        """
        occurrence.is_gone = True
        self._owned.linger(occurrence)
        self._free(occurrence, self._clock.now())
        for attempt in list(occurrence.open.values()):
            self._halt(attempt, engines if attempt.is_handed else Halt.CANCEL, "no longer this node's")
        self._forget(occurrence)

    def _leave_at_engines(self, occurrence: OwnedOccurrence) -> None:
        """Let go, on a node that stops, of an occurrence that only engines work on. Another node records its end."""
        if not occurrence.is_gone and occurrence.is_at_engines:
            _log.info("occurrence %s goes on at its engine; another node records its end", occurrence.claim.header.id)
            self._let_go(occurrence)

    def lose(self, occurrence: OwnedOccurrence) -> None:
        """Stop what runs and record nothing: another node has the occurrence now."""
        if not occurrence.is_gone:
            _log.warning("occurrence %s is no longer this node's: it is stopped here", occurrence.claim.header.id)
            self._let_go(occurrence)

    def give_up(self, occurrence: OwnedOccurrence) -> None:
        """Let the reaper settle an occurrence about which this node cannot write."""
        key = occurrence.claim.key
        self._owned.give_up(key)
        self._let_go(occurrence, Halt.CANCEL)
        self._tools.inbox.put(Unwritable(key, occurrence.claim.header.id))

    def _linger_no_more(self, occurrence: OwnedOccurrence) -> None:
        """Begin an occurrence that was claimed again while a body of the older claim ran (S2-007)."""
        newer = self._owned.linger_no_more(occurrence)
        if newer is not None:
            self._slots.add(newer)
            self._slots.look_again(self._clock.now())

    # ------------------------------------------------------------------------------- what the store or the node orders

    def obey(self, orders: Orders) -> None:
        """Do what the store said to a beat about occurrences that this node holds, or held."""
        for key, reason in orders.cancel:
            self._cancel(key, reason)
        for key in orders.gone:
            self._lose_by_order(key)
        parked = {key.handle for key in orders.parks if self._owned.find(key) is not None}
        for occurrence in self._owned:
            occurrence.parks = occurrence.claim.key.handle in parked
            self._park(occurrence)

    def _lose_by_order(self, key: ClaimKey) -> None:
        """Drop an occurrence that the store no longer counts as this node's."""
        self._owned.forget(key)
        occurrence = self._owned.find(key)
        # A step that is being written may be the reason: its commit will tell.
        if occurrence is not None and not occurrence.steps and occurrence.deferred is None:
            self.lose(occurrence)

    def _cancel(self, key: ClaimKey, reason: str) -> None:
        """Tell an occurrence to stop, because a person or its job's plan asked for that."""
        occurrence = self._owned.find(key)
        if occurrence is None:
            return
        self._slots.remove(occurrence)
        self._owned.wait_no_more(key.handle)
        if occurrence.deferred is not None:
            self._halt_all(occurrence, Halt.CANCEL, reason)
        self.feed(occurrence, CancelRequested(reason))

    def _park(self, occurrence: OwnedOccurrence) -> None:
        """Give up a wait for a retry that no node may keep: its job is out of service."""
        if occurrence.waits_out_of_service:
            self.feed(occurrence, Stopping(drain=True))

    def stop(self, stopping: Stopping, grace: timedelta | None) -> None:
        """Give back claims that have not begun, also those that still come. Tell begun ones that the node stops.

        `grace` is how long an attempt that is told to stop has for it; with None the setting says so.
        """
        self.is_over = True
        if grace is not None:
            self._grace = grace
        for occurrence in [*self._slots.take_backlog(), *self._owned.take_waiting()]:
            self.feed(occurrence, _RELEASED)
        for occurrence in self._owned:
            if occurrence.deferred is not None and not stopping.drain:
                self._halt_all(occurrence, Halt.SHUTDOWN, SHUTDOWN)
            self._leave_at_engines(occurrence)
            self.feed(occurrence, stopping)


def _seconds_since(began_at: datetime, now: datetime) -> float:
    return max((now - began_at).total_seconds(), 0.0)


def _tell_engines(occurrence: OwnedOccurrence, step: Step) -> None:
    """Let engines forget the attempts whose ends are in the store."""
    for row in step.rows:
        if occurrence.handed is None or row.attempt not in ATTEMPT_ENDED:
            continue
        at_engine = occurrence.handed.pop((row.task, row.number), None)
        if at_engine is not None:
            body, attempt_id = at_engine
            body.settled(attempt_id)


def _why(step: Step, cancel: CancelAttempt) -> Halt:
    """Return why an attempt is to stop: a deadline binds every kind of body as its own timeout does."""
    if cancel.reason == EXECUTION_TIMEOUT:
        return Halt.TIMEOUT
    return Halt.CANCEL if step.after.stop is None else Halt.SHUTDOWN
