"""History as people read it: the occurrences and every instant that did not run, with its reason.

Instants that did not run are read of one job, or of all jobs if their statuses are asked for.

A store keeps instants that did not run as spans. This module asks the schedule of the span's version for its
instants, and merges them with the occurrences, newest first.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from everytick.app.text_reading import moment_of
from everytick.app.unrun import BEGINNING, Unrun
from everytick.domain.decisions import Span, Why
from everytick.domain.durations import MICROSECOND
from everytick.domain.ids import occurrence_id
from everytick.domain.lookups import Editions, ExistingIds, Spans
from everytick.domain.occurrence import Cause, Occurrence
from everytick.domain.policy_checks import choice, whole
from everytick.domain.snapshots import JobSnapshot, Missed
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.upcoming import in_force
from everytick.domain.values import value
from everytick.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

    from everytick.domain.job import Job
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord

_MOST_IN_A_PAGE = 1000
"""Most entries of one page."""

_NOT_RUN = frozenset({OccurrenceStatus.SKIPPED, OccurrenceStatus.MISSED})


@value
class HistoryQuery:
    """Which occurrences and instants the reader asks for."""

    record: JobRecord | None
    statuses: tuple[OccurrenceStatus, ...]
    cause: Cause | None
    after: datetime | None
    through: datetime | None
    limit: int

    @property
    def with_spans(self) -> bool:
        """Whether instants that did not run belong to it: of one job always, of all if their statuses are named."""
        wanted = (self.record is not None and not self.statuses) or not _NOT_RUN.isdisjoint(self.statuses)
        return wanted and self.cause in (None, Cause.SCHEDULE)


def history_query(
    record: JobRecord | None,
    status: str | Iterable[str] | None,
    cause: str | None,
    after: object,
    through: object,
    limit: int,
) -> HistoryQuery:
    """Return the query with its texts read. Raise for a word or time that is none."""
    words = () if status is None else (status,) if isinstance(status, str) else tuple(status)
    return HistoryQuery(
        record,
        tuple(choice("status", OccurrenceStatus, word) for word in words),
        None if cause is None else choice("cause", Cause, cause),
        None if after is None else moment_of(after),
        None if through is None else moment_of(through),
        whole("limit", limit, 1, _MOST_IN_A_PAGE),
    )


@value
class PagePosition:
    """Where a page ends: the store's own cursor, how many of its rows are used, and the last instant of a span.

    Of all jobs, several may have missed that instant: `shown` says how many of these the pages have shown.
    """

    cursor: str | None = None
    used: int = 0
    before: datetime | None = None
    shown: int = 0

    def __str__(self) -> str:
        before = f"{self.before.isoformat() if self.before else ''}{f'*{self.shown}' if self.shown else ''}"
        return f"{before}~{self.used}~{self.cursor or ''}"


def page_position(cursor: str | None) -> PagePosition:
    """Return the position that a cursor names."""
    if cursor is None:
        return PagePosition()
    before, _, rest = cursor.partition("~")
    used, _, own = rest.partition("~")
    before, _, shown = before.partition("*")
    try:
        instant = datetime.fromisoformat(before) if before else None
        return PagePosition(own or None, int(used), instant, int(shown or 0))
    except ValueError:
        raise NotFound("page of the history at", cursor) from None


class History:
    """A page of the past, newest first. `cursor` asks for the next page; it is None on the last one.

    `for` gives this page, `async for` this page and all that follow.
    """

    def __init__(
        self, store: AnyStore, query: HistoryQuery, occurrences: Sequence[Occurrence], cursor: str | None
    ) -> None:
        self._store, self._query = store, query
        self.occurrences, self.cursor = tuple(occurrences), cursor

    def __repr__(self) -> str:
        return f"History({len(self.occurrences)} occurrences{', and more' if self.cursor else ''})"

    def __iter__(self) -> Iterator[Occurrence]:
        return iter(self.occurrences)

    def __len__(self) -> int:
        return len(self.occurrences)

    async def __aiter__(self) -> AsyncIterator[Occurrence]:
        page = self
        while True:
            for occurrence in page.occurrences:
                yield occurrence
            if page.cursor is None:
                return
            page = await read_history(self._store, self._query, page.cursor)


async def read_history(store: AnyStore, query: HistoryQuery, cursor: str | None) -> History:
    """Return the page that begins where the cursor says."""
    from everytick.stores.base import HistoryFilter

    place, job_id = page_position(cursor), None if query.record is None else query.record.job.id
    page = await store.history(
        HistoryFilter(
            job_id=job_id,
            statuses=query.statuses,
            cause=query.cause,
            after=query.after,
            through=query.through,
            limit=query.limit + place.used,
            cursor=place.cursor,
        )
    )
    rows = page.occurrences[place.used :]
    # While the store has more rows, they fill the page: no instant older than the last of them is needed.
    floor = rows[-1].scheduled_for if rows and page.cursor is not None else None
    singles: list[Occurrence] = []
    if query.with_spans:
        of_one = None if query.record is None else _singles(store, query.record, query, place.before, floor)
        singles = await (of_one or _singles_of_all(store, query, place, floor))
    merged = sorted([*rows, *singles], key=lambda occurrence: occurrence.scheduled_for, reverse=True)
    shown = merged[: query.limit]
    unrun = [occurrence for occurrence in shown if occurrence.created_at is None]
    used = len(shown) - len(unrun)
    before = unrun[-1].scheduled_for if unrun else place.before
    ties = 0
    if query.record is None and before is not None:
        ties = sum(instant.scheduled_for == before for instant in unrun) + (
            place.shown if before == place.before else 0
        )
    if used == len(rows) and page.cursor is not None:
        following = PagePosition(page.cursor, 0, before, ties)
    else:
        following = PagePosition(place.cursor, place.used + used, before, ties)
    more = page.cursor is not None or len(merged) > len(shown)
    return History(store, query, shown, str(following) if more else None)


async def _singles_of_all(
    store: AnyStore, query: HistoryQuery, place: PagePosition, floor: datetime | None
) -> list[Occurrence]:
    """Return the newest instants of all jobs that did not run, one more than a page shows."""
    now = await store.now()
    end = min(filter(None, (query.through, place.before, now)))
    first = max(filter(None, (BEGINNING, query.after, None if floor is None else floor - MICROSECOND)))
    wanted = query.limit + 1 + place.shown
    found = await Unrun(store, query.statuses, now).newest(first, end, wanted)
    ties = sum(instant.scheduled_for == place.before for instant in found[: place.shown])
    return found[ties:wanted]


async def _singles(
    store: AnyStore, record: JobRecord, query: HistoryQuery, before: datetime | None, floor: datetime | None
) -> list[Occurrence]:
    """Return the newest instants that did not run, one more than a page shows. It reads back in growing steps."""
    unrun: list[Occurrence] = []
    now = await store.now()
    end = min(filter(None, (query.through, None if before is None else before - MICROSECOND, now)))
    first = max(filter(None, (BEGINNING, query.after, None if floor is None else floor - MICROSECOND)))
    snapshot = (await store.look([record.job.id])).get(record.job.id)
    known, step = versions(record, snapshot), timedelta(days=1)
    while end > first and len(unrun) <= query.limit:
        begin = max(first, end - step) if end - BEGINNING > step else first
        spans = [*await store.ask(Spans(record.job.id, begin, end)), *open_pauses(snapshot, now)]
        missing = {span.version for span in spans} - known.keys()
        if missing:
            known |= {edition.job.version: edition.job for edition in await store.ask(Editions(record.job.id, missing))}
        wanted = [span for span in spans if not query.statuses or span.status in query.statuses]
        instants = merge(
            *(instants_of(record.job.id, span, known, begin, end) for span in wanted),
            key=lambda skipped: skipped.scheduled_for,
            reverse=True,
        )
        while len(unrun) <= query.limit and (some := list(islice(instants, query.limit + 1))):
            # An instant that was backfilled, or moved and has run, has an occurrence: an id is listed once.
            taken = await store.ask(ExistingIds([skipped.id for skipped in some]))
            unrun += [skipped for skipped in some if skipped.id not in taken]
        end, step = begin, step * 4
    return unrun[: query.limit + 1]


def versions(record: JobRecord, snapshot: JobSnapshot | None) -> dict[int, Job]:
    """Return the definitions of the record and the snapshot, by version."""
    editions = () if snapshot is None else snapshot.editions
    return {job.version: job for job in (*(edition.job for edition in editions), record.job)}


def open_pauses(snapshot: JobSnapshot | None, now: datetime) -> list[Span]:
    """Return the spans of pauses that no plan has written yet: it does when the pause ends."""
    if snapshot is None:
        return []
    spans = []
    for pause in snapshot.pauses:
        after, through = max(pause.since, snapshot.watermark), min(now, pause.until or now)
        if pause.missed is Missed.SKIP and after < through:
            version = in_force(snapshot.editions, after).version
            spans.append(Span(OccurrenceStatus.SKIPPED, Why.PAUSED, pause.detail, after, through, version, None))
    return spans


def instants_of(
    job_id: str, span: Span, known: Mapping[int, Job], after: datetime, through: datetime
) -> Iterator[Occurrence]:
    """Give the instants of a job's span in `(after, through]`, the newest first."""
    job = known.get(span.version)
    if job is None:
        # This process cannot read the definition: show the last instant of the span only.
        if after < span.through <= through:
            yield _single(job_id, span, span.through)
        return
    schedule, low = job.bound(None), max(after, span.after)
    instant = schedule.last_at(min(through, span.through))
    while instant is not None and instant > low:
        yield _single(job_id, span, instant)
        instant = schedule.last_at(instant - MICROSECOND)


def _single(job_id: str, span: Span, instant: datetime) -> Occurrence:
    """Return one instant that did not run as an entry of the history. It has no row in the store."""
    reason = f"{span.why}, {span.detail}" if span.detail else str(span.why)
    return Occurrence(
        occurrence_id(job_id, instant), job_id, span.version, instant, span.status, reason=reason, line_at=instant
    )
