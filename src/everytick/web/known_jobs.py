"""Every job of the store, known once for all pages: a list of 10,000 takes a store a tenth of a second to read.

A list that is read fast is read for every page. A slow one is kept, and read again behind the pages as long as people
look, so that no page waits for it. What is changed through this service is seen by the next page, what others change
within some seconds.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import nsmallest

from fastapi import Request

from everytick.app import Everytick
from everytick.app.proposals import read_proposal
from everytick.app.store_access import open_store
from everytick.domain.job import Job
from everytick.domain.promises import promises_of
from everytick.domain.proposals import OWNER, Proposal
from everytick.domain.questions import band_of
from everytick.domain.values import value
from everytick.stores.addresses import AnyStore
from everytick.stores.base import JobRecord

CHEAP_SECONDS = 0.02
"""A list that takes no longer is not kept."""

JOBS_AT_ONCE = 500
"""Most jobs that one question reads: it takes some milliseconds."""

COMING = 100
"""How many runs to come are known, the next one of each job."""

KEEP_FACTOR = 20.0
"""An answer that took one second is kept for twenty: then asking takes at most a twentieth of the time."""

_SOONEST_SECONDS, _LATEST_SECONDS = 1.0, 5.0
"""When the list of all jobs is read again at the soonest and the latest, however long it took."""

_WATCHED_SECONDS = 60.0
"""How long after the last page the list is still read again."""


@value(frozen=True)
class Listed:
    """All jobs in service, and what is found out about each of them once for as long as the list is kept.

    `records` are by id, in the order of their names, and `ids` by name. `by_name` are the same, sorted as Python sorts
    texts: a server may sort them in another way. `groups` are the jobs of each band, `coming` is when those run next
    that come first. `bad` are the jobs whose last end was a failure, `needs` are the jobs by what a node must have to
    run them, `parked` is why some are not planned. `revisions` grows with every change, `born` is when the first job
    was made.
    """

    records: Mapping[str, JobRecord]
    proposed: Sequence[JobRecord]
    bands: Mapping[str, str]
    groups: Mapping[str, Sequence[JobRecord]]
    coming: Sequence[tuple[datetime, str]]
    bad: frozenset[str]
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
        return sorted((read_proposal(each.job) for each in self.proposed), key=lambda proposal: proposal.at)


def listed_of(found: Sequence[JobRecord]) -> Listed:
    """Return what pages know of these jobs."""
    records = {record.job.id: record for record in found if record.job.owner != OWNER}
    bands = {id_: band_of(record.job) for id_, record in records.items()}
    born = (record.job.created_at for record in records.values())
    return Listed(
        records=records,
        proposed=[record for record in found if record.job.owner == OWNER],
        bands=bands,
        groups=_groups(records, bands),
        coming=nsmallest(COMING, _coming(records.values())),
        bad=frozenset(id_ for id_, record in records.items() if is_bad(record)),
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


def is_bad(record: JobRecord) -> bool:
    """Whether the last thing that this job did was to fail, and no success came since."""
    failed, ended, good = record.last_failure_at, record.last_end, record.last_success
    if failed is None or ended is None or ended.ended_at < failed:
        return False
    return good is None or good.ended_at < failed


async def _all_jobs(store: AnyStore) -> list[JobRecord]:
    """Return every job in service, read in parts: between two of them others are answered."""
    found: list[JobRecord] = []
    while True:
        part = await store.list(after=found[-1].job.name if found else "", limit=JOBS_AT_ONCE)
        found += part
        if len(part) < JOBS_AT_ONCE:
            return found


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
            found = await _all_jobs(await open_store(self._tick))
            took = time.monotonic() - begin
            # Many jobs are looked at in a thread, so that no tick of a node beside it waits.
            listed = await asyncio.to_thread(listed_of, found) if took > self._cheap else listed_of(found)
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
