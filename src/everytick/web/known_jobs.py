"""Every job of the store, known once for all pages: a list of 10,000 takes a store a tenth of a second to read.

A list that is read fast is read for every page. A slow one is kept, and read again behind the pages as long as people
look, so that no page waits for it. What is changed through this service is seen by the next page, what others change
within some seconds.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from heapq import nsmallest
from itertools import islice

from fastapi import Request

from everytick.app import Everytick
from everytick.app.proposals import read_proposal
from everytick.app.store_access import open_store
from everytick.domain.decisions import Span
from everytick.domain.job import Job
from everytick.domain.lookups import MissedSpans, OccurrenceStatuses
from everytick.domain.promises import promises_of
from everytick.domain.proposals import OWNER, Proposal
from everytick.domain.questions import MOST_LAST_RUNS, Glance, LastRuns, QuestionBatch, band_of
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value
from everytick.stores.addresses import AnyStore
from everytick.stores.base import JobRecord

CHEAP_SECONDS = 0.02
"""A list that takes no longer is not kept."""

JOBS_AT_ONCE = 500
"""Most jobs that one question reads: it takes some milliseconds."""

COMING = 100
"""How many runs to come are known, the next one of each job."""

MISSED_FOR = timedelta(hours=12)
"""How long a missed instant is told of, unless a run of its job completes before."""

MOST_MISSED_SPANS = 10_000
"""Most stretches of missed instants that one question reads: one of each job after an outage of a large fleet."""

MANY_INSTANTS = 10_000
"""Instants of a span are counted up to this number."""

_LOOKED_BACK = 20
"""Among how many of the last runs of a job its failure is looked for, if others were canceled since."""

_MOST_ENDS = 20_000
"""Most jobs whose last end is looked at. A failure of any other is told by the times that its record has."""

KEEP_FACTOR = 20.0
"""An answer that took one second is kept for twenty: then asking takes at most a twentieth of the time."""

_SOONEST_SECONDS, _LATEST_SECONDS = 1.0, 5.0
"""When the list of all jobs is read again at the soonest and the latest, however long it took."""

_WATCHED_SECONDS = 60.0
"""How long after the last page the list is still read again."""


_S = OccurrenceStatus


@value(frozen=True)
class MissedInstants:
    """What a job has missed lately, and no good run came since: how many instants, and the last one.

    `is_more` says that there may be more than `count`.
    """

    count: int
    last_at: datetime
    is_more: bool = False


@value(frozen=True)
class Listed:
    """All jobs in service, and what is found out about each of them once for as long as the list is kept.

    `records` are by id, in the order of their names, and `ids` by name. `by_name` are the same, sorted as Python sorts
    texts: a server may sort them in another way. `groups` are the jobs of each band, `coming` is when those run next
    that come first. `bad` are the jobs whose last end was a failure, `with_errors` those whose last run completed with
    errors, and `missed` are those that have missed instants since their last good run. `troubles` says which of the
    three a job is, where it is one. `failed_runs` are the runs that failed last of jobs in `bad` whose last end is
    another one: a run that was canceled since. `needs` are the jobs by what a node must have to run them, `parked` is
    why some are not planned. `revisions` grows with every change, `born` is when the first job was made.
    """

    records: Mapping[str, JobRecord]
    proposed: Sequence[JobRecord]
    bands: Mapping[str, str]
    groups: Mapping[str, Sequence[JobRecord]]
    coming: Sequence[tuple[datetime, str]]
    bad: frozenset[str]
    with_errors: frozenset[str]
    missed: Mapping[str, MissedInstants]
    troubles: Mapping[str, OccurrenceStatus]
    failed_runs: Mapping[str, Glance]
    needs: Mapping[str, Sequence[Job]]
    parked: Mapping[str, str]
    has_promises: bool
    revisions: int
    born: datetime | None
    ids: Mapping[str, str]
    by_name: Sequence[JobRecord]

    @property
    def proposals(self) -> list[Proposal]:
        """The changes that wait for a second person, oldest first."""
        return sorted((read_proposal(record.job) for record in self.proposed), key=lambda proposal: proposal.at)


def listed_of(
    found: Sequence[JobRecord],
    ends: Mapping[str, OccurrenceStatus],
    spans: Sequence[tuple[str, Span]],
    failed_runs: Mapping[str, Glance],
) -> Listed:
    """Return what pages know of these jobs.

    `ends` are the statuses of the last ends in doubt, by occurrence; `spans` are the newest spans of missed instants;
    `failed_runs` are failures behind which a run was canceled, by job.
    """
    records = {record.job.id: record for record in found if record.job.owner != OWNER}
    bands = {id_: band_of(record.job) for id_, record in records.items()}
    missed = _missed(records, spans)
    ended = {id_: trouble for id_, record in records.items() if (trouble := trouble_of(record, ends)) is not None}
    born = (record.job.created_at for record in records.values())
    return Listed(
        records=records,
        proposed=[record for record in found if record.job.owner == OWNER],
        bands=bands,
        groups=_groups(records, bands),
        coming=nsmallest(COMING, _coming(records.values())),
        bad=frozenset(id_ for id_, trouble in ended.items() if trouble is _S.FAILED),
        with_errors=frozenset(id_ for id_, trouble in ended.items() if trouble is _S.COMPLETED_WITH_ERRORS),
        missed=missed,
        troubles={**dict.fromkeys(missed, _S.MISSED), **ended},
        failed_runs=failed_runs,
        needs=_needing(record.job for record in records.values()),
        parked={id_: record.parked_reason for id_, record in records.items() if record.parked_reason},
        has_promises=any(promises_of(record.job.settings) for record in records.values()),
        revisions=sum(record.revision + record.run_count for record in records.values()),
        born=min((at for at in born if at is not None), default=None),
        ids={record.job.name: id_ for id_, record in records.items()},
        by_name=by_name(records.values()),
    )


def name_of(record: JobRecord) -> str:
    """Return the name of a job."""
    return record.job.name


def by_name(records: Iterable[JobRecord]) -> list[JobRecord]:
    """Return the jobs in the order of their names."""
    return sorted(records, key=name_of)


def _groups(records: Mapping[str, JobRecord], bands: Mapping[str, str]) -> dict[str, list[JobRecord]]:
    groups: dict[str, list[JobRecord]] = {}
    for id_, record in records.items():
        groups.setdefault(bands[id_], []).append(record)
    return groups


def _needing(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(job.needs, []).append(job)
    return found


def _coming(records: Iterable[JobRecord]) -> Iterator[tuple[datetime, str]]:
    for record in records:
        if record.next_run is not None and record.job.enabled and record.pause is None:
            yield record.next_run, record.job.name


def trouble_of(record: JobRecord, ends: Mapping[str, OccurrenceStatus]) -> OccurrenceStatus | None:
    """Return FAILED or COMPLETED_WITH_ERRORS if a job ended so last; None if it is well.

    All pages judge a job by this. A run that was canceled or skipped is no good one: a failure before it still counts.
    """
    end = record.last_end
    status = None if end is None else ends.get(end.id)
    if status in (_S.FAILED, _S.FAILED_STALE):
        return _S.FAILED
    if status in (_S.COMPLETED, _S.COMPLETED_WITH_ERRORS):
        return None if status is _S.COMPLETED else status
    return _S.FAILED if _has_failed_since(record) else None


def _has_failed_since(record: JobRecord) -> bool:
    """Whether an attempt failed since the last success, and an occurrence has ended since. A retry has not ended."""
    failed, ended, good = record.last_failure_at, record.last_end, record.last_success
    if failed is None or ended is None or ended.ended_at < failed:
        return False
    return good is None or good.ended_at < failed


def end_in_doubt(record: JobRecord) -> str | None:
    """Return the id of the last end of a job if its record does not tell whether it was good; else None.

    A run that completed with errors counts as a success, and so does one that was good at the second attempt.
    """
    end, good, failed = record.last_end, record.last_success, record.last_failure_at
    if end is None:
        return None
    is_well = good is not None and good.id == end.id
    is_clean = failed is None or failed < (end.started_at or end.scheduled_for)
    return None if is_well and is_clean else end.id


def _missed(records: Mapping[str, JobRecord], spans: Sequence[tuple[str, Span]]) -> dict[str, MissedInstants]:
    """Return what each job has missed since its last good run. The spans are newest first."""
    found: dict[str, MissedInstants] = {}
    is_cut = len(spans) >= MOST_MISSED_SPANS
    for id_, span in spans:
        record = records.get(id_)
        if record is None or not is_open(record, span.through):
            continue
        known = found.get(id_) or MissedInstants(0, span.through)
        is_more = is_cut or known.is_more or span.count is None
        found[id_] = MissedInstants(known.count + (span.count or MANY_INSTANTS), known.last_at, is_more)
    return found


def with_moved(
    missed: Mapping[str, MissedInstants], runs: Iterable[Glance], records: Mapping[str, JobRecord]
) -> dict[str, MissedInstants]:
    """Return what was missed, with the instants that were moved by hand: each of them is an occurrence of its own."""
    found = dict(missed)
    for run in runs:
        record = records.get(run.job_id) if run.status is _S.MISSED else None
        if record is not None and is_open(record, run.scheduled_for):
            known = found.get(run.job_id) or MissedInstants(0, run.scheduled_for)
            last_at = max(known.last_at, run.scheduled_for)
            found[run.job_id] = MissedInstants(known.count + 1, last_at, known.is_more)
    return found


def is_open(record: JobRecord, missed_at: datetime) -> bool:
    """Whether no run since has been good: like a failure, a miss leaves the list when the next run is good.

    That run may be the one that made up for it: a backfill of the missed instants ends with the last of them.
    """
    good = record.last_success
    return good is None or good.scheduled_for < missed_at


async def _asked_of(
    store: AnyStore, records: Iterable[JobRecord]
) -> tuple[Mapping[str, OccurrenceStatus], Sequence[tuple[str, Span]]]:
    """Return how the last ends in doubt ended, and what was missed lately."""
    doubted = [id_ for id_ in map(end_in_doubt, records) if id_ is not None]
    now = await store.now()
    asked = OccurrenceStatuses(doubted[:_MOST_ENDS]), MissedSpans(now - MISSED_FOR, now, MOST_MISSED_SPANS)
    ends, missed = await store.ask(QuestionBatch(asked))
    return ends, missed


async def _failed_runs(
    store: AnyStore, records: Iterable[JobRecord], ends: Mapping[str, OccurrenceStatus]
) -> dict[str, Glance]:
    """Return the run that failed last of each failed job whose last end is not that run."""
    hidden = {record.job.id: record for record in records if _is_behind_another(record, ends)}
    if not hidden:
        return {}
    runs = await store.ask(LastRuns(tuple(islice(hidden, MOST_LAST_RUNS // _LOOKED_BACK)), _LOOKED_BACK))
    found = {id_: _that_failed(hidden[id_], own) for id_, own in runs.items()}
    return {id_: run for id_, run in found.items() if run is not None}


def _is_behind_another(record: JobRecord, ends: Mapping[str, OccurrenceStatus]) -> bool:
    """Whether the job failed last, and another run has ended since."""
    end = record.last_end
    is_failure = end is not None and ends.get(end.id) in (_S.FAILED, _S.FAILED_STALE)
    return not is_failure and trouble_of(record, ends) is _S.FAILED


def _that_failed(record: JobRecord, runs: Sequence[Glance]) -> Glance | None:
    """Return the run that had the last failure. It may have been canceled itself, while it waited for its retry."""
    at = record.last_failure_at
    begun = [run for run in runs if at is not None and run.started_at is not None and run.started_at <= at]
    held = [run for run in begun if at is not None and run.ended_at is not None and at <= run.ended_at] or begun
    return min(held, key=lambda run: run.status not in (_S.FAILED, _S.FAILED_STALE), default=None)


async def _all_jobs(store: AnyStore) -> list[JobRecord]:
    """Return every job in service, read in parts: between two of them others are answered."""
    found: list[JobRecord] = []
    while True:
        part = await store.list(after=found[-1].job.name if found else "", limit=JOBS_AT_ONCE)
        found += part
        if len(part) < JOBS_AT_ONCE:
            return found


async def read_jobs(store: AnyStore, cheap: float = CHEAP_SECONDS) -> Listed:
    """Return what pages know of the jobs of a store as it is now."""
    begin = time.monotonic()
    found = await _all_jobs(store)
    ends, spans = await _asked_of(store, found)
    made = partial(listed_of, found, ends, spans, await _failed_runs(store, found, ends))
    # Many jobs are looked at in a thread, so that no tick of a node beside it waits.
    return await asyncio.to_thread(made) if time.monotonic() - begin > cheap else made()


class KnownJobs:
    """Every job in service, by name, and the proposals that wait for a second person."""

    def __init__(self, tick: Everytick, cheap: float = CHEAP_SECONDS) -> None:
        self._tick, self._cheap = tick, cheap
        self._listed: Listed | None = None
        self._until = self._wanted_at = float("-inf")
        self._reading: asyncio.Task[Listed] | None = None
        self._later: asyncio.TimerHandle | None = None

    async def listed(self) -> Listed:
        """Return the jobs, at most some seconds old."""
        self._wanted_at = now = time.monotonic()
        if self._listed is not None and now < self._until:
            return self._listed
        # Shielded: a reader who leaves must not end what others wait for.
        return await asyncio.shield(self._read())

    def at_hand(self) -> Listed | None:
        """Return the jobs if pages have had them read, at most some seconds ago.

        To ask for it does not keep them known: for a program that asks every 15 s they would be read more often.
        """
        return self._listed if time.monotonic() < self._until else None

    async def records(self) -> Sequence[JobRecord]:
        """Return the jobs by name."""
        return list((await self.listed()).records.values())

    async def proposals(self) -> Sequence[Proposal]:
        """Return the proposals, as old as the jobs."""
        return (await self.listed()).proposals

    def forget(self) -> None:
        """Let the next page ask anew: something was changed here."""
        self._until, self._reading = float("-inf"), None
        if self._later is not None:
            self._later.cancel()

    def _read(self) -> "asyncio.Task[Listed]":
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._ask(time.monotonic()))
            self._reading.add_done_callback(_told)
        return self._reading

    async def _ask(self, begin: float) -> Listed:
        reading = asyncio.current_task()
        try:
            listed = await read_jobs(await open_store(self._tick), self._cheap)
            took = time.monotonic() - begin
        finally:
            # If something was changed since it was asked, another has its place.
            is_current = self._reading is reading
            if is_current:
                self._reading = None
        if is_current and took > self._cheap:
            self._keep(listed, took)
        return listed

    def _keep(self, listed: Listed, took: float) -> None:
        again = min(max(_SOONEST_SECONDS, KEEP_FACTOR * took), _LATEST_SECONDS)
        self._listed, self._until = listed, time.monotonic() + 2 * again
        self._later = asyncio.get_running_loop().call_later(again, self._again)

    def _again(self) -> None:
        """Read the list again if pages were asked for meanwhile."""
        if time.monotonic() - self._wanted_at < _WATCHED_SECONDS:
            self._read()


def known_jobs(request: Request) -> KnownJobs:
    """Return the jobs that the service knows."""
    known = request.app.state.known_jobs
    assert isinstance(known, KnownJobs), "asgi() sets it"
    return known


def _told(reading: "asyncio.Task[Listed]") -> None:
    """Take note of the error: a store that does not answer is told by the page that waits, or by the next one."""
    if not reading.cancelled():
        reading.exception()
