"""The engine: the tick of one store, from the moment something may be due until every occurrence has ended.

An engine makes its parts and gives each what it needs. The parts put what happened into the
engine's inbox; only the engine handles it. `Engine.__init__` has the table: which event, and what is
done about it.
"""

import logging
from collections import Counter, deque
from datetime import timedelta
from operator import attrgetter
from typing import Any

from everytick.domain.steps import Stopping
from everytick.node.arrivals import Arrivals
from everytick.node.attempts import Attempts
from everytick.node.claimer import Claimer
from everytick.node.events import tell_of_plans
from everytick.node.foresight import Calm
from everytick.node.hand_overs import HandOvers
from everytick.node.inbox import (
    Arrived,
    AttemptOver,
    BacklogDue,
    EngineEvent,
    GraceOver,
    HandedOver,
    Inbox,
    LookWanted,
    OrdersCame,
    Planned,
    Prepared,
    Reminded,
    StartHookOver,
    StepsWritten,
    StopAsked,
    TimeoutPassed,
    TimeoutsDue,
    TransactionOver,
)
from everytick.node.lives import Lives
from everytick.node.loops import Loops
from everytick.node.occurrence import AttemptServices, OpenAttempt, OwnedKeys
from everytick.node.planner import Planner
from everytick.node.rollouts import Rollouts
from everytick.node.scope import Scope
from everytick.node.slots import Slots
from everytick.node.timeouts import Timeouts
from everytick.node.tools import Tools
from everytick.node.transactions import Transactions
from everytick.node.waking import Waking
from everytick.node.writer import Writer
from everytick.stores.addresses import AnyStore
from everytick.stores.base import ClaimKey
from everytick.stores.protocols import PlanStore

_log = logging.getLogger("everytick.node")

_endings, _verdict = attrgetter("endings"), attrgetter("verdict")


class Engine:
    """Plans due jobs of one store, and runs the occurrences that it claims there in its slots.

    `plans` is where the planner asks and writes: the store, or a gate before it. Without `rollouts`, versions on trial
    stay so.
    """

    def __init__(
        self,
        store: AnyStore,
        plans: PlanStore,
        tools: Tools,
        scope: Scope,
        owned: OwnedKeys,
        rollouts: Rollouts | None = None,
    ) -> None:
        settings, clock, health = tools.settings, tools.clock, tools.health
        self._tools, self._owned = tools, owned
        table: dict[Any, Any] = {}
        self.inbox = inbox = Inbox(table, self._failed, self._settled)
        self.slots, ready = Slots(settings.slots, clock.monotonic, settings.engine_slots), deque[OpenAttempt]()
        self.writer = Writer(store, health, inbox)
        self._attempts = Attempts(inbox, clock, tools.alarms, self.slots, owned, ready)
        self._timeouts = Timeouts(store, clock, tools.alarms, health, inbox)
        self._hand_overs = HandOvers(store, health, inbox)
        transactions = Transactions(store, clock, inbox)
        services = AttemptServices(tools.logs, self._timeouts, transactions, tools.reporter, self._hand_overs)
        self._lives = lives = Lives(tools, owned, self.slots, self._attempts, self.writer, services, inbox)
        self._arrivals = Arrivals(tools, scope, owned, self.slots, lives, inbox)
        self.claimer = Claimer(
            store=store,
            scope=scope,
            settings=settings,
            health=health,
            slots=self.slots,
            writer=self.writer,
            inbox=inbox,
            monotonic=clock.monotonic,
            owned=owned,
        )
        self.planner, self._rollouts = Planner(plans, tools, scope, self.claimer, inbox), rollouts
        self._calm = Calm(self.slots, ready, self.writer)
        self.waking = Waking(store, tools, scope, self.planner, self._calm, inbox)
        table |= {
            LookWanted: self._look,
            Planned: self._planned,
            Arrived: self._arrived,
            BacklogDue: self._backlog_due,
            StartHookOver: lives.start_hook_over,
            Prepared: lives.prepared,
            HandedOver: lives.handed_over,
            AttemptOver: lives.attempt_over,
            TransactionOver: lives.transaction_over,
            StepsWritten: self._steps_written,
            Reminded: lives.reminded,
            TimeoutsDue: self._timeouts_due,
            TimeoutPassed: lives.timed_out,
            GraceOver: lives.grace_over,
            OrdersCame: self._ordered,
            StopAsked: self._stop_asked,
        }

    def begin(self, loops: Loops) -> None:
        """Plan, claim, run and write from now on."""
        loops.begin("writer", self.writer.run)
        loops.begin("claims", self.claimer.run)
        loops.begin("planner", self.planner.run)
        loops.begin("bell", self.waking.run)
        if self._rollouts is not None:
            loops.begin("rollouts", self._rollouts.run)

    def stop(self, *, drain: bool = False, grace: timedelta | None = None) -> None:
        """Claim nothing more. Give back claims that have not begun, and tell the others to stop unless they may finish.

        `grace` takes the place of the setting from now on.
        """
        self.inbox.put(StopAsked(Stopping(drain), grace))

    async def close(self) -> None:
        """End the rest of this engine. Another node's reaper takes over occurrences that did not end."""
        self._attempts.close()
        await self._attempts.closed()
        for occurrence in self._owned:
            occurrence.is_gone = True
        await self._hand_overs.close()
        await self._timeouts.close()

    # ---------------------------------------------------------------------------------------------- for other parts

    @property
    def running(self) -> Counter[str]:
        """How many occurrences run here now, by the names of their jobs."""
        return Counter(occurrence.claim.job.name for occurrence in self._owned if occurrence.open)

    @property
    def stuck(self) -> int:
        """How many workers have not ended; once closed, those whose attempt does not stop."""
        return self._attempts.stuck

    @property
    def named(self) -> set[ClaimKey]:
        """The keys that the beat names."""
        return self._owned.named()

    async def emptied(self) -> None:
        """Return when this engine owns nothing any more, and no body of it lingers."""
        await self._owned.emptied()

    # ---------------------------------------------------------------------------------------------- what happens to it

    def _look(self, _: LookWanted) -> None:
        """Plan, and claim after that. While the planner is busy or rests, the claimer need not wait for it."""
        self.planner.wake()
        if not self.planner.is_waiting:
            self.claimer.wake()

    def _planned(self, planned: Planned) -> None:
        """Begin the claims that came with the answers, wake the parts that act on the plans, and tell of them."""
        if planned.done.claims:
            # Before the claimer is woken: a body begins before the next question to the store is sent.
            self._arrived(Arrived(planned.done.claims, planned.asked_at))
        self.claimer.wake()
        if any(map(_endings, planned.plans)):
            self._tools.reporter.wake()
        if self._rollouts is not None and any(map(_verdict, planned.plans)):
            self._rollouts.put(planned)
        tell_of_plans(planned, self._tools.listeners)

    def _arrived(self, arrived: Arrived) -> None:
        self.claimer.arrived(arrived.claims)
        self._arrivals.take(arrived)

    def _backlog_due(self, _: BacklogDue) -> None:
        if self._arrivals.give_back_overdue():
            self.claimer.gave_back()

    def _steps_written(self, written: StepsWritten) -> None:
        self.claimer.has_written()
        self._lives.steps_written(written)

    def _timeouts_due(self, _: TimeoutsDue) -> None:
        self._timeouts.round()

    def _ordered(self, ordered: OrdersCame) -> None:
        """Carry out the store's orders: cancel claims, drop lost ones, and adopt unknown ones."""
        self._lives.obey(ordered.orders)
        self.claimer.adopt(ordered.orders.adopt)
        self._arrivals.fill(self._tools.clock.now())

    def _stop_asked(self, stop: StopAsked) -> None:
        self.claimer.stop()
        self._lives.stop(stop.stopping, stop.grace)

    def _settled(self) -> None:
        """After every event: begin what waits for slots that became free, and claim more."""
        if (now := self.slots.freed_at) is not None:
            self.slots.looked()
            self._arrivals.fill(now)
            self.claimer.slot_is_free()

    def _failed(self, event: EngineEvent) -> None:
        """Give up the occurrence of the event: without that it would hang."""
        attempt = getattr(event, "attempt", None)
        occurrence = getattr(event, "occurrence", None) if attempt is None else attempt.occurrence
        if occurrence is not None and not occurrence.is_gone:
            _log.error("occurrence %s is given up here: the reaper settles it as lost", occurrence.claim.header.id)
            self._lives.give_up(occurrence)
