"""Stopping: the order in which a node ends its parts, so that what runs can end and is written."""

import asyncio
import logging
from collections.abc import Awaitable
from datetime import timedelta
from typing import Literal, TypeAlias

from everytick.node.engine import Engine
from everytick.node.health import Health
from everytick.node.loops import Loops
from everytick.node.reporter import Reporter

_log = logging.getLogger("everytick.node")

StopMode: TypeAlias = Literal["cancel", "drain"]
"""Whether running attempts are told to stop, or waited for."""

LAST_WORDS_SECONDS = 3.0
"""How much longer than the grace period a stop waits, so that the ends of attempts are written."""


class WindDown:
    """Ends an engine: planning first, then claiming, attempts, writes, and the hooks last."""

    def __init__(self, loops: Loops, engine: Engine, reporter: Reporter, health: Health) -> None:
        self._loops, self._engine, self._reporter, self._health = loops, engine, reporter, health

    async def end_planning(self, grace: timedelta) -> None:
        """Plan nothing more, and end all loops that neither claim nor write."""
        # What a commit under way claims along must arrive: it is given back.
        await _in_time(_deadline(grace), self._engine.planner.stopped(), "some plans could not be written in time")
        await self._loops.end_but("claims", "writer")

    async def run(self, mode: StopMode, grace: timedelta) -> None:
        """Return when every part has ended, or has had its grace period."""
        self._engine.stop(drain=mode == "drain", grace=grace)
        until = _deadline(grace)
        # A claim under way has its effect in the store: its occurrences are given back.
        await _in_time(until, self._loops.ended("claims"), "a claim was not answered in time")
        if mode == "drain":
            await self._engine.emptied()
            until = _deadline(grace)
        await self._end_attempts(until)
        await self._loops.end("claims", "writer")
        await self._engine.close()

    async def _end_attempts(self, until: float) -> None:
        """Wait for what runs, for the writing of its ends and for the hooks that follow."""
        await _in_time(until, self._engine.emptied(), "some attempts did not end within the grace period")
        if self._health.gone is None:
            await _in_time(until, self._engine.writer.flushed(), "some ends could not be written in time")
        await _in_time(until, self._reporter.close(), "some hooks did not end within the grace period")


def _deadline(grace: timedelta) -> float:
    return asyncio.get_running_loop().time() + grace.total_seconds() + LAST_WORDS_SECONDS


async def _in_time(until: float, work: Awaitable[None], what: str) -> None:
    try:
        async with asyncio.timeout_at(until):
            await work
    except TimeoutError:
        _log.warning("%s; what is left is settled by another node", what)
