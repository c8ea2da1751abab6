"""Waking: a node sleeps until something may be due, and then plans first and claims next."""

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Protocol

from everytick.domain.texts import JOB_AHEAD
from everytick.node.claimer import Claimer
from everytick.node.foresight import LEAD
from everytick.node.in_time import in_time
from everytick.node.inbox import BeatWanted
from everytick.node.planner import Planner
from everytick.node.scope import Scope
from everytick.node.tools import Tools
from everytick.stores.addresses import AnyStore

_log = logging.getLogger("everytick.node")

_FAR = 3600.0
_MANY = 50
_STEP = timedelta(seconds=1)
_NAMED = 20


class Load(Protocol):
    """What an engine has to do."""

    @property
    def is_calm(self) -> bool:
        """Whether nothing waits to be started or written."""
        ...


class Waking:
    """Knows when to look again: `listen` sleeps and wakes, `plan` does the rounds that it is woken for."""

    def __init__(
        self, store: AnyStore, tools: Tools, scope: Scope, planner: Planner, claimer: Claimer, load: Load
    ) -> None:
        self._store, self._scope, self._planner, self._claimer, self._load = store, scope, planner, claimer, load
        self._clock, self._offset, self._health, self._node = tools.clock, tools.offset, tools.health, tools.inbox
        self._poll = tools.settings.poll.total_seconds()
        self._plan_now, self._is_waiting = asyncio.Event(), False
        self._told: datetime | None = None

    def wake(self) -> None:
        """Look now: the plan goes first, and the claim after it.

        While the planner is busy or rests, the claimer need not wait for it.
        """
        self._plan_now.set()
        if not self._is_waiting:
            self._claimer.wake()

    async def plan(self) -> None:
        """Plan whenever something may be due; endings that come by the thousand are answered together."""
        while True:
            self._is_waiting = True
            await self._plan_now.wait()
            self._is_waiting = False
            self._plan_now.clear()
            began = self._clock.monotonic()
            try:
                planned = await self._planner.round()
            finally:
                self._claimer.wake()
            self._health.answered()
            if planned.jobs >= _MANY:
                is_in_vain = planned.useful * 10 < planned.jobs
                await asyncio.sleep(_rest(self._clock.monotonic() - began, is_in_vain))

    async def listen(self) -> None:
        """Sleep until something is due, a bell or the poll; then let the others look."""
        while True:
            asked_at = self._clock.monotonic()
            ahead = await in_time(self._store.ahead(self._scope.current))
            if self._told is not None and ahead.now < self._told - _STEP:
                await self.settle_clock()
            self._told = ahead.now
            self._clock.learn(ahead.now, asked_at)
            self._offset.compare(ahead.now)
            self._health.answered()
            if ahead.needs and self._scope.hear(ahead.needs):
                # This was an answer about less than the node meets now.
                self.wake()
                continue
            moments = [moment for moment in (ahead.wake_at, ahead.ready_at) if moment is not None]
            # Counted from the answer: a store's clock may be set back, and this node's clock is then ahead for a while.
            until = min([_FAR, *((moment - ahead.now).total_seconds() for moment in moments)])
            if ahead.alone and ahead.wake_at is not None:
                until = await self._foresee(ahead.wake_at, until)
            is_rung = await self._rung(until)
            self.wake()
            if is_rung:
                self._node.put(BeatWanted())

    async def settle_clock(self) -> None:
        """Let everything go on that was written while the store's clock was ahead; name the jobs that cannot."""
        ahead = await self._store.settle_clock()
        for name, watermark in ahead[:_NAMED]:
            _log.warning(JOB_AHEAD.format(name=name, watermark=watermark.isoformat()))
        if len(ahead) > _NAMED:
            _log.warning(
                "%d more jobs are decided ahead of the store's clock; everytick doctor names them", len(ahead) - _NAMED
            )

    async def _foresee(self, at: datetime, until: float) -> float:
        """Decide in an idle moment what the next instant brings, where no other node can; return how long to sleep."""
        if until > LEAD:
            return until - LEAD
        if not self._load.is_calm:
            return min(until, LEAD / 4)
        began = self._clock.monotonic()
        await self._planner.foresight.look(at, lambda: self._load.is_calm)
        return max(0.0, until - (self._clock.monotonic() - began))

    async def _rung(self, until: float) -> bool:
        """Wait for the bell, no longer than the poll; the store hears how soon something is expected."""
        try:
            async with asyncio.timeout(min(until, self._poll)):
                return await self._store.bell(until)
        except TimeoutError:
            return False


def _rest(took: float, is_in_vain: bool) -> float:
    """Return how long to plan nothing after a long round, so that running has its share; in vain means longer."""
    return min(20.0 * took, 1.0) if is_in_vain else min(4.0 * took, 0.25)
