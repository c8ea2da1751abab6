"""Overviews: what pages and pictures show of many occurrences at once. Each is bounded, and none changes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.app.store_access import StoreAccess
from everytick.app.text_reading import moment_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    from everytick.deciding.coverage import CoverageLedger
    from everytick.domain.questions import Bucket, DayTally, FailureKind, Glance, Glances, JobLengths, Tally
    from everytick.stores.addresses import AnyStore


class Overviews(StoreAccess):
    """Windows of time, counts, lengths, last runs and failures. A job is given by its name or its id."""

    async def window(
        self,
        after: datetime | str,
        through: datetime | str,
        *,
        limit: int = 5_000,
        jobs: Iterable[str] | None = None,
    ) -> Glances:
        """Return the occurrences with their instant in `(after, through]`, newest first, and earlier ones that run now.

        `limit` is at most 5,000; `is_cut` of the answer says that there are more.
        """
        from everytick.domain.questions import TimeWindow

        store = await self._opened()
        ids = None if jobs is None else tuple((await self._ids(store, jobs)).values())
        return await store.ask(TimeWindow(moment_of(after), moment_of(through), limit, ids))

    async def buckets(
        self,
        after: datetime | str,
        through: datetime | str,
        step: timedelta | str = "5m",
        *,
        by: str = "all",
        jobs: Iterable[str] | None = None,
    ) -> tuple[Bucket, ...]:
        """Return how many occurrences of each status each step of time has. Steps without any are left out.

        `by` is "all", "band" (the first tag of a job, else its owner, else its queue) or, with up to 50 `jobs`, "job":
        then the group of a bucket is the job as it was given. Steps under a day are known for eight days.
        """
        from dataclasses import replace

        from everytick.domain.durations import duration
        from everytick.domain.policy_checks import choice
        from everytick.domain.questions import Buckets, By

        store = await self._opened()
        ids = None if jobs is None else await self._ids(store, jobs)
        known = None if ids is None else tuple(ids.values())
        kind = choice("by", By, by)
        found = await store.ask(Buckets(moment_of(after), moment_of(through), duration(step), kind, known))
        given = {id_: name for name, id_ in (ids or {}).items()}
        return tuple(replace(bucket, group=given.get(bucket.group, bucket.group)) for bucket in found)

    async def lengths(self, jobs: Iterable[str] | None = None) -> dict[str, JobLengths]:
        """Return how long these jobs usually take, each under the name or id that was given; all jobs under their ids.

        It is told of the latest 25 runs that completed. Of more than 100 jobs it may be some minutes old.
        """
        from everytick.domain.questions import Lengths

        store = await self._opened()
        if jobs is None:
            return await store.ask(Lengths())
        ids = await self._ids(store, jobs)
        found = await store.ask(Lengths(tuple(ids.values())))
        return {name: found[id_] for name, id_ in ids.items() if id_ in found}

    async def last_runs(self, jobs: Iterable[str], count: int = 30) -> dict[str, tuple[Glance, ...]]:
        """Return the last `count` occurrences of each of these jobs, newest first, under the name or id given."""
        from everytick.domain.questions import LastRuns

        store = await self._opened()
        ids = await self._ids(store, jobs)
        found = await store.ask(LastRuns(tuple(ids.values()), count))
        return {name: found.get(id_, ()) for name, id_ in ids.items()}

    async def counts(
        self,
        job: str | None = None,
        *,
        after: datetime | str | None = None,
        through: datetime | str | None = None,
        cause: str | None = None,
    ) -> Tally:
        """Return how many occurrences stand in each status, of one job or of all. More than 10,000 are estimated."""
        from everytick.domain.occurrence import Cause
        from everytick.domain.policy_checks import choice
        from everytick.domain.questions import Counts

        store = await self._opened()
        [id_] = [None] if job is None else (await self._ids(store, [job])).values()
        begin = None if after is None else moment_of(after)
        end = None if through is None else moment_of(through)
        return await store.ask(Counts(id_, begin, end, None if cause is None else choice("cause", Cause, cause)))

    async def _tallies(
        self,
        job: str | None = None,
        *,
        after: datetime | str | None = None,
        through: datetime | str | None = None,
        cause: str | None = None,
    ) -> tuple[Tally, Tally]:
        """Return the `counts`, and how many instants have no occurrence since they were skipped or missed.

        Of all jobs only missed instants are counted. Those of a long stretch are estimated.
        """
        from everytick.app.unrun import BEGINNING, Unrun
        from everytick.domain.occurrence import Cause
        from everytick.domain.policy_checks import choice
        from everytick.domain.questions import Counts, QuestionBatch, Tally
        from everytick.domain.statuses import OccurrenceStatus

        store = await self._opened()
        now = await store.now()
        [id_] = [None] if job is None else (await self._ids(store, [job])).values()
        given = None if cause is None else choice("cause", Cause, cause)
        begin, end = None if after is None else moment_of(after), None if through is None else moment_of(through)
        counts = Counts(id_, begin, end, given)
        if given not in (None, Cause.SCHEDULE):
            return await store.ask(counts), Tally()
        first, last = begin or BEGINNING, min(now, end or now)
        unrun = Unrun(store, (OccurrenceStatus.SKIPPED, OccurrenceStatus.MISSED), now, id_)
        ran, spans = await store.ask(QuestionBatch((counts, unrun.question(first, last))))
        found, is_more = await unrun.counted(first, last, spans)
        return ran, Tally(tuple(found.items()), is_more)

    async def failures(self, since: datetime | str, limit: int = 50) -> tuple[FailureKind, ...]:
        """Return the failures that ended after `since`, one entry for each kind of error, most frequent first."""
        from everytick.domain.questions import Alike

        return await (await self._opened()).ask(Alike(moment_of(since), None, limit))

    async def alike(self, fingerprint: str, since: datetime | str) -> FailureKind | None:
        """Return the failures after `since` that have this fingerprint; None if there are none."""
        from everytick.domain.questions import Alike

        found = await (await self._opened()).ask(Alike(moment_of(since), fingerprint, 1))
        return found[0] if found else None

    async def days(self, job: str, year: int) -> tuple[DayTally, ...]:
        """Return how each UTC day of a year ended for the job; days without an end are left out."""
        from everytick.domain.questions import Days

        store = await self._opened()
        [id_] = (await self._ids(store, [job])).values()
        return await store.ask(Days(id_, year))

    async def coverage(self, job: str, after: datetime | str, through: datetime | str) -> CoverageLedger:
        """Return which instants of the job in `(after, through]` are done, missing, under way or done twice.

        Those from before the job was stored, and those that its retention no longer keeps, are unknown. An instant
        that is to come is in no span. Up to 10,000 instants are told of: `is_cut` and `through` of the answer say where
        it ends. `backfill` repairs what is missing.
        """
        from everytick.app.coverage import coverage_of

        store = await self._opened()
        record = await self._find_past(store, job)
        return await coverage_of(store, record, moment_of(after), moment_of(through))

    async def _ids(self, store: AnyStore, given: Iterable[str]) -> dict[str, str]:
        """Return the ids of jobs, each given by its name or its id, in the order given."""
        from everytick.domain.ids import is_job_id, job_id

        wanted = {name: name if is_job_id(name) else job_id(name) for name in given}
        named = {name: id_ for name, id_ in wanted.items() if name != id_}
        if not named:
            return wanted
        known = await store.get(list(named.values()))
        for name, id_ in named.items():
            if id_ not in known or known[id_].job.name != name:
                wanted[name] = (await self._find_past(store, name)).job.id
        return wanted
