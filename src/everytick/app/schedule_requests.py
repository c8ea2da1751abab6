"""What people ask of a job's schedule: pause, resume, reschedule, rewind, skip and move.

Each is stored as a fact; a plan decides what follows from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from everytick.app.lookups import future, now_or_later
from everytick.app.requests import Requests
from everytick.errors import InvalidInstant, shown

if TYPE_CHECKING:
    from datetime import datetime

    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord


class ScheduleRequests(Requests):
    """Requests about the schedule; `by` says who asks and is stored with the fact: by default this application."""

    async def pause(
        self,
        name: str,
        *,
        until: datetime | str | None = None,
        reason: str = "",
        missed: Literal["skip", "catch_up"] = "skip",
        by: str | None = None,
    ) -> None:
        """Hold the schedule from now on. Its instants are skipped, or run after the resume if `missed` says so."""
        from everytick.domain.facts import Pause
        from everytick.domain.reading import choice
        from everytick.domain.snapshots import Missed

        what = choice("missed", Missed, missed)
        store = await self._opened()
        record = await self._find(store, name)
        end = None if until is None else future("the end of a pause", until, await store.now())
        await store.request(record.job.id, Pause(end, what, reason, self._by(by)))

    async def resume(self, name: str, *, by: str | None = None) -> bool:
        """End a pause now. Return whether there was one."""
        from everytick.domain.facts import Resume

        store = await self._opened()
        job_id = (await self._find(store, name)).job.id
        return (await store.request(job_id, Resume(self._by(by)))).changed

    async def reschedule(self, name: str, at: datetime | str, *, by: str | None = None) -> None:
        """Set the next run; the instants before it give way, those after it stay.

        A time of the last minute means now.
        """
        from everytick.domain.facts import Reschedule

        store = await self._opened()
        record = await self._find(store, name)
        to = now_or_later("the next run", at, await store.now())
        if to == record.watermark:
            # An instant at this very moment is planned already, and the run would have its id.
            from everytick.domain.upcoming import TICK

            to += TICK
        await store.request(record.job.id, Reschedule(to, self._by(by)))

    async def rewind(self, name: str, *, by: str | None = None) -> bool:
        """Let a job go on now that was decided ahead while a clock was wrong; return whether it lay ahead.

        What has run stays so. What was recorded as not run is decided anew by the newest
        definition, and single instants of that time that were skipped or moved are forgotten.
        """
        import logging

        from everytick.domain.facts import Rewind

        store = await self._opened()
        record = await self._find(store, name)
        is_ahead = (await store.request(record.job.id, Rewind())).changed
        if is_ahead:
            text = "job '%s' was decided through %s and goes on now, by %s"
            logging.getLogger("everytick.app").warning(text, name, record.watermark.isoformat(), self._by(by))
        return is_ahead

    async def skip(self, name: str, at: datetime | str, *, reason: str = "", by: str | None = None) -> None:
        """Skip one upcoming run."""
        from everytick.domain.facts import Skip

        store = await self._opened()
        record = await self._find(store, name)
        instant = await self._coming(store, record, at)
        await store.request(record.job.id, Skip(instant, reason, self._by(by)))

    async def move(
        self, name: str, at: datetime | str, to: datetime | str, *, reason: str = "", by: str | None = None
    ) -> None:
        """Let one single future instant run at another time; it keeps its id.

        To its own time it is moved back: that undoes a skip or a move of it.
        """
        from everytick.domain.facts import Move, Undo

        store = await self._opened()
        record = await self._find(store, name)
        instant = await self._coming(store, record, at)
        target = future("where an instant is moved", to, await store.now())
        if target == instant and not await _is_moved_away(store, record.job.id, instant):
            raise InvalidInstant(to, "is where it stands already: give another time, or leave it")
        by = self._by(by)
        fact = Undo(instant, reason, by) if target == instant else Move(instant, target, reason, by)
        await store.request(record.job.id, fact)

    async def _coming(self, store: AnyStore, record: JobRecord, at: datetime | str) -> datetime:
        """Return the instant if it is in the future and the schedule names it."""
        instant = future("one single instant", at, await store.now())
        schedule = record.job.bound(None if record.last_end is None else record.last_end.ended_at)
        if schedule.last_at(instant) != instant:
            near = [schedule.last_at(instant), schedule.next_after(instant)]
            said = " and ".join(nearby.isoformat() for nearby in near if nearby is not None) or "none"
            reason = f"is not named by the schedule of job '{shown(record.job.name)}'; the nearest instants are {said}"
            raise InvalidInstant(at, reason)
        return instant


async def _is_moved_away(store: AnyStore, job_id: str, instant: datetime) -> bool:
    """Whether the instant is skipped or moved. One that has run at its new time stays moved."""
    snapshot = (await store.look([job_id]))[job_id]
    return any(
        adjustment.at == instant and adjustment.vacates and not adjustment.done for adjustment in snapshot.adjustments
    )
