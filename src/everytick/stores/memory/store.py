"""The store in memory: the readable specification of every verb.

Each verb runs without an await between its reads and its writes, which replaces a transaction. The verbs are in
`planning`, `running`, `jobs`, `definers`, `recording`, `promises`, `history`, `questions` and `access`. `rows` has the
rows, `tables` the indexes.
"""

import asyncio
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import ClassVar

from everytick.domain.durations import MICROSECOND
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import FARTHEST_AHEAD, STEP, Ahead, NodeScope, StoreAddress
from everytick.stores.memory.access import MemoryAccess
from everytick.stores.memory.promises import bring_promises_back
from everytick.stores.memory.questions import QuestionVerbs
from everytick.stores.memory.recording import Recording


class MemoryStore(Recording, QuestionVerbs):
    """A store whose data end with the process, for tests and for scripts."""

    address: ClassVar[StoreAddress] = StoreAddress("memory")

    @property
    def access(self) -> MemoryAccess:
        """The part of the store that is about people."""
        if self._people is None:
            self._people = MemoryAccess(self, self._now)
        return self._people

    def job_name(self, job_id: str) -> str | None:
        """Return the name of a job, if there is one of this id."""
        row = self._tables.jobs.get(job_id)
        return None if row is None else row.name

    def job_of_occurrence(self, occurrence_id: str) -> str | None:
        """Return the id of the job of an occurrence, if there is one of this id."""
        row = self._tables.occurrences.get(occurrence_id)
        return None if row is None else row.job.id

    async def open(self) -> None:
        """Return: there is nothing to open."""

    async def close(self) -> None:
        """Return: there is nothing to release."""

    async def now(self) -> datetime:
        """Return the store's time. It follows its host's clock, also when that is set back."""
        return self._now()

    async def settle_clock(self) -> list[tuple[str, datetime]]:
        """Correct the times that were written while the clock was ahead. Return the jobs whose watermark lies ahead."""
        now = self._now()
        for parked in [row for rows in self._tables.early.values() for row in rows]:
            if parked.status is OccurrenceStatus.AWAITING_RETRY and parked.updated_at > now + STEP:
                back = parked.updated_at - now
                parked.runs = {
                    task: run if run.resume_at is None else replace(run, resume_at=run.resume_at - back)
                    for task, run in parked.runs.items()
                }
                self._tables.change(parked, ready_at=parked.ready_at - back, updated_at=now)
        jobs = self._tables.jobs.values()
        for row in jobs:
            if row.watermark <= now + STEP and row.was_changed_after(now + STEP):
                self._bring_back(row, now)
                self._revise(row, now)
        for waiting in [occurrence for row in jobs for occurrence in (*row.busy, *row.waiting)]:
            is_unbegun = waiting.status in (OccurrenceStatus.PENDING, OccurrenceStatus.QUEUED)
            if is_unbegun and waiting.created_at > now + STEP and waiting.ready_at > now:
                self._tables.change(waiting, ready_at=now)
        for row in jobs:
            bring_promises_back(row, now, now + STEP)
        if self._was_ahead(now + STEP):
            for row in jobs:
                if row.wake_at is not None and row.wake_at > now:
                    self._wake(row, now)
        ahead = [
            (row.name, row.watermark) for row in jobs if row.removed_at is None and row.watermark > now + FARTHEST_AHEAD
        ]
        return sorted(ahead)

    def _was_ahead(self, moment: datetime) -> bool:
        """Whether a beat, a watermark or the waking of a job has a later time than `moment`."""
        jobs = self._tables.jobs.values()
        woken = [row.wake_at for row in jobs if row.woken != row.planned_woken and row.wake_at is not None]
        beats = [node.beat_at for node in self._nodes.values()]
        return any(at > moment for at in (*beats, *woken, *(row.watermark for row in jobs)))

    async def bell(self, seconds: float) -> bool:
        """Wait up to `seconds` for a hint that something changed. Return whether one came."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    async def ahead(self, scope: NodeScope) -> Ahead:
        """Return when the next job or occurrence of this scope comes, so that a node can sleep until then."""
        now, tables = self._now(), self._tables
        later = [tables.wakes[needs].since((now + MICROSECOND,)) for needs in scope.met if needs in tables.wakes]
        wakes = [row.wake_at for rows in later for row in islice(rows, 1) if row.wake_at is not None]
        early = [tables.early[needs].since((now + MICROSECOND,)) for needs in scope.met if needs in tables.early]
        firsts = [row for rows in early for row in islice(rows, 1)]
        ready = [row.ready_at for row in firsts]
        if self._reaches and (opens_at := self._opens_at(now)) is not None:
            ready.append(opens_at)
        ready_at = min(ready, default=None)
        texts = tuple(sorted(tables.needs)) if len(tables.needs) != scope.seen else ()
        # Alone: no other process shares this memory.
        number = len(self._limit_changes)
        return Ahead(now, min(wakes, default=None), ready_at, texts, alone=True, limit_changes=number)
