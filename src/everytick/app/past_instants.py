"""Past instants: those that a backfill would fill, and the one that has a given id and did not run."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from everytick.app.history import open_pauses
from everytick.domain.durations import MICROSECOND
from everytick.domain.ids import occurrence_id
from everytick.domain.lookups import Editions, ExistingIds, Spans
from everytick.domain.snapshots import AdjustmentKind, Edition
from everytick.domain.upcoming import edition_in_force

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from everytick.domain.decisions import Span
    from everytick.domain.job import Job
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord

SHOWN_INSTANTS = 10_000
"""Most instants that a backfill lists. Counting more takes longer than the request."""

_VERSIONS_AT_ONCE = 64
"""Most versions of a definition that are read in one call."""

_SEARCHED_INSTANTS = 100_000
"""Most instants that are compared to find one by its id. That takes some seconds."""

_BEGINNING = datetime(2, 1, 1, tzinfo=UTC)


async def unfilled(
    store: AnyStore, record: JobRecord, after: datetime, through: datetime, *, again: bool, as_of_now: bool
) -> tuple[list[datetime], bool]:
    """Return the past instants in `(after, through]` that have no occurrence, and whether there are more than shown.

    A moved instant counts as having one, also if its new time is still to come.
    """
    from everytick.deciding.past import past_instants

    job_id = record.job.id
    snapshot = (await store.look([job_id]))[job_id]
    if as_of_now:
        editions = [edition_in_force(snapshot.editions, await store.now())]
    else:
        editions = await timeline(store, record, after, through)
    named = [instant for instant, _ in islice(past_instants(editions, after, through), SHOWN_INSTANTS + 1)]
    shown, more = named[:SHOWN_INSTANTS], len(named) > SHOWN_INSTANTS
    if again or not shown:
        return shown, more
    moved = {
        adjustment.at
        for adjustment in snapshot.adjustments
        if adjustment.kind is AdjustmentKind.MOVE and adjustment.vacates
    }
    by_id = {occurrence_id(job_id, instant): instant for instant in shown}
    taken = await store.ask(ExistingIds(by_id))
    return [instant for id_, instant in by_id.items() if id_ not in taken and instant not in moved], more


async def timeline(store: AnyStore, record: JobRecord, after: datetime, through: datetime) -> list[Edition]:
    """Return the definitions that were in force at some time of `(after, through]`, in order."""
    job_id, newest = record.job.id, record.job.version
    editions = list(await store.ask(Editions(job_id, at=after + MICROSECOND)))
    version = editions[-1].job.version if editions else 0
    while version < newest and not _is_after(editions, through):
        step = range(version + 1, min(version + _VERSIONS_AT_ONCE, newest) + 1)
        editions += await store.ask(Editions(job_id, step))
        version = step[-1]
    return editions or [Edition(record.job)]


def _is_after(editions: list[Edition], through: datetime) -> bool:
    # A version that was written later was in force later.
    written = editions[-1].job.updated_at if editions else None
    return written is not None and written >= through


async def instant_of(store: AnyStore, id_: str) -> tuple[JobRecord, datetime] | None:
    """Return the job and instant that have this id and did not run, if the instant is among the newest 100,000.

    An id is a hash of job and instant: it is compared with the ids of all instants in spans.
    """
    left = _SEARCHED_INSTANTS
    now = await store.now()
    for record in await store.list():
        spans = [*await store.ask(Spans(record.job.id, _BEGINNING, now)), *await held_back(store, record, now)]
        known = {
            edition.job.version: edition.job
            for edition in await store.ask(Editions(record.job.id, {s.version for s in spans}))
        }
        for instant in _instants(spans, known):
            if occurrence_id(record.job.id, instant) == id_:
                return record, instant
            left -= 1
            if not left:
                return None
    return None


async def held_back(store: AnyStore, record: JobRecord, now: datetime) -> list[Span]:
    """Return the spans of a pause that still holds: a plan writes them when the pause ends."""
    if record.pause is None:
        return []
    return open_pauses((await store.look([record.job.id])).get(record.job.id), now)


async def moved_to(store: AnyStore, record: JobRecord, instant: datetime) -> datetime | None:
    """Return the time to which an instant was moved, if it has not run there yet."""
    snapshot = (await store.look([record.job.id]))[record.job.id]
    moved = (
        adjustment
        for adjustment in snapshot.adjustments
        if adjustment.at == instant and adjustment.vacates and not adjustment.done
    )
    return next((adjustment.to for adjustment in moved), None)


def _instants(spans: Sequence[Span], known: dict[int, Job]) -> Iterator[datetime]:
    """Give the instants of these spans, the newest first."""
    for span in reversed(spans):
        if (job := known.get(span.version)) is None:
            continue
        schedule = job.bound(None)
        instant = schedule.last_at(span.through)
        while instant is not None and instant > span.after:
            yield instant
            instant = schedule.last_at(instant - MICROSECOND)
