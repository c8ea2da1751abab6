"""The store in memory: the readable specification of every verb.

Each verb is one uninterrupted piece of code, which is what a transaction is to the other
stores. They stand in `planning`, `running`, `jobs`, `recording` and `history`; how rows are
found without walking all of them is the business of `tables`.
"""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import ClassVar

from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import AHEAD, STEP, Ahead, NodeScope, StoreAddress
from everytick.stores.memory.definers import Definers
from everytick.stores.memory.history import HistoryVerbs
from everytick.stores.memory.recording import Recording

_TICK = timedelta(microseconds=1)


class MemoryStore(Recording, Definers, HistoryVerbs):
    """Everything in this process, for tests and for scripts that may forget."""

    address: ClassVar[StoreAddress] = StoreAddress("memory")

    async def open(self) -> None:
        """Return: there is nothing to make ready."""

    async def close(self) -> None:
        """Return: there is nothing to give back."""

    async def now(self) -> datetime:
        """Return the store's time; it follows a clock that is set right, back too."""
        return self._now()

    async def settle_clock(self) -> list[tuple[str, datetime]]:
        """Let everything go on that was written while the clock was ahead; return the jobs that lie ahead."""
        now = self._now()
        for parked in [row for rows in self._tables.unripe.values() for row in rows]:
            if parked.status is OccurrenceStatus.AWAITING_RETRY and parked.updated_at > now + STEP:
                back = parked.updated_at - now
                parked.runs = {
                    task: run if run.resume_at is None else replace(run, resume_at=run.resume_at - back)
                    for task, run in parked.runs.items()
                }
                self._tables.change(parked, ready_at=parked.ready_at - back, updated_at=now)
        jobs = self._tables.jobs.values()
        for row in jobs:
            if row.watermark <= now + STEP and row.was_told_after(now + STEP):
                self._bring_back(row, now)
                self._revise(row, now)
        for waiting in [occurrence for row in jobs for occurrence in (*row.busy, *row.waiting)]:
            is_unbegun = waiting.status in (OccurrenceStatus.PENDING, OccurrenceStatus.QUEUED)
            if is_unbegun and waiting.created_at > now + STEP and waiting.ready_at > now:
                self._tables.change(waiting, ready_at=now)
        if self._was_ahead(now + STEP):
            for row in jobs:
                if row.wake_at is not None and row.wake_at > now:
                    self._wake(row, now)
        ahead = [(row.name, row.watermark) for row in jobs if row.removed_at is None and row.watermark > now + AHEAD]
        return sorted(ahead)

    def _was_ahead(self, moment: datetime) -> bool:
        """Whether a node was heard of, or a job was decided or woken, at a later time than this."""
        jobs = self._tables.jobs.values()
        woken = [row.wake_at for row in jobs if row.woken != row.planned_woken and row.wake_at is not None]
        beats = [node.beat_at for node in self._nodes.values()]
        return any(at > moment for at in (*beats, *woken, *(row.watermark for row in jobs)))

    async def bell(self, seconds: float) -> bool:
        """Wait for a hint that something changed, at most so many seconds; return whether one came."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    async def ahead(self, scope: NodeScope) -> Ahead:
        """Return what is next in this scope, so that a node sleeps until then and not longer."""
        now, tables = self._now(), self._tables
        later = [tables.wakes[needs].since((now + _TICK,)) for needs in scope.met if needs in tables.wakes]
        wakes = [row.wake_at for rows in later for row in islice(rows, 1) if row.wake_at is not None]
        firsts = [row for needs in scope.met for row in islice(tables.unripe.get(needs, ()), 1)]
        ready_at = min((row.ready_at for row in firsts), default=None)
        texts = tuple(sorted(tables.needs)) if len(tables.needs) != scope.seen else ()
        # Another process has another memory.
        return Ahead(now, min(wakes, default=None), ready_at, texts, alone=True)
