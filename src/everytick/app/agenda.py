"""The agenda of all jobs, and the proposal that spreads their starts. Neither changes anything; `apply_spread` does."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from everytick.app.versions import JobVersions
from everytick.domain.values import value
from everytick.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, timedelta

    from everytick.app.previews import Preview
    from everytick.deciding.spreading import Movable
    from everytick.domain.agenda import AgendaJob, FleetAgenda, Spreading
    from everytick.domain.changes import Change
    from everytick.domain.job import Job
    from everytick.domain.upcoming import ComingRun
    from everytick.node.settings import NodeSettings
    from everytick.stores.base import JobRecord

_SECONDS = 1.5
"""How long an agenda counts instants. Beyond that it says how many jobs it has left out."""

MOST_STORED = 200
"""Most schedules that one plan changes: one transaction, and one page to read before."""

_LOOKED_AT = 50
"""How many runs to come of one job are looked through for what a person has said of them."""


@value(frozen=True)
class SpreadMove:
    """A proposed change of one schedule. `where` says who defines the job, if the change has to be written there."""

    job: str
    before: str
    after: str
    moved: tuple[timedelta, timedelta]
    window: timedelta
    where: str = ""


@value(frozen=True)
class SpreadPlan:
    """Offsets that flatten the peak: the load before and after, and the schedules that change.

    `fixed` is how many jobs name no window and stay where they are. `preview` is what `apply_spread` stores, under its
    hash: the first 200 changes of jobs that neither code nor a file defines. It is None if there are none.
    """

    load: Spreading
    moves: tuple[SpreadMove, ...]
    fixed: int
    preview: Preview | None = None


class Agendas(JobVersions):
    """The planned starts of all jobs together."""

    settings: NodeSettings

    async def agenda(
        self,
        *,
        seconds: float = _SECONDS,
        records: Sequence[JobRecord] | None = None,
        is_ended: Callable[[], bool] = bool,
    ) -> FleetAgenda:
        """Return the planned starts of the coming seven days. After so many `seconds` it leaves jobs uncounted.

        It is that of these jobs, by default of all. Once `is_ended` answers True it counts no more either.
        """
        from asyncio import to_thread

        from everytick.deciding.agenda import agenda_of

        now = await (await self._opened()).now()
        slots, jobs, until = await self._slots(now), await self._planned_jobs(records), monotonic() + seconds
        return await to_thread(agenda_of, jobs, now, slots=slots, is_over=lambda: is_ended() or monotonic() > until)

    async def _slots(self, now: datetime) -> int:
        """Return how many slots the living nodes have together."""
        from everytick.stores.base import Nodes

        nodes = await (await self._opened()).ask(Nodes())
        living = [node.facts for node in nodes if node.is_alive(now, self.settings.node_timeout)]
        return sum(facts.slots for facts in living if facts is not None)

    async def _planned_jobs(self, records: Sequence[JobRecord] | None = None) -> list[AgendaJob]:
        """Return every job that has a schedule, with its usual lengths."""
        from everytick.domain.agenda import AgendaJob
        from everytick.domain.notices import OWNER as NOTICES
        from everytick.domain.proposals import OWNER as PROPOSALS
        from everytick.domain.questions import Lengths

        store = await self._opened()
        lengths = await store.ask(Lengths())
        return [
            AgendaJob(
                record.job,
                None if record.last_end is None else record.last_end.ended_at,
                lengths.get(record.job.id),
                record.pause,
            )
            for record in (await store.list() if records is None else records)
            if record.job.owner not in (PROPOSALS, NOTICES) and record.retire_at is None
        ]

    async def set_by_hand(self, job_ids: Sequence[str]) -> dict[str, tuple[ComingRun, ...]]:
        """Return the runs to come of these jobs that a person has skipped, moved, amended or rescheduled, by job id."""
        from everytick.domain.upcoming import coming_runs, skipped_by_hand

        store = await self._opened()
        now = await store.now()
        found: dict[str, tuple[ComingRun, ...]] = {}
        for id_, snapshot in (await store.look(list(job_ids))).items():
            if snapshot.adjustments or snapshot.reschedule is not None:
                number = len(snapshot.adjustments) + _LOOKED_AT
                coming = [run for run in coming_runs(snapshot, now, number) if run.mark is not None]
                found[id_] = (*skipped_by_hand(snapshot, now), *coming)
        return found

    async def spread_plan(self, allow: timedelta | str | None = None) -> SpreadPlan:
        """Propose offsets within the window of each job that flatten the peak of the coming seven days.

        The window of a job is its `spread`. `allow` is the window of jobs that name none; without it these stay.
        Minutes that need no more than half of the slots are left as they are.
        Nothing is stored: `apply_spread` takes the hash of the plan.
        """
        from asyncio import to_thread

        from everytick.deciding.agenda import WEEK
        from everytick.deciding.spreading import moved_schedule, spread
        from everytick.domain.durations import duration

        window = None if allow is None else duration(allow)
        now = (await (await self._opened()).now()).replace(second=0, microsecond=0)
        planned = {job.job.name: job for job in await self._planned_jobs() if job.job.enabled and not job.pause}
        movable = await to_thread(_movable, list(planned.values()), now, window)
        enough = max(await self._slots(now) // 2, 1)
        load = await to_thread(partial(spread, movable, now, now + WEEK, enough=enough))
        windows = {job.name: job.window for job in movable}
        moves = []
        for move in load.moves:
            job = planned[move.name].job
            rule = moved_schedule(job, windows[move.name], move.after)
            pair = (move.before, move.after)
            moves.append(SpreadMove(job.name, str(job.schedule), str(rule), pair, windows[job.name], self._where(job)))
        ours = {move.job: move.after for move in [move for move in moves if not move.where][:MOST_STORED]}
        preview = await self._spread_preview(ours) if ours else None
        return SpreadPlan(load, tuple(moves), sum(not job.window for job in movable), preview)

    async def apply_spread(
        self, schedules: Mapping[str, str], plan: str, *, confirmed: bool = False, by: str | None = None
    ) -> list[Change]:
        """Store the schedules of a plan, by job: all of them as its hash has shown, or nothing.

        A job that code or a file defines is refused: change it there.
        """
        jobs = await self._rescheduled(schedules)
        return await self._apply(jobs, set(), dry_run=False, by=self._by(by), plan=plan, confirmed=confirmed)

    async def _spread_preview(self, schedules: Mapping[str, str]) -> Preview:
        return await self.preview(await self._rescheduled(schedules))

    async def _rescheduled(self, schedules: Mapping[str, str]) -> list[Job]:
        """Return these jobs with these schedules; the window stands in the schedule then, and no longer beside it."""
        from everytick.app.text_reading import schedule_of
        from everytick.sources.drafting import edited

        store = await self._opened()
        found = []
        for name, text in sorted(schedules.items()):
            job = (await self._find(store, name)).job
            self._refuse_defined_elsewhere(job, detach=False)
            beside = {} if job.settings.spread is None else {"spread": None}
            found.append(replace(edited(job, schedule_of(text), beside), version=job.version))
        return found

    def _where(self, job: Job) -> str:
        """Return who defines the job if that is not the API."""
        try:
            self._refuse_defined_elsewhere(job, detach=False)
        except Conflict:
            return job.owner
        return ""


def _movable(planned: Sequence[AgendaJob], now: datetime, allow: timedelta | None) -> list[Movable]:
    """Return the jobs with their instants of the coming seven days, and how far each may be moved."""
    from everytick.deciding.agenda import WEEK
    from everytick.deciding.spreading import movable

    jobs = (movable(known.job, known.last_end, known.lengths, now, now + WEEK, allow=allow) for known in planned)
    return [job for job in jobs if job is not None]
