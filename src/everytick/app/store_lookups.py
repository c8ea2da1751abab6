"""What people look up beside jobs and history: the store's time, names and ids, and what living nodes report."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from everytick.answers.values import NodeReports
from everytick.app.store_access import StoreAccess
from everytick.domain.durations import MICROSECOND
from everytick.domain.lookups import Editions, ParkedJobs
from everytick.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from everytick.app.history import History
    from everytick.domain.job import Job
    from everytick.domain.occurrence import Occurrence
    from everytick.domain.promise_policies import PromiseKind
    from everytick.node.settings import NodeSettings
    from everytick.stores.base import JobRecord, Whole

_SEARCHED_OF_A_JOB = 100
"""Most entries of each job that are searched for what did not run: the store has no rows of those."""


class StoreLookups(StoreAccess):
    """Lookups; none of them changes anything."""

    settings: NodeSettings

    if TYPE_CHECKING:

        async def jobs(self, *, removed: bool = False) -> Sequence[JobRecord]:
            """Return every job in the store; see `Questions`."""

        async def history(
            self,
            name: str | None = None,
            *,
            after: datetime | str | None = None,
            through: datetime | str | None = None,
            limit: int = 100,
        ) -> History:
            """Return a page of the history; see `Questions`."""

    async def job_names(self, job_ids: Iterable[str]) -> dict[str, str]:
        """Return the names of jobs by their ids, also of those that were removed. An unknown id is its own name."""
        return {id_: id_ if job is None else job.name for id_, job in (await self._jobs_by_id(job_ids)).items()}

    async def job_tags(self, job_ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return the tags by which grants name jobs, by their ids, also of removed ones; none of an unknown id."""
        from everytick.access.people import tags_of

        found = await self._jobs_by_id(job_ids)
        return {id_: () if job is None else tags_of(job.name, job.settings.tags) for id_, job in found.items()}

    async def _jobs_by_id(self, job_ids: Iterable[str]) -> Mapping[str, Job | None]:
        wanted = set(job_ids)
        records = await (await self._opened()).get(wanted)
        return {id_: records[id_].job if id_ in records else None for id_ in wanted}

    async def occurrences_beginning(self, beginning: str) -> set[str]:
        """Return the ids of occurrences that begin with these digits: two of them at most.

        It looks for occurrences and requests first, then for instants that did not run.
        """
        from uuid import UUID

        from everytick.domain.lookups import IdRange

        digits = beginning.replace("-", "")
        first, last = (f"occ_{UUID(digits.ljust(32, fill))}" for fill in "0f")
        if found := await (await self._opened()).ask(IdRange(first, last, limit=2)):
            return {*found}
        unrun: set[str] = set()
        for record in await self.jobs(removed=True):
            # Only the history of a job has the instants that did not run. A job may be purged meanwhile.
            with suppress(NotFound):
                page = await self.history(record.job.name, limit=_SEARCHED_OF_A_JOB)
                unrun |= {occurrence.id for occurrence in page if occurrence.id.startswith(f"occ_{beginning}")}
        return unrun

    async def entry(self, occurrence_id: str) -> Whole:
        """Return an entry of the history: an occurrence, or an instant that did not run and so has no attempts."""
        from everytick.stores.base import whole_of

        store = await self._opened()
        try:
            return await store.whole(occurrence_id)
        except NotFound:
            unrun = await self._unrun(occurrence_id)
            if unrun is None:
                raise
            return whole_of(unrun, (), ())

    async def _unrun(self, occurrence_id: str) -> Occurrence | None:
        from everytick.app.past_instants import instant_of

        found = await instant_of(await self._opened(), occurrence_id)
        if found is None:
            return None
        record, at = found
        page = await self.history(record.job.name, after=at - MICROSECOND, through=at)
        return next((occurrence for occurrence in page if occurrence.id == occurrence_id), None)

    async def payload_of(self, occurrence: Occurrence) -> Any:
        """Return the payload that an occurrence runs with; only its own if its definition cannot be read here."""
        editions = await (await self._opened()).ask(Editions(occurrence.job_id, {occurrence.version}))
        return occurrence.payload_under(editions[0].job) if editions else occurrence.payload

    async def output(self, whole: Whole, *, task: str | None = None, attempt: int | None = None, most: int) -> bytes:
        """Return what the tasks of an occurrence wrote, as far as this host has it: the last `most` bytes."""
        import asyncio

        from everytick.app.outputs import output_of

        return await asyncio.to_thread(output_of, await self._log_folder(), whole, task, attempt, most)

    async def output_from(
        self, whole: Whole, task: str, attempt: int, start: int, most: int | None = None
    ) -> bytes | None:
        """Return the output of an attempt from byte `start` on, a part of it; None if it is not on this host."""
        import asyncio

        from everytick.answers.wire import OUTPUT_AT_ONCE
        from everytick.app.outputs import output_from

        limit = OUTPUT_AT_ONCE if most is None else most
        return await asyncio.to_thread(output_from, await self._log_folder(), whole, task, attempt, start, limit)

    async def _log_folder(self) -> Path | None:
        """Return the folder in which a node of this application on this host stores the output of tasks."""
        from everytick.app.outputs import log_folder

        return self.settings.log_folder or log_folder(await self._opened())

    async def unkept(self, occurrences: Collection[Occurrence]) -> dict[str, tuple[PromiseKind, ...]]:
        """Return the promises that were broken for these entries of the history, by their ids."""
        from everytick.app.outlook import unkept_by

        return await unkept_by(await self._opened(), occurrences)

    async def usual_length(self, name: str) -> timedelta | None:
        """Return the median of the latest runs of a job that ended well; None if there are none."""
        from everytick.stores.usual_lengths import usual_length

        store = await self._opened()
        return await usual_length(store, (await self._find(store, name, storing=False)).job.id)

    async def reports(self, records: Sequence[JobRecord] | None = None) -> NodeReports:
        """Return the broken files and unknown jobs that living nodes report, and the jobs that the store has parked.

        It tells of these jobs, by default of all. What a silent node said may be mended since, and is left out.
        """
        from everytick.domain.nodes import unknown_targets, unmet_needs
        from everytick.stores.base import Nodes

        store = await self._opened()
        now, known = await store.now(), await self.jobs() if records is None else records
        alive = [node for node in await store.ask(Nodes()) if node.is_alive(now, self.settings.node_timeout)]
        told = [node.facts for node in alive if node.facts is not None]
        files: dict[str, str] = {}
        of_job: dict[str, str] = {}
        for facts in told:
            files.update(facts.broken_files)
            own = dict(facts.broken_files)
            of_job.update((job, own.get(file, f"{file}: broken")) for job, file in facts.stale_jobs)
        jobs = [record.job for record in known]
        # A node that has not told its facts yet may well run it.
        unknown = unmet_needs(jobs, told, now) if len(told) == len(alive) else {}
        return NodeReports(
            files, of_job, {**unknown, **unknown_targets(jobs, told)}, {**await store.ask(ParkedJobs())}, len(alive)
        )
