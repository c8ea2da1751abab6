"""Instants that did not run, of one job or of all: the newest of them, and how many they are.

The spans of missed instants of all jobs have an index. Skipped ones are asked for by job, in steps of time that grow:
a fleet may skip very many, and a page shows some dozens.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any

from everytick.domain.lookups import Editions, ExistingIds, MissedSpans, Spans, SpansOfJobs
from everytick.domain.questions import QuestionBatch
from everytick.domain.snapshots import Missed
from everytick.domain.statuses import OccurrenceStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from everytick.domain.decisions import Span
    from everytick.domain.job import Job
    from everytick.domain.occurrence import Occurrence
    from everytick.domain.snapshots import JobSnapshot
    from everytick.stores.addresses import AnyStore

BEGINNING = datetime(2, 1, 1, tzinfo=UTC)
"""Before all instants, and so far from the first day that a zone's offset fits."""

MOST_MISSED_SPANS = 10_000
"""Most spans of missed instants that are looked at, the newest ones: one of each job after an outage of all."""

MOST_COUNTED = 10_000
"""Instants of spans that begin before a time, or end behind it, are counted up to this number together."""

_EXACTLY = 1_000
"""So many instants are looked at one by one: one that was made up for since has an occurrence, and counts as that."""

_JOBS_AT_ONCE = 500
"""Most jobs of one question."""

_FIRST_STEP, _GROWTH = timedelta(minutes=1), 16
"""The first step back in time in which skipped instants are looked for, and how many times as long each further one is.

A day is looked through in four steps. A step that finds too few for a page has few, so the next one has not very many.
"""

_S = OccurrenceStatus
_OfJob = tuple[str, "Span"]
"""A span, and the id of its job."""


class Unrun:
    """Instants of a job, or of all jobs in service, that did not run: skipped ones, missed ones or both."""

    def __init__(
        self, store: AnyStore, statuses: Collection[OccurrenceStatus], now: datetime, job_id: str | None = None
    ) -> None:
        self._store, self._statuses, self._now, self._job_id = store, statuses, now, job_id
        self._known: dict[str, dict[int, Job]] = {}
        self._job_ids: list[str] | None = None
        self._paused: dict[str, JobSnapshot] = {}

    async def newest(self, first: datetime, end: datetime, count: int) -> list[Occurrence]:
        """Return the newest of `(first, end]` that have no occurrence, at least `count` if there are so many.

        Those of one instant stand in the order of the ids of their jobs.
        """
        found: list[Occurrence] = []
        step = _FIRST_STEP if _S.SKIPPED in self._statuses else end - first
        while end > first and len(found) < count:
            begin = max(first, end - step) if end - first > step else first
            found += await self._newest_of(await self._spans(begin, end), begin, end, count - len(found))
            end, step = begin, step * _GROWTH
        return found

    def question(self, first: datetime, end: datetime) -> Spans | MissedSpans:
        """Return the question whose answer `counted` needs. Of all jobs, only missed instants are counted."""
        if self._job_id is None:
            return MissedSpans(first, end, MOST_MISSED_SPANS)
        return Spans(self._job_id, first, end)

    async def counted(self, first: datetime, end: datetime, answer: Sequence[Any]) -> tuple[Counter[_S], bool]:
        """Return how many of `(first, end]` have which status, and whether they may be more."""
        counts: Counter[_S] = Counter()
        spans = await self._of_job(answer, first, end) if self._job_id is not None else list(answer)
        is_more, left, in_part = len(answer) >= MOST_MISSED_SPANS, MOST_COUNTED, list[_OfJob]()
        for job_id, span in spans:
            if span.count is not None and first <= span.after and span.through <= end:
                counts[span.status] += span.count
            else:
                in_part.append((job_id, span))
        # After an outage that began before, each job has such a span: they are counted up to one number together.
        for place in range(0, len(in_part), QuestionBatch.MOST):
            part = in_part[place : place + QuestionBatch.MOST]
            await self._learn(part)
            for job_id, span in part:
                many = sum(1 for _ in islice(self._instants(job_id, span, first, end), left))
                counts[span.status] += many
                left -= many
            if not left:
                is_more = True
                break
        if 0 < counts.total() <= _EXACTLY:
            found = await self._newest_of(spans, first, end, _EXACTLY + 1)
            return Counter([occurrence.status for occurrence in found]), is_more
        return counts, is_more

    async def _newest_of(self, spans: Sequence[_OfJob], begin: datetime, end: datetime, count: int) -> list[Occurrence]:
        spans = sorted(spans, key=lambda of_job: of_job[0])
        spans.sort(key=lambda of_job: min(of_job[1].through, end), reverse=True)
        take = count
        while True:
            # The first spans are enough for a page: no instant of a later one comes before its end and its job.
            rest = spans[take : take + 1]
            last = (-min(rest[0][1].through, end).timestamp(), rest[0][0]) if rest else (0.0, "")
            await self._learn(spans[:take])
            instants = merge(
                *(self._instants(job_id, span, begin, end) for job_id, span in spans[:take]),
                key=_place,
            )
            found: list[Occurrence] = []
            while len(found) < count and (some := list(islice(instants, count))):
                taken = await self._store.ask(ExistingIds([instant.id for instant in some]))
                found += [instant for instant in some if instant.id not in taken and _place(instant) < last]
                if _place(some[-1]) >= last:
                    break
            if len(found) >= count or take >= len(spans):
                return found
            take *= 4

    def _instants(self, job_id: str, span: Span, begin: datetime, end: datetime) -> Iterator[Occurrence]:
        from everytick.app.history import instants_of

        return instants_of(job_id, span, self._known.get(job_id, {}), begin, end)

    async def _spans(self, begin: datetime, end: datetime) -> list[_OfJob]:
        if self._job_id is not None:
            return await self._of_job(await self._store.ask(Spans(self._job_id, begin, end)), begin, end)
        found: list[_OfJob] = []
        if _S.MISSED in self._statuses:
            found += await self._store.ask(MissedSpans(begin, end, MOST_MISSED_SPANS))
        return found + await self._skipped(begin, end) if _S.SKIPPED in self._statuses else found

    async def _of_job(self, answer: Sequence[Span], begin: datetime, end: datetime) -> list[_OfJob]:
        """Return the spans of the one job, also those of pauses that no plan has written yet."""
        from everytick.app.history import open_pauses

        assert self._job_id is not None, "it is about one job"
        snapshot = (await self._store.look([self._job_id])).get(self._job_id)
        own = [*answer, *open_pauses(snapshot, self._now)]
        is_in = [span for span in own if span.through > begin and span.after < end]
        return [(self._job_id, span) for span in is_in if span.status in self._statuses]

    async def _skipped(self, begin: datetime, end: datetime) -> list[_OfJob]:
        from everytick.app.history import open_pauses

        found: list[_OfJob] = []
        job_ids = await self._jobs()
        for place in range(0, len(job_ids), _JOBS_AT_ONCE):
            part = await self._store.ask(SpansOfJobs(job_ids[place : place + _JOBS_AT_ONCE], begin, end))
            found += [(job_id, span) for job_id, spans in part.items() for span in spans if span.status is _S.SKIPPED]
        for job_id, snapshot in self._paused.items():
            pauses = open_pauses(snapshot, self._now)
            found += [(job_id, span) for span in pauses if span.through > begin and span.after < end]
        return found

    async def _jobs(self) -> list[str]:
        """Return the ids of all jobs, and keep the snapshots of those that skip since they are paused."""
        if self._job_ids is None:
            self._job_ids, after, paused = [], "", []
            while True:
                part = await self._store.list(after=after, limit=_JOBS_AT_ONCE)
                self._job_ids += [record.job.id for record in part]
                paused += [
                    record.job.id for record in part if record.pause is not None and record.pause.missed is Missed.SKIP
                ]
                if len(part) < _JOBS_AT_ONCE:
                    break
                after = part[-1].job.name
            for place in range(0, len(paused), _JOBS_AT_ONCE):
                self._paused |= await self._store.look(paused[place : place + _JOBS_AT_ONCE])
        return self._job_ids

    async def _learn(self, spans: Sequence[_OfJob]) -> None:
        """Read the definitions by which the instants of these spans are named."""
        wanted: dict[str, set[int]] = {}
        for job_id, span in spans:
            if span.version not in self._known.get(job_id, ()):
                wanted.setdefault(job_id, set()).add(span.version)
        asked = [(job_id, Editions(job_id, versions)) for job_id, versions in wanted.items()]
        for place in range(0, len(asked), QuestionBatch.MOST):
            part = asked[place : place + QuestionBatch.MOST]
            answers = await self._store.ask(QuestionBatch(tuple(question for _, question in part)))
            for (job_id, _), editions in zip(part, answers, strict=True):
                own = self._known.setdefault(job_id, {})
                own.update({edition.job.version: edition.job for edition in editions})


def _place(instant: Occurrence) -> tuple[float, str]:
    """Return where an instant stands: the newest first, then by the ids of the jobs."""
    return -instant.scheduled_for.timestamp(), instant.job_id
