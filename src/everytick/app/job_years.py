"""A year of one job: how each day ended, which instants did not run, and on which days to come it runs."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from everytick.app.store_access import StoreAccess
from everytick.domain.durations import MICROSECOND
from everytick.domain.lookups import Editions, ExistingIds, Spans
from everytick.domain.values import value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from everytick.domain.decisions import Span
    from everytick.domain.job import Job
    from everytick.domain.questions import DayTally
    from everytick.domain.statuses import OccurrenceStatus
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord

_COUNTED = 5_000
"""Most instants that did not run and are counted one by one. Of further ones each day counts as one."""

_MOST_SPANS = 2_000
"""Of more spans in a year only the newest are counted into its days."""

_DAY = timedelta(days=1)


@value(frozen=True)
class JobYear:
    """A year of one job, by UTC days.

    `days` are what occurrences ended as, and `unrun` the instants without an occurrence, by day and status. `planned`
    are the days to come on which the schedule names an instant.
    """

    now: datetime
    record: JobRecord
    days: tuple[DayTally, ...]
    unrun: Mapping[date, Mapping[OccurrenceStatus, int]]
    planned: frozenset[date]


class JobYears(StoreAccess):
    """Years of jobs."""

    async def _year(self, name: str, year: int) -> JobYear:
        """Return a year of a job; also of one that was removed."""
        from everytick.domain.questions import Days

        store = await self._opened()
        record, now = await self._find_past(store, name), await store.now()
        days = await store.ask(Days(record.job.id, year))
        return JobYear(now, record, days, await _unrun(store, record, year, now), _planned(record, year, now))


def _planned(record: JobRecord, year: int, now: datetime) -> frozenset[date]:
    """Return the days to come on which the schedule names an instant; none while nothing may run."""
    pause = record.pause
    if record.removed_at is not None or not record.job.enabled or (pause is not None and pause.until is None):
        return frozenset()
    job, last = record.job, None if record.last_end is None else record.last_end.ended_at
    held = now if pause is None or pause.until is None else pause.until
    after = max(now, held, datetime(year, 1, 1, tzinfo=UTC) - MICROSECOND)
    schedule, end = job.bound(last), datetime(year + 1, 1, 1, tzinfo=UTC)
    found: set[date] = set()
    at = schedule.next_after(after)
    while at is not None and at < end:
        found.add(at.date())
        # One instant of each day is enough: on from the last moment of this day.
        at = schedule.next_after(datetime(at.year, at.month, at.day, tzinfo=UTC) + _DAY - MICROSECOND)
    return frozenset(found)


async def _unrun(
    store: AnyStore, record: JobRecord, year: int, now: datetime
) -> dict[date, dict[OccurrenceStatus, int]]:
    """Return the instants of a year that did not run, by day. One that was backfilled since is left out."""
    begin, end = (
        datetime(year, 1, 1, tzinfo=UTC) - MICROSECOND,
        min(now, datetime(year + 1, 1, 1, tzinfo=UTC) - MICROSECOND),
    )
    if end <= begin:
        return {}
    spans = list(await store.ask(Spans(record.job.id, begin, end)))[-_MOST_SPANS:]
    versions = {span.version for span in spans}
    known = {edition.job.version: edition.job for edition in await store.ask(Editions(record.job.id, versions))}
    named = list(_instants(spans, known, begin, end))
    from everytick.domain.ids import occurrence_id

    ids = {occurrence_id(record.job.id, at): (at, status) for at, status in named}
    taken = await store.ask(ExistingIds(list(ids))) if ids else frozenset()
    counts: dict[date, Counter[OccurrenceStatus]] = {}
    for id_, (at, status) in ids.items():
        if id_ not in taken:
            counts.setdefault(at.date(), Counter())[status] += 1
    return {day: dict(count) for day, count in counts.items()}


def _instants(
    spans: Iterable[Span], known: Mapping[int, Job], begin: datetime, end: datetime
) -> Iterator[tuple[datetime, OccurrenceStatus]]:
    """Give the instants of these spans; beyond 5,000 of them, one a day."""
    left = _COUNTED
    for span in spans:
        job = known.get(span.version)
        if job is None:
            continue
        schedule, through = job.bound(None), min(span.through, end)
        at = schedule.next_after(max(span.after, begin))
        while at is not None and at <= through:
            yield at, span.status
            left -= 1
            behind = at if left > 0 else datetime(at.year, at.month, at.day, tzinfo=UTC) + _DAY - MICROSECOND
            at = schedule.next_after(behind)
