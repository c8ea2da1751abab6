"""Waking: an engine sleeps until something may be due, and then plans first and claims next."""

import asyncio
import logging
from contextlib import suppress
from datetime import datetime, timedelta

from everytick.domain.texts import JOB_AHEAD
from everytick.node.foresight import LEAD_SECONDS, Calm
from everytick.node.health import in_time
from everytick.node.inbox import BeatWanted, Inbox, LookWanted
from everytick.node.limit_watch import LimitWatch
from everytick.node.planner import Planner
from everytick.node.scope import Scope
from everytick.node.tools import Tools
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Ahead

_log = logging.getLogger("everytick.node")

_LONGEST_SECONDS = 3600.0
"""How long the store's bell waits if no job or occurrence is to come. The poll ends the wait sooner."""

_CLOCK_STEP = timedelta(seconds=1)
"""Less than this is no step back of the store's clock: two answers may overtake each other."""

_PLAN_FIRST_SECONDS = 0.02
"""How long the planner goes first: most rounds take a few milliseconds, and a long one is not waited for."""

_JOBS_NAMED = 20
"""How many jobs the log names; `everytick doctor` names all of them."""


class Waking:
    """Sleeps until something may be due, a bell or the poll; then it puts `LookWanted`."""

    def __init__(self, store: AnyStore, tools: Tools, scope: Scope, planner: Planner, calm: Calm, inbox: Inbox) -> None:
        self._store, self._scope, self._planner, self._calm, self._inbox = store, scope, planner, calm, inbox
        self._clock, self._offset, self._health, self._node_inbox = tools.clock, tools.offset, tools.health, tools.inbox
        self._poll_seconds = tools.settings.poll.total_seconds()
        self._last_told: datetime | None = None
        self._limits = LimitWatch(store, tools.listeners)

    async def run(self) -> None:
        """Sleep until something may be due, and put LookWanted; repeat until stopped."""
        while True:
            ahead = await self._ahead()
            if ahead.needs and self._scope.hear(ahead.needs):
                # The node meets more needs than it has asked about: look, and ask again.
                self._inbox.put(LookWanted())
                continue
            moments = [moment for moment in (ahead.wake_at, ahead.ready_at) if moment is not None]
            # Counted from the store's time in the answer: if the store's clock was set back, the node's is still ahead.
            seconds = min([_LONGEST_SECONDS, *((moment - ahead.now).total_seconds() for moment in moments)])
            if ahead.alone and ahead.wake_at is not None:
                seconds = await self._foresee(ahead.wake_at, seconds)
            is_rung = await self._wait_for_bell(seconds)
            self._inbox.put(LookWanted())
            await self._let_planner_go_first()
            if is_rung:
                self._node_inbox.put(BeatWanted())

    async def _ahead(self) -> Ahead:
        """Ask the store what comes next. Its answer also tells the time, and that it is well."""
        asked_at = self._clock.monotonic()
        ahead = await in_time(self._store.ahead(self._scope.current))
        if self._last_told is not None and ahead.now < self._last_told - _CLOCK_STEP:
            await self.settle_clock()
        self._last_told = ahead.now
        self._clock.learn(ahead.now, asked_at)
        self._offset.compare(ahead.now)
        self._health.answered()
        await self._limits.look(ahead.limit_changes, ahead.now)
        return ahead

    async def _let_planner_go_first(self) -> None:
        """Wait for the planner: another question to the store now would only be in its way (`bench/pickup.py`)."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PLAN_FIRST_SECONDS):
                await self._planner.looked()

    async def settle_clock(self) -> None:
        """Correct the times that were written while the store's clock was ahead. Log the jobs that must wait."""
        ahead = await self._store.settle_clock()
        for name, watermark in ahead[:_JOBS_NAMED]:
            _log.warning(JOB_AHEAD.format(name=name, watermark=watermark.isoformat()))
        if len(ahead) > _JOBS_NAMED:
            _log.warning(
                "%d more jobs are decided ahead of the store's clock; everytick doctor names them",
                len(ahead) - _JOBS_NAMED,
            )

    async def _foresee(self, at: datetime, seconds: float) -> float:
        """Plan the instant `at`, which is `seconds` away, if that is soon and the engine is idle.

        Returns how many seconds to sleep.
        """
        if seconds > LEAD_SECONDS:
            return seconds - LEAD_SECONDS
        if not self._calm.is_calm():
            return min(seconds, LEAD_SECONDS / 4)
        began = self._clock.monotonic()
        await self._planner.foresight.plan_ahead(at, self._calm.is_calm)
        return max(0.0, seconds - (self._clock.monotonic() - began))

    async def _wait_for_bell(self, seconds: float) -> bool:
        """Return whether the bell rang within this time or the poll. `seconds` says when the node next expects work."""
        try:
            async with asyncio.timeout(min(seconds, self._poll_seconds)):
                return await self._store.bell(seconds)
        except TimeoutError:
            return False
