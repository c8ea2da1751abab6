"""settle_clock: what is corrected after the store's clock was ahead and was set back."""

from dataclasses import replace
from datetime import datetime

from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import FARTHEST_AHEAD, STEP
from everytick.stores.memory.base import Shared
from everytick.stores.memory.promises import bring_promises_back
from everytick.stores.memory.revising import Revisions, bring_back


class ClockSteps:
    """Times that were written while the clock was ahead."""

    def __init__(self, shared: Shared, revisions: Revisions) -> None:
        self._shared, self._tables, self._revisions = shared, shared.tables, revisions

    def settle(self) -> list[tuple[str, datetime]]:
        """Correct the times that were written while the clock was ahead. Return the jobs whose watermark lies ahead."""
        now = self._shared.now()
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
                bring_back(row, now)
                self._revisions.revise(row, now)
        for waiting in [occurrence for row in jobs for occurrence in (*row.busy, *row.waiting)]:
            is_unbegun = waiting.status in (OccurrenceStatus.PENDING, OccurrenceStatus.QUEUED)
            if is_unbegun and waiting.created_at > now + STEP and waiting.ready_at > now:
                self._tables.change(waiting, ready_at=now)
        for row in jobs:
            bring_promises_back(row, now, now + STEP)
        if self._was_ahead(now + STEP):
            for row in jobs:
                if row.wake_at is not None and row.wake_at > now:
                    self._shared.wake(row, now)
        ahead = [
            (row.name, row.watermark) for row in jobs if row.removed_at is None and row.watermark > now + FARTHEST_AHEAD
        ]
        return sorted(ahead)

    def _was_ahead(self, moment: datetime) -> bool:
        """Whether a beat, a watermark or the waking of a job has a later time than `moment`."""
        jobs = self._tables.jobs.values()
        woken = [row.wake_at for row in jobs if row.woken != row.planned_woken and row.wake_at is not None]
        beats = [node.beat_at for node in self._tables.nodes.values()]
        return any(at > moment for at in (*beats, *woken, *(row.watermark for row in jobs)))
