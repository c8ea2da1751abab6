"""Questions: what is defined, what comes next, what has been, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from everytick.answers.values import JobStatus, UpcomingRun
from everytick.app.outlook import broken_now, outlook
from everytick.app.store_lookups import StoreLookups
from everytick.app.text_reading import moment_of
from everytick.domain.lookups import Breaches, LaterRequests, LimitsAndBrakes, Promises
from everytick.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from everytick.app.history import History
    from everytick.app.stream import Stream
    from everytick.deciding.explanation import Explanation
    from everytick.domain.job import Job
    from everytick.domain.limits import Limits
    from everytick.domain.promises import Breach, BreachRecord, PromiseRecord
    from everytick.domain.snapshots import JobSnapshot, Request
    from everytick.node.events import Listener
    from everytick.node.settings import NodeSettings
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord, NodeRecord, Whole

__all__ = ["JobStatus", "Questions", "UpcomingRun"]

L = TypeVar("L", bound="Listener")

_PROMISES_SHOWN = 10_000
"""Most promises that are listed: three for each of some thousand jobs."""


_RUNS_SEARCHED = 60
"""How many of the newest occurrences of a job are searched for its last end: as many as a page of the job shows."""


class Questions(StoreLookups):
    """The questions; none of them changes anything."""

    settings: NodeSettings

    async def jobs(self, *, removed: bool = False) -> Sequence[JobRecord]:
        """Return every job in the store, of all owners, by name. With `removed`, return removed jobs too.

        The jobs in which proposals are stored are left out: `proposals` lists those.
        """
        from everytick.domain.proposals import OWNER

        records = await (await self._opened()).list(removed=removed)
        return [record for record in records if record.job.owner != OWNER]

    async def _job_record(self, name: str) -> JobRecord:
        """Return the job of this name as the store holds it; `await tick.job(name)` asks for it."""
        return await self._find(await self._opened(), name, storing=False)

    async def now(self) -> datetime:
        """Return the store's time, by which everything is judged."""
        return await (await self._opened()).now()

    async def job_of(self, job_id: str) -> JobRecord:
        """Return the job of this id, in service or removed."""

        found = (await (await self._opened()).get([job_id])).get(job_id)
        if found is None:
            raise NotFound("job", job_id)
        return found

    async def status(self, name: str) -> JobStatus:
        """Return the state of the job: active, paused, enabled, running, and when it runs next."""
        from everytick.domain.statuses import OccurrenceStatus
        from everytick.stores.base import HistoryFilter

        store = await self._opened()
        record = await self._find(store, name, storing=False)
        snapshot = (await store.look([record.job.id]))[record.job.id]
        started = (OccurrenceStatus.RUNNING, OccurrenceStatus.AWAITING_RETRY)
        running = await store.history(HistoryFilter(job_id=record.job.id, statuses=started, limit=1))
        limits, result = await store.ask(LimitsAndBrakes()), (await last_results(store, [record]))[record.job.id]
        found = status_of(record, snapshot, limits, is_running=bool(running.occurrences), last_result=result)
        return replace(found, **await outlook(store, record, snapshot))

    async def statuses(self, records: Sequence[JobRecord]) -> dict[str, JobStatus]:
        """Return the state of many jobs, by id. A job that was removed since is left out.

        Whether one runs is told by what a plan would see: of more than a hundred that are busy, the first hundred.
        """
        from everytick.domain.statuses import OccurrenceStatus

        store = await self._opened()
        seen, limits = await store.look([record.job.id for record in records]), await store.ask(LimitsAndBrakes())
        broken, results = await broken_now(store, records), await last_results(store, records)
        started = (OccurrenceStatus.RUNNING, OccurrenceStatus.AWAITING_RETRY)
        return {
            record.job.id: status_of(
                record,
                snapshot,
                limits,
                is_running=any(occurrence.status in started for occurrence in snapshot.busy),
                breaches=broken.get(record.job.id, ()),
                last_result=results[record.job.id],
            )
            for record in records
            if (snapshot := seen.get(record.job.id)) is not None and snapshot.retire_at is None
        }

    async def next_runs(self, name: str, n: int = 10) -> list[datetime]:
        """Return the times at which the job runs next, up to `n`. Pauses, skips, moves and reschedules count.

        Runs that were asked for at a time are among them. `upcoming` tells which these are.
        """
        return [run.at for run in await self.upcoming(name, n)]

    async def upcoming(self, name: str, n: int = 10, *, skipped: bool = False) -> list[UpcomingRun]:
        """Return the next runs of the job, up to `n`: of its schedule, and those that were asked for at a time.

        With `skipped`, the instants that a person has skipped are listed among them, each with its mark.
        """
        store = await self._opened()
        job_id = (await self._find(store, name, storing=False)).job.id
        snapshot, now = (await store.look([job_id]))[job_id], await store.now()
        return await upcoming_of(store, snapshot, now, n, skipped=skipped)

    async def instants(
        self, name: str, after: datetime | str, through: datetime | str, limit: int | None = None
    ) -> Sequence[datetime]:
        """Return the instants in `(after, through]` that the job's schedule names, whether they run or not."""
        record = await self._find(await self._opened(), name, storing=False)
        ended = None if record.last_end is None else record.last_end.ended_at
        return record.job.bound(ended).instants(moment_of(after), moment_of(through), limit)

    async def history(
        self,
        name: str | None = None,
        *,
        status: str | Iterable[str] | None = None,
        cause: str | None = None,
        after: datetime | str | None = None,
        through: datetime | str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> History:
        """Return a page of the history, newest first. `async for` goes on with the pages after it."""
        from everytick.app.history import history_query, read_history

        store = await self._opened()
        record = None if name is None else await self._find_past(store, name)
        query = history_query(record, status, cause, after, through, limit)
        return await read_history(store, query, cursor)

    async def occurrence(self, occurrence_id: str) -> Whole:
        """Return one occurrence with its runs and attempts."""
        return await (await self._opened()).whole(occurrence_id)

    async def nodes(self) -> Sequence[NodeRecord]:
        """Return the nodes of the store, each with its last beat."""
        from everytick.stores.base import Nodes

        return await (await self._opened()).ask(Nodes())

    async def promises(self, name: str | None = None) -> Sequence[PromiseRecord]:
        """Return what a job, or every job, has promised, and whether it is broken now; soonest check first."""
        store = await self._opened()
        job_ids = None if name is None else [(await self._find(store, name, storing=False)).job.id]
        return await store.ask(Promises(job_ids, _PROMISES_SHOWN))

    async def breaches(
        self, name: str | None = None, *, is_open: bool = False, limit: int = 100
    ) -> Sequence[BreachRecord]:
        """Return the promises that a job, or any job, has broken, newest first; with `is_open` those that still are."""
        from everytick.domain.policy_checks import whole

        store = await self._opened()
        job_id = None if name is None else (await self._find_past(store, name)).job.id
        return await store.ask(Breaches(job_id, is_open, whole("limit", limit, 1, 1000)))

    async def explain(self, name: str, at: datetime | str) -> Explanation:
        """Explain what happened to one instant of a job, or will happen, and why."""
        from everytick.app.evidence import evidence_of
        from everytick.deciding.explain import explain

        store = await self._opened()
        record = await self._find_past(store, name)
        return explain(await evidence_of(store, record, moment_of(at), self.settings.node_timeout))

    def events(self, name: str | None = None) -> Stream:
        """Give the events of this node from now on, of one job or of all: `async for event in tick.events()`."""
        from everytick.app.stream import Stream

        return Stream(self._listeners, name)

    def on_event(self, listener: L) -> L:
        """Call the function with every event of this node, on its loop; what it raises is logged."""
        self._listeners.listen(listener)
        return listener


async def upcoming_of(
    store: AnyStore, snapshot: JobSnapshot, now: datetime, n: int, *, skipped: bool = False
) -> list[UpcomingRun]:
    """Return the next runs of the job of this snapshot; with `skipped`, those that a person has skipped too."""
    asked = await store.ask(LaterRequests([snapshot.job_id], n))
    return upcoming_among(asked, snapshot, now, n, skipped=skipped)


def upcoming_among(
    asked: Sequence[tuple[str, Request]], snapshot: JobSnapshot, now: datetime, n: int, *, skipped: bool = False
) -> list[UpcomingRun]:
    """Return the same from the requests for later that were read."""
    from everytick.domain.upcoming import coming_runs, skipped_by_hand

    job_id = snapshot.job_id
    scheduled = coming_runs(snapshot, now, n) + (skipped_by_hand(snapshot, now) if skipped else [])
    runs = [UpcomingRun(run.at, None, run.detail, run.mark, run.instant, run.queue) for run in scheduled]
    runs += [UpcomingRun(request.line_at, request.occurrence_id(job_id), request.detail) for _, request in asked]
    return sorted(runs, key=lambda run: run.at)[:n]


def _waits(job: Job, snapshot: JobSnapshot, limits: Limits) -> str:
    """Return which brake holds for the job, or for which limit an occurrence of it waits."""
    from everytick.domain.limits import reaches_of_job
    from everytick.domain.statuses import OccurrenceStatus

    settings = job.settings
    held = limits.held_back(reaches_of_job(settings.tags, job.name, settings.queue)) if limits.reaches else None
    if held is None:
        return ""
    is_waiting = any(occurrence.status is OccurrenceStatus.PENDING for occurrence in snapshot.busy)
    return held.closed if is_waiting or held.reach.brake(limits.now) is not None else ""


def status_of(
    record: JobRecord,
    snapshot: JobSnapshot,
    limits: Limits,
    *,
    is_running: bool,
    last_result: str | None,
    breaches: tuple[Breach, ...] = (),
) -> JobStatus:
    """Return the state of a job as of the moment of these limits."""
    from everytick.deciding.activity import is_active
    from everytick.domain.upcoming import next_run

    now = limits.now
    job, active = record.job, is_active(snapshot, now)
    return JobStatus(
        name=job.name,
        version=job.version,
        is_active=active,
        is_paused=record.pause is not None,
        is_enabled=active and job.enabled and record.pause is None,
        is_running=is_running,
        next_run=next_run(snapshot, now),
        last_run=None if record.last_end is None else record.last_end.started_at,
        run_count=record.run_count,
        last_error=record.last_error,
        breaches=breaches,
        waits=_waits(job, snapshot, limits),
        last_result=last_result,
    )


async def last_results(store: AnyStore, records: Sequence[JobRecord]) -> dict[str, str | None]:
    """Return how the last occurrence of each job ended, by id: completed, failed or canceled; None if none has.

    A job remembers whether it ended well. Of the others the newest occurrences tell which were canceled, as by a
    stop: behind more than `_RUNS_SEARCHED` that were skipped since, one counts as failed.
    """
    from everytick.domain.questions import MOST_LAST_RUNS, LastRuns

    bad = [record.job.id for record in records if record.ended_badly]
    canceled: set[tuple[str, datetime]] = set()
    at_once = MOST_LAST_RUNS // _RUNS_SEARCHED
    for first in range(0, len(bad), at_once):
        answer = await store.ask(LastRuns(tuple(bad[first : first + at_once]), _RUNS_SEARCHED))
        found = (run for runs in answer.values() for run in runs if run.status == "canceled")
        canceled.update((run.job_id, run.ended_at) for run in found if run.ended_at is not None)
    return {record.job.id: _last_result(record, canceled) for record in records}


def _last_result(record: JobRecord, canceled: set[tuple[str, datetime]]) -> str | None:
    if record.last_end is None:
        return None
    if not record.ended_badly:
        return "completed"
    return "canceled" if (record.job.id, record.last_end.ended_at) in canceled else "failed"
