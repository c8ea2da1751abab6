"""History as people read it: what ran and, for one job, every single instant that did not, with its reason.

A store keeps what did not run as spans. Here each is taken apart by asking the schedule of
its version, and laid between the occurrences, newest first.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from everytick.app.lookups import moment_of
from everytick.domain.decisions import Span, Why
from everytick.domain.ids import occurrence_id
from everytick.domain.occurrence import Cause, Occurrence
from everytick.domain.reading import choice, whole
from everytick.domain.snapshots import JobSnapshot, Missed
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value
from everytick.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

    from everytick.domain.job import Job
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord

_TICK = timedelta(microseconds=1)
_BEGINNING = datetime(2, 1, 1, tzinfo=UTC)
_MOST = 1000
_NOT_RUN = frozenset({OccurrenceStatus.SKIPPED, OccurrenceStatus.MISSED})


@value
class Asked:
    """What somebody wants to see of the past."""

    record: JobRecord | None
    statuses: tuple[OccurrenceStatus, ...]
    cause: Cause | None
    after: datetime | None
    through: datetime | None
    limit: int

    @property
    def with_spans(self) -> bool:
        """Whether what did not run is among it: only one job's own schedule can tell these instants."""
        wanted = not self.statuses or not _NOT_RUN.isdisjoint(self.statuses)
        return self.record is not None and wanted and self.cause in (None, Cause.SCHEDULE)


def read_question(
    record: JobRecord | None,
    status: str | Iterable[str] | None,
    cause: str | None,
    after: object,
    through: object,
    limit: int,
) -> Asked:
    """Return the question, checked."""
    words = () if status is None else (status,) if isinstance(status, str) else tuple(status)
    return Asked(
        record,
        tuple(choice("status", OccurrenceStatus, word) for word in words),
        None if cause is None else choice("cause", Cause, cause),
        None if after is None else moment_of(after),
        None if through is None else moment_of(through),
        whole("limit", limit, 1, _MOST),
    )


@value
class PagePosition:
    """Where a page ends: the store's own cursor, how many of its page were given, and the last single instant."""

    cursor: str | None = None
    given: int = 0
    before: datetime | None = None

    def __str__(self) -> str:
        return f"{self.before.isoformat() if self.before else ''}~{self.given}~{self.cursor or ''}"


def read_place(cursor: str | None) -> PagePosition:
    """Return the place that a cursor names."""
    if cursor is None:
        return PagePosition()
    before, _, rest = cursor.partition("~")
    given, _, own = rest.partition("~")
    try:
        return PagePosition(own or None, int(given), datetime.fromisoformat(before) if before else None)
    except ValueError:
        raise NotFound("page of the history at", cursor) from None


class History:
    """A page of the past, newest first; `cursor` asks for what follows, None says that nothing does.

    Iterating gives this page; iterating with `async for` goes on through all that follow.
    """

    def __init__(self, store: AnyStore, asked: Asked, occurrences: Sequence[Occurrence], cursor: str | None) -> None:
        self._store, self._asked = store, asked
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
            page = await read_history(self._store, self._asked, page.cursor)


async def read_history(store: AnyStore, asked: Asked, cursor: str | None) -> History:
    """Return the page that begins where the cursor says."""
    from everytick.stores.base import HistoryFilter

    place, job_id = read_place(cursor), None if asked.record is None else asked.record.job.id
    page = await store.history(
        HistoryFilter(
            job_id=job_id,
            statuses=asked.statuses,
            cause=asked.cause,
            after=asked.after,
            through=asked.through,
            limit=asked.limit + place.given,
            cursor=place.cursor,
        )
    )
    rows = page.occurrences[place.given :]
    # As long as the store has more, its part fills the page: nothing older than its last needs to be looked for.
    floor = rows[-1].scheduled_for if rows and page.cursor is not None else None
    singles: list[Occurrence] = []
    if asked.with_spans and asked.record is not None:
        singles = await _singles(store, asked.record, asked, place.before, floor)
    merged = sorted([*rows, *singles], key=lambda occurrence: occurrence.scheduled_for, reverse=True)
    shown = merged[: asked.limit]
    told = [occurrence for occurrence in shown if occurrence.created_at is None]
    used = len(shown) - len(told)
    before = told[-1].scheduled_for if told else place.before
    if used == len(rows) and page.cursor is not None:
        following = PagePosition(page.cursor, 0, before)
    else:
        following = PagePosition(place.cursor, place.given + used, before)
    more = page.cursor is not None or len(merged) > len(shown)
    return History(store, asked, shown, str(following) if more else None)


async def _singles(
    store: AnyStore, record: JobRecord, asked: Asked, before: datetime | None, floor: datetime | None
) -> list[Occurrence]:
    """Return instants that did not run, the newest first: one more than a page shows, in growing steps back."""
    found: list[Occurrence] = []
    now = await store.now()
    end = min(filter(None, (asked.through, None if before is None else before - _TICK, now)))
    first = max(filter(None, (_BEGINNING, asked.after, None if floor is None else floor - _TICK)))
    snapshot = (await store.look([record.job.id])).get(record.job.id)
    known, step = versions(record, snapshot), timedelta(days=1)
    while end > first and len(found) <= asked.limit:
        begin = max(first, end - step) if end - _BEGINNING > step else first
        spans = [*await store.spans(record.job.id, begin, end), *open_pauses(snapshot, now)]
        missing = {span.version for span in spans} - known.keys()
        if missing:
            known |= {edition.job.version: edition.job for edition in await store.editions(record.job.id, missing)}
        wanted = [span for span in spans if not asked.statuses or span.status in asked.statuses]
        apart = merge(
            *(_taken_apart(span, known, begin, end) for span in wanted),
            key=lambda skipped: skipped.scheduled_for,
            reverse=True,
        )
        while len(found) <= asked.limit and (some := list(islice(apart, asked.limit + 1))):
            # One that was filled, or moved and has run, is among the occurrences: an id is listed once.
            taken = await store.existing([skipped.id for skipped in some])
            found += [skipped for skipped in some if skipped.id not in taken]
        end, step = begin, step * 4
    return found[: asked.limit + 1]


def versions(record: JobRecord, snapshot: JobSnapshot | None) -> dict[int, Job]:
    """Return the definitions at hand, by version."""
    editions = () if snapshot is None else snapshot.editions
    return {job.version: job for job in (*(edition.job for edition in editions), record.job)}


def open_pauses(snapshot: JobSnapshot | None, now: datetime) -> list[Span]:
    """Return what a pause has held back and no plan has written down yet: that happens when it ends."""
    if snapshot is None:
        return []
    found = []
    for pause in snapshot.pauses:
        after, through = max(pause.since, snapshot.watermark), min(now, pause.until or now)
        if pause.missed is Missed.SKIP and after < through:
            version = snapshot.editions[-1].job.version
            found.append(Span(OccurrenceStatus.SKIPPED, Why.PAUSED, pause.detail, after, through, version, None))
    return found


def _taken_apart(span: Span, known: dict[int, Job], after: datetime, through: datetime) -> Iterator[Occurrence]:
    """Give the single instants of a span in a stretch of time, the newest first."""
    job = known.get(span.version)
    if job is None:
        # Its definition cannot be read here: its last instant stands for all of it.
        if after < span.through <= through:
            yield _single(next(iter(known.values())).id, span, span.through)
        return
    schedule, low = job.bound(None), max(after, span.after)
    instant = schedule.last_at(min(through, span.through))
    while instant is not None and instant > low:
        yield _single(job.id, span, instant)
        instant = schedule.last_at(instant - _TICK)


def _single(job_id: str, span: Span, instant: datetime) -> Occurrence:
    """One instant that did not run, as an entry of its own; no row was ever created for it."""
    reason = f"{span.why}, {span.detail}" if span.detail else str(span.why)
    return Occurrence(
        occurrence_id(job_id, instant), job_id, span.version, instant, span.status, reason=reason, line_at=instant
    )
