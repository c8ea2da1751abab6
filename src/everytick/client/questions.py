"""Questions to a service, each with the name and the answer that it has in an application."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from everytick.answers import fleet, jobs, occurrences, runs_to_come
from everytick.answers.values import JobStatus, JobVersion, NodeReports, RolloutStatus, UpcomingRun, VersionDiff
from everytick.answers.wire import moment, value_of
from everytick.client.handles import RemoteHistory
from everytick.client.service_calls import ServiceCalls, events_of
from everytick.deciding.coverage import CoverageLedger
from everytick.domain.agenda import AgendaOverview
from everytick.domain.durations import format_duration
from everytick.domain.promise_policies import PromiseKind
from everytick.domain.promises import BreachRecord, PromiseRecord, PromiseState
from everytick.domain.questions import Bucket, DayTally, FailureKind, Glance, Glances, JobLengths, QueueLoad, Tally
from everytick.domain.rollouts import rollout
from everytick.errors import NotFound
from everytick.node.events import Event

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Sequence

    from everytick.client.client import Client
    from everytick.deciding.explanation import Explanation
    from everytick.domain.backfills import BackfillRecord
    from everytick.domain.limits import Limits
    from everytick.domain.occurrence import Occurrence
    from everytick.domain.proposals import Proposal
    from everytick.stores.base import JobRecord, NodeRecord, Whole

_PAGE_ROWS = 1_000
"""How many jobs one request asks for: the most that a service gives."""


def time_text(given: datetime | str | None) -> str | None:
    """Return a time as a request names it. A text is left to the service to read."""
    if isinstance(given, datetime):
        from everytick.domain.durations import instant

        return instant(given).isoformat()
    return given


def length_text(given: timedelta | str | None) -> str | None:
    """Return a length of time as a request names it."""
    return format_duration(given) if isinstance(given, timedelta) else given


class RemoteQuestions:
    """The questions; none of them changes anything."""

    _asking: ServiceCalls

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._unkept: dict[str, tuple[PromiseKind, ...]] = {}

    # ------------------------------------------------------------------------------------------------------------ jobs

    async def jobs(self, *, removed: bool = False) -> Sequence[JobRecord]:
        """Return every job in the store, of all owners, by name. With `removed`, return removed jobs too."""
        records = [jobs.record_of(entry["record"]) for entry in await self._listed(removed=removed, with_record=True)]
        self._names |= {record.job.id: record.job.name for record in records}
        return records

    async def _listed(self, *, removed: bool = False, with_record: bool = False) -> list[Any]:
        items: list[Any] = []
        query = {"all": "true", "removed": removed or None, "with": "record" if with_record else None}
        cursor = None
        while True:
            page = await self._asking.read("/api/jobs", **query, limit=_PAGE_ROWS, cursor=cursor)
            items += page["items"]
            cursor = page["cursor"]
            if cursor is None:
                return items

    async def job(self, name: str) -> JobRecord:
        """Return the job of this name as the store holds it."""
        return jobs.record_of((await self._asking.read("/api/jobs/{}", name, **{"with": "record"}))["record"])

    async def status(self, name: str) -> JobStatus:
        """Return the state of the job: active, paused, enabled, running, and when it runs next."""
        return jobs.status_of(await self._asking.read("/api/jobs/{}", name))

    async def statuses(self, records: Sequence[JobRecord]) -> dict[str, JobStatus]:
        """Return the state of many jobs, by id. A job that was removed since is left out."""
        known = {entry["id"]: entry for entry in await self._listed()}
        wanted = [record.job.id for record in records if record.job.id in known]
        return {id_: jobs.status_of(known[id_]) for id_ in wanted}

    async def job_names(self, job_ids: Iterable[str]) -> dict[str, str]:
        """Return the names of jobs by their ids, also of those that were removed. An unknown id is its own name."""
        wanted = set(job_ids)
        if not wanted <= self._names.keys():
            self._names |= {entry["id"]: entry["name"] for entry in await self._listed(removed=True)}
        return {id_: self._names.get(id_, id_) for id_ in wanted}

    async def next_runs(self, name: str, n: int = 10) -> list[datetime]:
        """Return the times at which the job runs next, up to `n`."""
        return [run.at for run in await self.upcoming(name, n)]

    async def upcoming(self, name: str, n: int = 10, *, skipped: bool = False) -> list[UpcomingRun]:
        """Return the next runs of the job, up to `n`, with what people did to them."""
        runs = await self._asking.read("/api/jobs/{}/next", name, n=n, skipped=_flag(skipped))
        return [jobs.upcoming_of(run) for run in runs]

    async def instants(
        self, name: str, after: datetime | str, through: datetime | str, limit: int | None = None
    ) -> Sequence[datetime]:
        """Return the instants in `(after, through]` that the job's schedule names, whether they run or not."""
        query = {"after": time_text(after), "through": time_text(through), "limit": limit}
        return _moments(await self._asking.read("/api/jobs/{}/instants", name, **query))

    async def promises(self, name: str | None = None) -> Sequence[PromiseRecord]:
        """Return what a job, or every job, has promised, and whether it is broken now; soonest check first."""
        records = await self._asking.read("/api/promises", job=name)
        return [
            PromiseRecord(record["job_id"], record["job"], value_of(PromiseState, record["state"]))
            for record in records
        ]

    async def breaches(
        self, name: str | None = None, *, is_open: bool = False, limit: int = 100
    ) -> Sequence[BreachRecord]:
        """Return the promises that a job, or any job, has broken, newest first; with `is_open` those that still are."""
        query = {"is_open": _flag(is_open), "limit": limit}
        if name is None:
            records = await self._asking.read("/api/breaches", **query)
        else:
            records = await self._asking.read("/api/jobs/{}/breaches", name, **query)
        return [BreachRecord(record["job_id"], record["job"], jobs.breach_of(record)) for record in records]

    async def explain(self, name: str, at: datetime | str) -> Explanation:
        """Explain what happened to one instant of a job, or will happen, and why."""
        explanation = await self._asking.read("/api/jobs/{}/explanation", name, at=time_text(at))
        return occurrences.explanation_of(explanation)

    async def versions(self, name: str, n: int = 20) -> list[JobVersion]:
        """Return the newest `n` versions of a job, the newest first, with what each changed."""
        return [jobs.version_of(version) for version in await self._asking.read("/api/jobs/{}/versions", name, n=n)]

    async def compare(self, name: str, old: int, new: int) -> VersionDiff:
        """Return what differs between two versions of a job, and what that would mean for the runs to come."""
        return runs_to_come.diff_of(await self._asking.read("/api/jobs/{}/difference", name, old=old, new=new))

    async def rollout(self, name: str) -> RolloutStatus | None:
        """Return the rollout of a job, or None if no version of it is on trial."""
        status = (await self._asking.read("/api/jobs/{}/rollout", name))["rollout"]
        if status is None:
            return None
        since = moment(status["since"])
        assert since is not None, "a rollout has a beginning"
        counts = status["well"], status["failed"], status["created"]
        return RolloutStatus(name, status["version"], status["in_force"], rollout(status["rollout"]), since, *counts)

    async def coverage(self, job: str, after: datetime | str, through: datetime | str) -> CoverageLedger:
        """Return which instants in `(after, through]` are done, missing, under way, done twice or unknown."""
        query = {"after": time_text(after), "through": time_text(through)}
        return value_of(CoverageLedger, await self._asking.read("/api/jobs/{}/coverage", job, **query))

    async def days(self, job: str, year: int) -> tuple[DayTally, ...]:
        """Return how each UTC day of a year ended for the job; days without an end are left out."""
        return value_of(tuple[DayTally, ...], await self._asking.read("/api/jobs/{}/days", job, year=year))

    # ----------------------------------------------------------------------------------------------------- occurrences

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
    ) -> RemoteHistory:
        """Return a page of the history, newest first. `async for` goes on with the pages after it."""
        words = [status] if isinstance(status, str) else None if status is None else list(status)
        times = {"after": time_text(after), "through": time_text(through)}
        asked = {"job": name, "status": words, "cause": cause, **times, "limit": limit, "cursor": cursor}
        return await self.read_history(asked)

    async def read_history(self, asked: dict[str, Any]) -> RemoteHistory:
        """Return the page that is asked for in the words of the API."""
        page = await self._asking.read("/api/occurrences", **asked)
        for entry in page["items"]:
            self._names[entry["job_id"]] = entry["job"]
            if entry["broken_promises"]:
                self._unkept[entry["id"]] = tuple(map(PromiseKind, entry["broken_promises"]))
        listed = [occurrences.occurrence_of(entry) for entry in page["items"]]
        return RemoteHistory(_client(self), asked, listed, page["cursor"])

    async def unkept(self, occurrences: Collection[Occurrence]) -> dict[str, tuple[PromiseKind, ...]]:
        """Return the promises that were broken for these entries of the history, by their ids.

        The service tells it with each page of the history.
        """
        return {
            occurrence.id: self._unkept[occurrence.id] for occurrence in occurrences if occurrence.id in self._unkept
        }

    async def occurrence(self, occurrence_id: str) -> Whole:
        """Return one occurrence with its runs and attempts."""
        return await self.entry(occurrence_id)

    async def entry(self, occurrence_id: str) -> Whole:
        """Return an entry of the history: an occurrence, or an instant that did not run and so has no attempts."""
        entry = await self._asking.read("/api/occurrences/{}", occurrence_id)
        self._names[entry["job_id"]] = entry["job"]
        return occurrences.whole_of_data(entry)

    async def payload_of(self, occurrence: Occurrence) -> Any:
        """Return the payload that an occurrence runs with."""
        return (await self._asking.read("/api/occurrences/{}", occurrence.id))["payload"]

    async def output(
        self, whole: Whole, *, task: str | None = None, attempt: int | None = None, most: int = 0
    ) -> bytes:
        """Return what the tasks of an occurrence wrote, as far as the service's host has it: its last mebibyte."""
        output = await self._asking.text("/api/occurrences/{}/output", whole.occurrence.id, task=task, attempt=attempt)
        return output[-most:] if most else output

    async def output_from(self, whole: Whole, task: str, attempt: int, start: int) -> bytes | None:
        """Return the output of an attempt from byte `start` on, a part of it; None if the service's host has none."""
        asked = {"task": task, "attempt": attempt, "start": str(start)}
        try:
            return await self._asking.text("/api/occurrences/{}/output", whole.occurrence.id, **asked)
        except NotFound:
            return None

    async def occurrences_beginning(self, beginning: str) -> set[str]:
        """Return the ids of occurrences that begin with these digits: two of them at most."""
        return set((await self._asking.read("/api/occurrences/beginning/{}", beginning))["ids"])

    def events(self, name: str | None = None) -> AsyncIterator[Event]:
        """Give what happens from now on, of one job or of all: `async for event in client.events()`.

        A connection that is lost is made again, and goes on after the last event that came.
        """
        return self._events(name)

    async def _events(self, name: str | None) -> AsyncIterator[Event]:
        last = ""
        while True:
            headers = {"last-event-id": last} if last else {}
            async with self._asking.stream("/api/events", headers, job=name) as answer:
                async for id_, kind, data in events_of(answer.aiter_lines()):
                    last = id_ or last
                    if kind == "event":
                        yield value_of(Event, data)
                    elif kind == "end":
                        return

    # ------------------------------------------------------------------------------------------------------- the fleet

    async def now(self) -> datetime:
        """Return the store's time."""
        now = moment((await self._asking.read("/api"))["now"])
        assert now is not None, "a store has a time"
        return now

    async def nodes(self) -> Sequence[NodeRecord]:
        """Return the nodes of the store, each with its last beat."""
        return [fleet.node_of(node) for node in await self._asking.read("/api/nodes")]

    async def queues(self) -> tuple[QueueLoad, ...]:
        """Return the queues that living nodes serve or that occurrences wait in, by name."""
        return value_of(tuple[QueueLoad, ...], await self._asking.read("/api/queues"))

    async def reports(self, records: Sequence[JobRecord] | None = None) -> NodeReports:
        """Return the broken files and unknown jobs that living nodes report, and the jobs that the store has parked."""
        reports = await self._asking.read("/api/reports")
        names = None if records is None else {record.job.name for record in records}
        unknown = {name: why for name, why in reports["unknown"].items() if names is None or name in names}
        return NodeReports(reports["files"], reports["of_job"], unknown, reports["parked"], reports["living"])

    async def limits(self) -> Limits:
        """Return the limits and brakes of the store, how far each is used, and who changed them last."""
        return fleet.limits_of(await self._asking.read("/api/limits"))

    async def proposals(self) -> list[Proposal]:
        """Return the changes that wait for the approval of a second person, oldest first."""
        return [fleet.proposal_of(proposal) for proposal in await self._asking.read("/api/proposals")]

    async def backfills(self, name: str | None = None, *, limit: int = 100) -> Sequence[BackfillRecord]:
        """Return the newest backfills, of one job or of all, newest first; at most 1,000."""
        return [
            fleet.backfill_of(backfill) for backfill in await self._asking.read("/api/backfills", job=name, limit=limit)
        ]

    async def read_backfill(self, id: str) -> BackfillRecord:
        """Return the backfill of this id."""
        return fleet.backfill_of(await self._asking.read("/api/backfills/{}", id))

    # ------------------------------------------------------------------------------------------------------- overviews

    async def window(
        self,
        after: datetime | str,
        through: datetime | str,
        *,
        limit: int = 5_000,
        jobs: Iterable[str] | None = None,
    ) -> Glances:
        """Return the occurrences with their instant in `(after, through]`, newest first, and earlier ones that run."""
        query = {"after": time_text(after), "through": time_text(through), "limit": limit, "jobs": _list(jobs)}
        return value_of(Glances, await self._asking.read("/api/overviews/window", **query))

    async def buckets(
        self,
        after: datetime | str,
        through: datetime | str,
        step: timedelta | str = "5m",
        *,
        by: str = "all",
        jobs: Iterable[str] | None = None,
    ) -> tuple[Bucket, ...]:
        """Return how many occurrences of each status each step of time has. Steps without any are left out."""
        times = {"after": time_text(after), "through": time_text(through), "step": length_text(step)}
        buckets = await self._asking.read("/api/overviews/buckets", **times, by=by, jobs=_list(jobs))
        return value_of(tuple[Bucket, ...], buckets)

    async def agenda(self, *, crowds: int = 20) -> AgendaOverview:
        """Return the planned starts of the coming seven days, with so many crowds. It may be some minutes old."""
        return value_of(AgendaOverview, await self._asking.read("/api/agenda", crowds=crowds))

    async def lengths(self, jobs: Iterable[str] | None = None) -> dict[str, JobLengths]:
        """Return how long these jobs usually take, each under the name or id that was given; all under their ids."""
        lengths = await self._asking.read("/api/overviews/lengths", jobs=_list(jobs))
        return {name: value_of(JobLengths, lengths_of) for name, lengths_of in lengths.items()}

    async def usual_length(self, name: str) -> timedelta | None:
        """Return the median of the latest runs of a job that ended well; None if there are none."""
        lengths = (await self.lengths([name])).get(name)
        return None if lengths is None else lengths.p50

    async def last_runs(self, jobs: Iterable[str], count: int = 30) -> dict[str, tuple[Glance, ...]]:
        """Return the last `count` occurrences of each of these jobs, newest first, under the name or id given."""
        runs = await self._asking.read("/api/overviews/last-runs", jobs=_list(jobs), count=count)
        return {name: value_of(tuple[Glance, ...], glances) for name, glances in runs.items()}

    async def counts(
        self,
        job: str | None = None,
        *,
        after: datetime | str | None = None,
        through: datetime | str | None = None,
        cause: str | None = None,
    ) -> Tally:
        """Return how many occurrences stand in each status, of one job or of all. More than 10,000 are estimated."""
        query = {"job": job, "after": time_text(after), "through": time_text(through), "cause": cause}
        return value_of(Tally, await self._asking.read("/api/overviews/counts", **query))

    async def failures(self, since: datetime | str, limit: int = 50) -> tuple[FailureKind, ...]:
        """Return the failures that ended after `since`, one entry for each kind of error, most frequent first."""
        failures = await self._asking.read("/api/overviews/failures", since=time_text(since), limit=limit)
        return value_of(tuple[FailureKind, ...], failures)

    async def alike(self, fingerprint: str, since: datetime | str) -> FailureKind | None:
        """Return the failures after `since` that have this fingerprint; None if there are none."""
        try:
            alike = await self._asking.read("/api/overviews/failures/{}", fingerprint, since=time_text(since))
        except NotFound:
            return None
        return value_of(FailureKind, alike)


def _client(asked: RemoteQuestions) -> Client:
    from everytick.client.client import Client

    assert isinstance(asked, Client), "questions are asked by a client"
    return asked


def _flag(given: bool) -> str | None:
    return "true" if given else None


def _list(given: Iterable[str] | None) -> list[str] | None:
    return None if given is None else list(given)


def _moments(told: Iterable[str]) -> list[datetime]:
    return [datetime.fromisoformat(instant) for instant in told]
