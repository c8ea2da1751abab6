"""The overview of one occurrence: what its page shows, and why it is so."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from everytick.app.output_parts import OutputParts
from everytick.domain.durations import MICROSECOND
from everytick.domain.lookups import Editions
from everytick.domain.statuses import ACTIVE
from everytick.domain.values import value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from everytick.deciding.explanation import Explanation
    from everytick.domain.job import Job
    from everytick.domain.occurrence import Occurrence
    from everytick.domain.questions import FailureKind, JobLengths
    from everytick.node.settings import NodeSettings
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord, Whole

ALIKE_FOR = timedelta(hours=24)
"""Failures of the same kind are looked for in so much time before now."""

_AT_ONE_INSTANT = 20
"""Most other occurrences of the same instant that are shown: replays and repeats."""

_JOBS_NAMED = 5
"""How many jobs are named that failed alike."""


@value(frozen=True)
class OccurrenceOverview:
    """One occurrence at one moment of the store's clock.

    `job` is the definition it runs under. `before` and `after` are its neighbours in the history, `others` the
    occurrences for the same instant: what it repeats, and what repeats it. `alike` are the failures of its kind in the
    last 24 hours, and `alike_jobs` the names of their jobs. `next_run` is when the job runs next.
    """

    now: datetime
    whole: Whole
    record: JobRecord
    job: Job
    explanation: Explanation
    before: Occurrence | None
    after: Occurrence | None
    others: tuple[Occurrence, ...]
    lengths: JobLengths | None
    alike: FailureKind | None
    alike_jobs: tuple[str, ...]
    next_run: datetime | None


class OccurrenceOverviews(OutputParts):
    """The overview of an occurrence. It changes nothing, and each part of it is bounded."""

    settings: NodeSettings

    async def _occurrence_overview(self, occurrence_id: str) -> OccurrenceOverview:
        """Return what the page of an occurrence shows. Raise NotFound if the store has no such occurrence."""
        from everytick.app.evidence import evidence_of
        from everytick.deciding.explain import explain
        from everytick.domain.questions import Lengths
        from everytick.domain.upcoming import next_run

        store = await self._opened()
        whole = await store.whole(occurrence_id)
        own = whole.occurrence
        record = (await store.get([own.job_id]))[own.job_id]
        evidence = await evidence_of(store, record, own.scheduled_for, self.settings.node_timeout)
        others = await _at_instant(store, own)
        alike = await _alike(store, own, evidence.now)
        is_active = own.status in ACTIVE
        return OccurrenceOverview(
            now=evidence.now,
            whole=whole,
            record=record,
            job=await _job_of(store, record, own),
            # Others at the same instant have explanations of their own.
            explanation=explain(replace(evidence, occurrences=(own,))),
            before=await _neighbour(store, own, through=own.scheduled_for - MICROSECOND),
            after=await _following(store, own, evidence.now),
            others=others,
            lengths=(await store.ask(Lengths((own.job_id,)))).get(own.job_id) if is_active else None,
            alike=alike,
            alike_jobs=await _names(store, alike),
            next_run=next_run(evidence.snapshot, evidence.now),
        )

    async def _whole_ids(self, beginning: str) -> Sequence[str]:
        """Return the ids of up to two occurrences that begin with these hexadecimal digits."""
        from uuid import UUID

        from everytick.domain.lookups import IdRange

        digits = beginning.replace("-", "")
        first, last = (f"occ_{UUID(digits.ljust(32, fill))}" for fill in "0f")
        return sorted(await (await self._opened()).ask(IdRange(first, last, limit=2)))


async def _job_of(store: AnyStore, record: JobRecord, own: Occurrence) -> Job:
    """Return the definition that an occurrence runs under; the newest if that one cannot be read here."""
    if own.version == record.job.version:
        return record.job
    editions = await store.ask(Editions(own.job_id, {own.version}))
    return editions[0].job if editions else record.job


async def _at_instant(store: AnyStore, own: Occurrence) -> tuple[Occurrence, ...]:
    from everytick.stores.base import HistoryFilter

    at = own.scheduled_for
    page = await store.history(
        HistoryFilter(job_id=own.job_id, after=at - MICROSECOND, through=at, limit=_AT_ONE_INSTANT)
    )
    return tuple(occurrence for occurrence in page.occurrences if occurrence.id != own.id)


async def _neighbour(store: AnyStore, own: Occurrence, *, through: datetime) -> Occurrence | None:
    """Return the newest occurrence of the job up to a moment."""
    from everytick.stores.base import HistoryFilter

    page = await store.history(HistoryFilter(job_id=own.job_id, through=through, limit=1))
    return page.occurrences[0] if page.occurrences else None


async def _following(store: AnyStore, own: Occurrence, now: datetime) -> Occurrence | None:
    """Return the occurrence after this one. The question of coverage reads from the old end, and stops at the first."""
    from everytick.domain.questions import Coverage

    if own.scheduled_for >= now:
        return None
    found = (await store.ask(Coverage(own.job_id, own.scheduled_for, now, 1))).runs
    return (await store.whole(found[0].id)).occurrence if found else None


async def _alike(store: AnyStore, own: Occurrence, now: datetime) -> FailureKind | None:
    """Return the other failures of the same kind in the last 24 hours; None if there is none."""
    from everytick.domain.headlines import fingerprint
    from everytick.domain.questions import Alike

    if own.error is None:
        return None
    found = await store.ask(Alike(now - ALIKE_FOR, fingerprint(own.error), 1))
    is_among = own.ended_at is not None and own.ended_at > now - ALIKE_FOR
    others = (found[0].count - is_among) if found else 0
    return replace(found[0], count=others) if others > 0 else None


async def _names(store: AnyStore, alike: FailureKind | None) -> tuple[str, ...]:
    if alike is None:
        return ()
    known = await store.get(alike.job_ids[:_JOBS_NAMED])
    return tuple(sorted(record.job.name for record in known.values()))
