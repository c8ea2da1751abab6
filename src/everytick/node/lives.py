"""Lives: what follows from each event of an occurrence that this node owns.

Every step is committed before anything that it starts begins; only the end is written behind, and
frees the slot at once. An occurrence is let go when its end is written, when it is given back, when
another node has it, or when the store refuses what this node says about it.
"""

import logging
from datetime import datetime

from everytick.domain.outcome import Canceled
from everytick.domain.steps import (
    AttemptEnded,
    CancelAttempt,
    CancelRequested,
    Claimed,
    DeadlinePassed,
    Event,
    Start,
    Step,
    Stopping,
    WaitOver,
    deadline_of,
)
from everytick.domain.texts import EXECUTION_TIMEOUT, SHUTDOWN
from everytick.node.attempts import Attempts
from everytick.node.events import events_of, start_of
from everytick.node.inbox import (
    AttemptOver,
    GraceOver,
    Greeted,
    Inbox,
    Prepared,
    Reminded,
    SlotFree,
    StepWritten,
    TimeoutPassed,
    TransactionOver,
    Unwritable,
)
from everytick.node.occurrence import AttemptServices, OpenAttempt, OwnedOccurrence
from everytick.node.owned_keys import OwnedKeys
from everytick.node.slots import Slots
from everytick.node.tools import Tools
from everytick.node.writer import Writer
from everytick.runners.context import Halt
from everytick.stores.base import ClaimKey, Commit, Orders

_log = logging.getLogger("everytick.executor")

_CLAIMED = Claimed()
_LOOK_AGAIN_SECONDS = 5.0
"""How often a moment is looked at that has moved away because the store's clock was set back."""


class Lives:
    """Decides about the occurrences of one engine, and has the other parts do what was decided."""

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
        self.grace = tools.settings.grace_period
        """How long an attempt that was told to stop has for it."""

    # --------------------------------------------------------------------------------------------------------- one life

    def begin(self, occurrence: OwnedOccurrence, now: datetime) -> None:
        """Begin the occurrence in a slot."""
        self._slots.take()
        occurrence.is_begun = True
        if self._reporter.greets(occurrence.claim):
            self._reporter.started(occurrence.claim, self._inbox, Greeted(occurrence))
        else:
            self.feed(occurrence, _CLAIMED, now)
        header = occurrence.claim.header
        if header.rules.execution_timeout is not None and not occurrence.is_gone:
            until = deadline_of(header, occurrence.life)
            if until is not None:
                self._remind(occurrence, until, DeadlinePassed())

    def greeted(self, greeted: Greeted) -> None:
        """Start the tasks of an occurrence whose `on_start` hook is over."""
        self.feed(greeted.occurrence, _CLAIMED)

    def feed(self, occurrence: OwnedOccurrence, event: Event, now: datetime | None = None) -> None:
        """Let the event have its effect: decide, start what may start, write what must be written."""
        now = now or self._clock.now()
        step = occurrence.feed(event, self._clock, now)
        if step is None:
            return
        self._heed(occurrence, step, now)
        if step.rows or step.end is not None or step.resume_at is not None or step.release:
            self._writer.put(occurrence, step)
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
            self._slots.free()
            self._inbox.put(SlotFree(now))

    def _remind(self, occurrence: OwnedOccurrence, until: datetime, event: Event) -> None:
        """Feed the event at that moment: counted on the monotonic clock, unless the store's clock is set back."""
        self._wind(occurrence, self._clock.seconds_until(until), Reminded(occurrence, until, event))

    def _wind(self, occurrence: OwnedOccurrence, seconds: float, reminded: Reminded) -> None:
        alarm = self._alarms.after(seconds, self._inbox, reminded)
        # Without those that have rung: there may be very many retries.
        occurrence.alarms = [*(other for other in occurrence.alarms or () if other.event is not None), alarm]

    def reminded(self, reminded: Reminded) -> None:
        """Feed an event whose moment has come."""
        occurrence, event = reminded.occurrence, reminded.event
        if left := self._clock.seconds_until(reminded.until):
            # The store's clock was set back. It may be set right again at any time.
            self._wind(occurrence, min(left, _LOOK_AGAIN_SECONDS), reminded)
            return
        if occurrence.deferred is not None and isinstance(event, DeadlinePassed):
            # The event waits for the end of a task's transaction, which must not go on for ever.
            self._halt_all(occurrence, Halt.TIMEOUT, EXECUTION_TIMEOUT)
        self.feed(occurrence, event)

    # --------------------------------------------------------------------------------------------------------- attempts

    def _start(self, occurrence: OwnedOccurrence, start: Start) -> None:
        if occurrence.is_gone:
            return
        if occurrence.is_called_off(start):
            self.feed(occurrence, AttemptEnded(start.task, start.number, Canceled("canceled")))
            return
        place = occurrence.claim.header.rules.places[start.task]
        attempt = OpenAttempt(self._services, occurrence, place, start.number, start.deadline)
        occurrence.open[place] = attempt
        self._timeouts.begun(attempt)
        if self._listeners.wanted:
            self._listeners.tell(start_of(occurrence.claim, start.task, start.number, self._clock.now()))
        if attempt.body.wants_previous:
            self._reporter.with_previous(attempt, self._inbox, Prepared(attempt))
        else:
            self._attempts.put(attempt)

    def prepared(self, prepared: Prepared) -> None:
        """Carry out an attempt whose context is complete."""
        self._attempts.put(prepared.attempt)

    def attempt_over(self, over: AttemptOver) -> None:
        """Decide what follows from the end of an attempt."""
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
            self.feed(occurrence, ended, self._clock.at(over.reading))

    def transaction_over(self, over: TransactionOver) -> None:
        """Go on from a step that was committed in a task's transaction, and from the events that waited for it."""
        if over.step is not None:
            over.occurrence.life = over.step.after
            self._heed(over.occurrence, over.step, self._clock.now())
            self._has_committed(over.occurrence, over.step)
        for event in over.deferred:
            self.feed(over.occurrence, event)

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
        self._attempts.halt(attempt, why, reason, self.grace)

    def _halt_all(self, occurrence: OwnedOccurrence, why: Halt, reason: str) -> None:
        for attempt in list(occurrence.open.values()):
            self._halt(attempt, why, reason)

    # ------------------------------------------------------------------------------------------------- what is written

    def step_written(self, written: StepWritten) -> None:
        """Go on from the store's answer about a step."""
        occurrence, answer = written.occurrence, written.answer
        occurrence.has_written()
        if answer is None:
            self.give_up(occurrence)
        elif answer is Commit.STALE:
            self.lose(occurrence)
        else:
            self._has_committed(occurrence, written.step)

    def _has_committed(self, occurrence: OwnedOccurrence, step: Step) -> None:
        """Go on from a step that the store has: start what it starts, tell of an end."""
        for start in step.starts:
            self._start(occurrence, start)
        if self._listeners.wants(step):
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

    def _let_go(self, occurrence: OwnedOccurrence) -> None:
        occurrence.is_gone = True
        self._owned.linger(occurrence)
        self._free(occurrence, self._clock.now())
        self._halt_all(occurrence, Halt.CANCEL, "no longer this node's")
        self._forget(occurrence)

    def lose(self, occurrence: OwnedOccurrence) -> None:
        """Stop what runs and record nothing: another node has the occurrence now."""
        if not occurrence.is_gone:
            _log.warning("occurrence %s is no longer this node's: it is stopped here", occurrence.claim.header.id)
            self._let_go(occurrence)

    def give_up(self, occurrence: OwnedOccurrence) -> None:
        """Let the reaper settle an occurrence about which this node cannot write."""
        key = occurrence.claim.key
        self._owned.give_up(key)
        self._let_go(occurrence)
        self._tools.inbox.put(Unwritable(key, occurrence.claim.header.id))

    def _linger_no_more(self, occurrence: OwnedOccurrence) -> None:
        """Begin what was claimed anew while a body of the older claim had not ended (S2-007)."""
        behind = self._owned.linger_no_more(occurrence)
        if behind is not None:
            self._slots.wait(behind)
            self._inbox.put(SlotFree(self._clock.now()))

    # ------------------------------------------------------------------------------- what the store or the node orders

    def obey(self, orders: Orders) -> None:
        """Do what the store said to a beat about occurrences that this node holds, or held."""
        for key, reason in orders.cancel:
            self._cancel(key, reason)
        for key in orders.gone:
            self._lose_by_order(key)
        parked = {key.handle for key in orders.parks if self._owned.find(key) is not None}
        for occurrence in self._owned:
            occurrence.parks = occurrence.claim.handle in parked
            self._park(occurrence)

    def _lose_by_order(self, key: ClaimKey) -> None:
        """Let go of an occurrence that the store no longer counts as this node's."""
        self._owned.forget(key)
        occurrence = self._owned.find(key)
        # What is being written may be why the store no longer counts it as held: its commit will tell.
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
        if occurrence.keeps_a_wait_in_vain:
            self.feed(occurrence, Stopping(drain=True))

    def stop(self, occurrence: OwnedOccurrence, stopping: Stopping) -> None:
        """Tell an occurrence that its node stops."""
        if occurrence.deferred is not None and not stopping.drain:
            self._halt_all(occurrence, Halt.SHUTDOWN, SHUTDOWN)
        self.feed(occurrence, stopping)


def _why(step: Step, cancel: CancelAttempt) -> Halt:
    """Return why an attempt is to stop: a deadline binds every kind of body as its own timeout does."""
    if cancel.reason == EXECUTION_TIMEOUT:
        return Halt.TIMEOUT
    return Halt.CANCEL if step.after.stop is None else Halt.SHUTDOWN
