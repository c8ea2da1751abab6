"""The local engine: plans and runs the jobs that do not wait for their store, on a store in memory.

It is an engine like the node's own. Its store never fails; what it must not share with the node's
engine is what the node knows of the other store: a clock, a health, a scope and a reporter.
"""

from collections.abc import Collection, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from everytick.domain.notes import Note
from everytick.domain.steps import Step
from everytick.errors import StoreUnavailable
from everytick.node.clock import NodeClock
from everytick.node.engine import Engine
from everytick.node.health import Health, in_time
from everytick.node.hooks import HookTable
from everytick.node.inbox import (
    BeatWanted,
    Inbox,
    LookWanted,
    OrdersCame,
    StoreAnswers,
    StoreAway,
    StoreLost,
    Unwritable,
)
from everytick.node.loops import Loops
from everytick.node.occurrence import OwnedKeys
from everytick.node.reaper import Reaper
from everytick.node.reporter import Reporter
from everytick.node.scope import Scope
from everytick.node.stopping import StopMode, WindDown
from everytick.node.tools import Tools
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Claim, CommitAnswer, Orders, Whole
from everytick.stores.memory.local import LocalStore
from everytick.stores.protocols import ClaimTransaction

_T = TypeVar("_T")


class LocalEngine:
    """The engine that runs while the store is away, and its parts."""

    def __init__(self, home: AnyStore, tools: Tools, scope: Scope) -> None:
        self._settings, self._node, self._node_inbox = tools.settings, scope.current.node, tools.inbox
        self.store = store = LocalStore(tools.clock.now, PromptHome(home, tools.health))
        inbox = Inbox({Unwritable: self._unwritable} | dict.fromkeys(_NOT_ITS_CONCERN, lambda event: None))
        clock, gap = NodeClock(tools.clock.monotonic), tools.settings.node_timeout.total_seconds()
        clock.learn(tools.clock.now())
        self._health = health = Health(inbox, clock.monotonic, gap)
        self._scope = scope.of_another_store()
        hooks, hook_seconds = tools.reporter.hooks, tools.settings.hook_timeout.total_seconds()
        self._reporter = Reporter(store, store, store, self._scope, hooks, tools.health, hook_seconds)
        self._owned = OwnedKeys()
        own = replace(tools, clock=clock, health=health, reporter=self._reporter, inbox=inbox)
        self._engine = Engine(store, store, own, self._scope, self._owned)
        self._reaper = Reaper(store, self._node, clock, tools.listeners, tools.settings)
        # The local store always answers: a question that fails here was passed on to the other store.
        self._loops = Loops(clock, tools.health)
        self._wind_down = WindDown(self._loops, self._engine, self._reporter, tools.health)

    def begin(self) -> None:
        """Plan and run from now on."""
        self._engine.begin(self._loops)
        self._loops.begin("reports", self._reporter.run)
        self._loops.begin_every(self._settings.heartbeat.total_seconds(), "beat", self._beat)
        self._loops.begin_every(self._settings.reaper_interval.total_seconds(), "reaper", self._reaper.round)

    async def stop(self, mode: StopMode, grace: timedelta) -> None:
        """End what runs, and write here how it ended."""
        self.store.rest()
        await self._wind_down.end_planning(grace)
        await self._wind_down.run(mode, grace)

    def hasten(self) -> None:
        """Tell what runs to stop, though the node waits for its end."""
        self._engine.stop()

    def obey(self, orders: Orders) -> None:
        """Do what a store said about what runs here."""
        self._engine.inbox.put(OrdersCame(orders))

    def learn(self, hooks: HookTable) -> None:
        """Call these hooks from now on, and look again at jobs that could not be run."""
        self._reporter.learn(hooks)
        self.learn_again()

    def learn_again(self) -> None:
        """Look again at jobs that could not be run."""
        self._scope.learn_again()
        self._engine.inbox.put(LookWanted())

    async def _beat(self) -> int:
        """Beat to the local store: drop claims that are lost, and let it delete occurrences that have ended at home."""
        self.obey(await self.store.beat(self._node, self._owned.named()))
        self._health.has_beaten()
        return 0

    def _unwritable(self, unwritable: Unwritable) -> None:
        """Let a reaper settle it: the node's if it was handed over, else the one of the local store."""
        at_home = self.store.keys.get(unwritable.key)
        if at_home is None:
            self._reaper.settle_soon(unwritable)
        else:
            self._node_inbox.put(Unwritable(at_home, unwritable.occurrence_id))


_NOT_ITS_CONCERN = (StoreAway, StoreAnswers, StoreLost, BeatWanted)
"""Events of a node about its store: the local one is always there, and has no beat to wake."""


class PromptHome:
    """The store to which occurrences are handed over; it answers or raises soon, so that no other step waits for it."""

    def __init__(self, store: AnyStore, health: Health) -> None:
        self._store, self._health = store, health

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write each step."""
        return await self._answer(self._store.commit_steps(steps))

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
        """Write the rows of running attempts, for people."""
        return await self._answer(self._store.note(notes))

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        """Note that these reports were delivered."""
        await self._answer(self._store.reported(occurrence_ids))

    async def whole(self, occurrence_id: str) -> Whole:
        """Return one occurrence with its runs and attempts."""
        return await self._answer(self._store.whole(occurrence_id))

    def transaction(self, claim: Claim) -> AbstractAsyncContextManager[ClaimTransaction]:
        """Begin a transaction for a task of the claim."""
        return self._store.transaction(claim)

    async def _answer(self, question: Coroutine[Any, Any, _T]) -> _T:
        """Return the answer; raise at once where nothing has been heard of the store since it failed."""
        if self._health.is_away:
            question.close()
            raise StoreUnavailable("the store", self._health.reason)
        try:
            return await in_time(question)
        except StoreUnavailable as error:
            self._health.failed(error)
            raise
