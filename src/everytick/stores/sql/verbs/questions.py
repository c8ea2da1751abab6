"""ask: the answers to the questions of pages and pictures."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, TypeVar

from everytick.domain.durations import MICROSECOND
from everytick.domain.headlines import fingerprint
from everytick.domain.lookups import (
    Breaches,
    ComingRuns,
    Editions,
    ExistingIds,
    IdRange,
    LaterRequests,
    LimitsAndBrakes,
    MissedSpans,
    NewestBackfills,
    OccurrenceStatuses,
    ParkedJobs,
    Promises,
    Spans,
    SpansOfJobs,
    UndefinedJobs,
)
from everytick.domain.questions import (
    CELL,
    CELLS_KEPT,
    COUNTED,
    DAY,
    LATEST,
    LOOKED_UP,
    MOST_IN_A_LANE,
    RUNS_MEASURED,
    Alike,
    Bucket,
    Buckets,
    By,
    Counts,
    Coverage,
    Covered,
    CoveredRuns,
    Days,
    DayTally,
    FailureKind,
    Glance,
    Glances,
    JobLengths,
    LastRuns,
    Lengths,
    Question,
    QuestionBatch,
    QueueWait,
    Tally,
    TimeWindow,
    WaitingInQueues,
    buckets_of,
    days_of,
    failures_of,
    lengths_of,
    step_of,
    tally_of,
    waits_of,
    why_of,
    with_headlines,
)
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import Nodes, WholeRuns
from everytick.stores.sql.commands import Ask, Rows, Verb
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Row
from everytick.stores.sql.verbs import backfills, coming_runs, definers, history, job_records, limiting, nodes, promises
from everytick.stores.sql.verbs.rollups import numbers

A = TypeVar("A")
MOST_OF_TAIL = 20_000
"""Most occurrences that one answer adds to the rollups. With more, a tally says that it is estimated."""

_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def ask(q: ColdQueries, question: Question[A]) -> Verb[A]:
    """Answer one of the questions in `domain.questions` and `domain.lookups`."""
    answer: A = yield from _ANSWERS[type(question)](q, question)
    return answer


def _window(q: ColdQueries, asked: TimeWindow) -> Verb[Glances]:
    span = {"begin_after": asked.after, "end_through": asked.through, "limit": asked.limit + 1}
    earlier = {"begin_after": asked.after, "limit": asked.limit + 1}
    if asked.job_ids is None:
        found: Rows = yield q.window_runs(**span)
        held: Rows = yield q.held_earlier(**earlier)
    else:
        found = yield q.window_runs_of(**span, job_ids=asked.job_ids)
        held = yield q.held_earlier_of(**earlier, job_ids=asked.job_ids)
    both = (*found, *held)
    return Glances(tuple(map(_glance, both[: asked.limit])), len(both) > asked.limit)


def _last_runs(q: ColdQueries, asked: LastRuns) -> Verb[dict[str, tuple[Glance, ...]]]:
    found: Rows = yield q.last_runs(job_ids=asked.job_ids, count=asked.count)
    by_job: dict[str, list[Glance]] = {}
    for row in found:
        by_job.setdefault(row["job_id"], []).append(_glance(row))
    return {job_id: tuple(runs) for job_id, runs in by_job.items()}


def _waits(q: ColdQueries, _: WaitingInQueues) -> Verb[tuple[QueueWait, ...]]:
    found: Rows = yield q.waiting_by_needs(now=(yield Ask.NOW), limit=MOST_IN_A_LANE)
    return waits_of((row["needs"], row["count"], row["since_at"]) for row in found)


def _counts(q: ColdQueries, asked: Counts) -> Verb[Tally]:
    span = {"begin_after": asked.after or _FIRST, "end_through": asked.through or _LAST, "limit": COUNTED + 1}
    if asked.job_id is None:
        found: Rows = yield q.counted(**span)
    else:
        found = yield q.counted_of(**span, job_id=asked.job_id)
    own = tally_of((row["status"], row["count"]) for row in found if asked.cause in (None, row["cause"]))
    looked_at = tally_of((row["status"], row["count"]) for row in found)
    if looked_at.total <= COUNTED:
        return own
    return _estimated((yield from _kept(q, asked)), looked_at, own)


def _kept(q: ColdQueries, asked: Counts) -> Verb[dict[OccurrenceStatus, int]]:
    """Return how many ends of each status the rollups have in the steps of time that cover the asked span."""
    now = yield Ask.NOW
    after, through = asked.after or _FIRST, asked.through or _LAST
    is_day = asked.job_id is not None or after < now - CELLS_KEPT
    step = DAY if is_day else CELL
    edges = {
        "first_at": step_of(after, step),
        "end_at": _LAST if through > _LAST - step else step_of(through, step) + step,
    }
    if asked.job_id is None:
        kept: Rows = yield q.kept_in_all(**edges, is_day=is_day)
    else:
        kept = yield q.kept_of_job(**edges, job_id=asked.job_id)
    return {row["status"]: int(row["count"]) for row in kept}


def _estimated(kept: Mapping[OccurrenceStatus, int], looked_at: Tally, own: Tally) -> Tally:
    """Estimate the count of each status: ended ones from the rollups, others from the sample.

    If only one cause was asked for, the count is scaled by the share of that cause in the sample.
    """
    counts = []
    for status, count in looked_at.counts:
        counts.append((status, round(max(kept.get(status, 0), count) * own.of(status) / count)))
    if own == looked_at:
        counts += [(status, count) for status, count in kept.items() if not looked_at.of(status)]
    return tally_of(counts, is_estimated=True)


def _buckets(q: ColdQueries, asked: Buckets) -> Verb[tuple[Bucket, ...]]:
    if asked.by is By.JOB:
        return (yield from _buckets_of_jobs(q, asked))
    now = yield Ask.NOW
    steps = {
        "step": asked.step // MICROSECOND,
        "is_banded": asked.by is By.BAND,
        "first_at": asked.known_from(now),
        "end_at": asked.end,
    }
    counted: Rows = yield q.bucket_steps(**steps, is_day=asked.is_of_days)
    tail: Rows = yield q.tail_steps(**steps, limit=MOST_OF_TAIL)
    cells = ((row["step_at"], row["band"], row["status"], row["count"]) for row in (*counted, *tail))
    return buckets_of(cells, asked.step, is_estimated=any(row["seen"] >= MOST_OF_TAIL for row in tail))


def _buckets_of_jobs(q: ColdQueries, asked: Buckets) -> Verb[tuple[Bucket, ...]]:
    now = yield Ask.NOW
    found: Rows = yield q.steps_of_jobs(
        job_ids=asked.job_ids,
        step=asked.step // MICROSECOND,
        first_at=asked.known_from(now),
        end_at=asked.end,
        limit=asked.MOST_LOOKED_AT,
    )
    cells = ((row["step_at"], row["job_id"], row["status"], row["count"]) for row in found)
    return buckets_of(cells, asked.step)


def _lengths(q: ColdQueries, asked: Lengths) -> Verb[dict[str, JobLengths]]:
    """Return the lengths of up to `LOOKED_UP` jobs from their runs. Those of more jobs were measured before."""
    ids = asked.job_ids
    if ids is None:
        some: Rows = yield q.some_jobs(limit=LOOKED_UP + 1)
        ids = tuple(row["job_id"] for row in some)
    if len(ids) <= LOOKED_UP:
        return (yield from _lengths_of_runs(q, ids))
    if asked.job_ids is None:
        found: Rows = yield q.measured_lengths()
    else:
        found = yield q.measured_lengths_of(job_ids=ids)
    return {row["job_id"]: _measured(row) for row in found}


def _measured(row: Row) -> JobLengths:
    return JobLengths(row["count"], row["p5"] * MICROSECOND, row["p50"] * MICROSECOND, row["p95"] * MICROSECOND)


def _lengths_of_runs(q: ColdQueries, ids: Sequence[str]) -> Verb[dict[str, JobLengths]]:
    rows: Rows = yield q.latest_lengths(job_ids=ids, most=RUNS_MEASURED, latest=LATEST)
    found = {row["job_id"]: lengths_of(micros * MICROSECOND for micros in numbers(row["took"])) for row in rows}
    return {job_id: lengths for job_id, lengths in found.items() if lengths is not None}


def _days(q: ColdQueries, asked: Days) -> Verb[tuple[DayTally, ...]]:
    span = {"job_id": asked.job_id, "first_at": _midnight(asked.first), "end_at": _midnight(asked.last) + DAY}
    counted: Rows = yield q.job_days(**span)
    tail: Rows = yield q.tail_days(**span, limit=MOST_OF_TAIL)
    return days_of(
        (row["day_at"].date(), row["status"], row["count"], row["took"] * MICROSECOND) for row in (*counted, *tail)
    )


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _alike(q: ColdQueries, asked: Alike) -> Verb[tuple[FailureKind, ...]]:
    since = {"since_at": asked.since, "limit": COUNTED}
    if asked.fingerprint is None:
        counted: Rows = yield q.kinds_since(**since)
    else:
        counted = yield q.kind_since(**since, fingerprint=asked.fingerprint)
    tail: Rows = yield q.tail_failures(since_at=asked.since, limit=MOST_OF_TAIL)
    kinds = [
        *map(_kind, counted),
        *(kind for kind in map(_lone, tail) if asked.fingerprint in (None, kind.fingerprint)),
    ]
    found = failures_of(kinds, asked.limit)
    errors: Rows = yield q.errors_of(occurrence_ids=[kind.last_id for kind in found])
    return with_headlines(found, {row["occurrence_id"]: row["error"] for row in errors})


def _kind(row: Row) -> FailureKind:
    last = row["last_hex"]
    last_id = f"occ_{last[:8]}-{last[8:12]}-{last[12:16]}-{last[16:20]}-{last[20:]}"
    return FailureKind(row["fingerprint"], "", row["count"], (row["job_id"],), row["first_at"], row["last_at"], last_id)


def _lone(row: Row) -> FailureKind:
    ended_at = row["ended_at"]
    kind = fingerprint(row["error"] or "")
    return FailureKind(kind, "", 1, (row["job_id"],), ended_at, ended_at, row["occurrence_id"])


def _coverage(q: ColdQueries, asked: Coverage) -> Verb[CoveredRuns]:
    span = {"begin_after": asked.after, "end_through": asked.through, "limit": asked.limit + 1}
    found: Rows = yield q.covered_runs(**span, job_id=asked.job_id)
    return CoveredRuns(tuple(map(_covered, found[: asked.limit])), len(found) > asked.limit)


def _covered(row: Row) -> Covered:
    return Covered(
        row["occurrence_id"],
        row["covers_after"],
        row["covers_through"] or row["scheduled_for"],
        row["status"],
        row["cause"],
        row["scheduled_for"],
    )


def _glance(row: Row) -> Glance:
    return Glance(
        id=row["occurrence_id"],
        job_id=row["job_id"],
        scheduled_for=row["scheduled_for"],
        status=row["status"],
        cause=row["cause"],
        late=bool(row["late"]),
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        why=why_of(row["reason"], row["error"]),
        node=row["node"],
    )


def _several(q: ColdQueries, asked: QuestionBatch) -> Verb[tuple[Any, ...]]:
    found: list[Any] = []
    for question in asked.questions:
        answer = yield from ask(q, question)
        found.append(answer)
    return tuple(found)


_ANSWERS: Mapping[type[Question[Any]], Callable[[ColdQueries, Any], Verb[Any]]] = {
    TimeWindow: _window,
    LastRuns: _last_runs,
    WaitingInQueues: _waits,
    Counts: _counts,
    Buckets: _buckets,
    Lengths: _lengths,
    Days: _days,
    Alike: _alike,
    Coverage: _coverage,
    ParkedJobs: job_records.parked,
    Editions: job_records.editions,
    LaterRequests: job_records.later,
    ComingRuns: coming_runs.coming,
    NewestBackfills: backfills.backfills,
    Spans: history.spans,
    SpansOfJobs: history.spans_of_jobs,
    MissedSpans: history.missed_spans,
    OccurrenceStatuses: history.statuses,
    ExistingIds: history.existing,
    IdRange: history.existing_between,
    Nodes: nodes.nodes,
    WholeRuns: history.wholes,
    Promises: promises.promised,
    Breaches: promises.breaches,
    LimitsAndBrakes: limiting.limits,
    UndefinedJobs: definers.undefined,
    QuestionBatch: _several,
}
