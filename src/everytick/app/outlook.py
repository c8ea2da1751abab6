"""The outlook of a job: which promises are broken, which will be or may be, and which cannot be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everytick.domain.lookups import Breaches, Promises

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from everytick.domain.occurrence import Occurrence
    from everytick.domain.promise_policies import PromiseKind
    from everytick.domain.promises import Breach, PromiseRecord
    from everytick.domain.snapshots import JobSnapshot
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord

_OPEN_READ = 10_000
"""Most open breaches of a store that are read at once."""

_PAST_READ = 1_000
"""Most breaches of a job that are read, newest first."""


async def broken_now(store: AnyStore, records: Sequence[JobRecord]) -> dict[str, tuple[Breach, ...]]:
    """Return the promises that are broken now, by the ids of their jobs; nothing is read if none of these has any."""
    from everytick.domain.promises import promises_of

    if not any(promises_of(record.job.settings) for record in records):
        return {}
    found: dict[str, tuple[Breach, ...]] = {}
    for record in await store.ask(Breaches(is_open=True, limit=_OPEN_READ)):
        found[record.job_id] = (*found.get(record.job_id, ()), record.breach)
    return found


async def outlook(store: AnyStore, record: JobRecord, seen: JobSnapshot) -> dict[str, Any]:
    """Return the promises of one job that are broken now, and forecasts of those that are not."""
    from everytick.deciding.forecast import LENGTHS_READ
    from everytick.domain.promises import promises_of
    from everytick.domain.statuses import OccurrenceStatus
    from everytick.stores.base import HistoryFilter

    job = record.job
    if not promises_of(job.settings):
        return {}
    promised = await store.ask(Promises([job.id]))
    well = HistoryFilter(job_id=job.id, statuses=(OccurrenceStatus.COMPLETED,), limit=LENGTHS_READ)
    busy = HistoryFilter(job_id=job.id, statuses=(OccurrenceStatus.RUNNING, OccurrenceStatus.AWAITING_RETRY))
    started = (await store.history(busy)).occurrences if seen.busy_count else ()
    completed = (await store.history(well)).occurrences
    return outlook_of(record, seen, promised, completed, started, await store.now())


def outlook_of(
    record: JobRecord,
    seen: JobSnapshot,
    promised: Sequence[PromiseRecord],
    completed: Sequence[Occurrence],
    started: Sequence[Occurrence],
    now: datetime,
) -> dict[str, Any]:
    """Return the same from what was read: where its promises stand, its last completed runs, and those that run."""
    from everytick.deciding.forecast import LENGTHS_READ, forecasts, usual_length
    from everytick.domain.promises import promises_of

    if not promises_of(record.job.settings):
        return {}
    states = [promise.state for promise in promised]
    usual = usual_length(completed[:LENGTHS_READ])
    return {
        "breaches": tuple(state.breach for state in states if state.breach is not None),
        "forecasts": forecasts(record.job, seen, states, usual, started, now),
    }


async def unkept_by(store: AnyStore, found: Iterable[Occurrence]) -> dict[str, tuple[PromiseKind, ...]]:
    """Return the promises that were broken for these entries of the history, by their ids."""
    from everytick.deciding.promises import broken_by
    from everytick.domain.questions import QuestionBatch

    entries = list(found)
    breaches: dict[str, list[Breach]] = {}
    known = sorted({entry.job_id for entry in entries})
    for first in range(0, len(known), QuestionBatch.MOST):
        ids = known[first : first + QuestionBatch.MOST]
        answers = await store.ask(QuestionBatch(tuple(Breaches(id_, limit=_PAST_READ) for id_ in ids)))
        breaches |= {id_: [record.breach for record in found] for id_, found in zip(ids, answers, strict=True)}
    by_id = {entry.id: broken_by(entry, breaches[entry.job_id]) for entry in entries}
    return {id_: kinds for id_, kinds in by_id.items() if kinds}


def doubtful_promises(records: Iterable[JobRecord], now: datetime) -> Iterator[tuple[str, str]]:
    """Give the names of jobs with promises that their schedule or another policy contradicts, and what to write."""
    from everytick.deciding.doubts import promise_doubts

    for record in records:
        for doubt in promise_doubts(record.job, now):
            yield record.job.name, doubt
