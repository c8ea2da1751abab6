"""Previews of requests about a schedule: what a pause, a resume, a skip or a move would mean for the runs to come.

Nothing is stored. What the request itself would refuse is refused here with the same words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from everytick.app.schedule_requests import ScheduleRequests, coming_instant, next_run_at, set_to, spoken_of
from everytick.app.text_reading import future, moment_of
from everytick.domain.values import value

if TYPE_CHECKING:
    from datetime import datetime

    from everytick.deciding.revise import Revision
    from everytick.domain.facts import Adjusts, Pause, Reschedule, Resume, UndoReschedule
    from everytick.domain.snapshots import JobSnapshot, MissedWord
    from everytick.stores.addresses import AnyStore

    Foreseen: TypeAlias = Pause | Resume | Reschedule | UndoReschedule | Adjusts


@value(frozen=True)
class SchedulePreview:
    """What a request about the schedule would change: the runs to come, and how many late instants run at once."""

    runs: Revision
    caught_up: int = 0


class SchedulePreviews(ScheduleRequests):
    """What requests about a schedule would mean, each by the name of the request."""

    async def preview_pause(self, name: str, *, until: datetime | str | None = None) -> SchedulePreview:
        """Return which runs to come a pause from now on would hold."""
        from everytick.domain.facts import Pause

        store = await self._opened()
        job_id = (await self._find(store, name)).job.id
        end = None if until is None else future("the end of a pause", until, await store.now())
        return await _foreseen(store, job_id, Pause(end))

    async def preview_resume(self, name: str, *, missed: MissedWord | None = None) -> SchedulePreview:
        """Return which runs to come the end of the pause would bring back, and how many would be caught up at once."""
        from everytick.domain.facts import Resume
        from everytick.domain.policy_checks import choice
        from everytick.domain.snapshots import Missed

        what = None if missed is None else choice("missed", Missed, missed)
        store = await self._opened()
        return await _foreseen(store, (await self._find(store, name)).job.id, Resume("", what))

    async def preview_reschedule(self, name: str, at: datetime | str) -> SchedulePreview:
        """Return which runs to come would give way to a next run at this time."""
        from everytick.domain.facts import Reschedule

        store = await self._opened()
        record = await self._find(store, name)
        return await _foreseen(store, record.job.id, Reschedule(await next_run_at(store, record, at)))

    async def preview_skip(self, name: str, at: datetime | str) -> SchedulePreview:
        """Return what a skip of one instant would change."""
        from everytick.domain.facts import Skip

        store = await self._opened()
        record = await self._find(store, name)
        return await _foreseen(store, record.job.id, Skip(await coming_instant(store, record, at)))

    async def preview_move(self, name: str, at: datetime | str, to: datetime | str) -> SchedulePreview:
        """Return what a move of one instant would change."""
        from everytick.domain.facts import Move

        store = await self._opened()
        record = await self._find(store, name)
        instant = await coming_instant(store, record, at)
        target = future("where an instant is moved", to, await store.now())
        return await _foreseen(store, record.job.id, Move(instant, target))

    async def preview_undo(self, name: str, at: datetime | str) -> SchedulePreview:
        """Return what would change if nothing had been said of the run at this time."""
        from everytick.domain.facts import Undo, UndoReschedule

        store, moment = await self._opened(), moment_of(at)
        job_id = (await self._find(store, name)).job.id
        snapshot = (await store.look([job_id]))[job_id]
        facts: list[Foreseen] = [Undo(adjustment.at) for adjustment in spoken_of(snapshot, moment)]
        return await _foreseen(store, job_id, *facts, *map(UndoReschedule, set_to(snapshot, moment)))


async def _foreseen(store: AnyStore, job_id: str, *facts: Any) -> SchedulePreview:
    """Return what follows for the runs to come once these facts are told, one after another."""
    from everytick.deciding.guards import created_at_once
    from everytick.deciding.revise import revise, with_fact

    before: JobSnapshot = (await store.look([job_id]))[job_id]
    now, after = await store.now(), before
    for fact in facts:
        after = with_fact(after, fact, now)
    return SchedulePreview(revise(before, after, now), created_at_once(before, after, now))
