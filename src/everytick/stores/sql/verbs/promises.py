"""promises, commit_promises, promised and breaches: the promises of jobs, and which were broken."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from everytick.domain.decisions import Span, Why
from everytick.domain.job import Job
from everytick.domain.lookups import Breaches, Promises
from everytick.domain.promise_policies import PromiseKind
from everytick.domain.promises import (
    BREACHES_KEPT,
    JUDGED_BY_ANY_AFTER,
    READ_AT_ONCE,
    Breach,
    BreachRecord,
    DuePromises,
    Judgement,
    OwedBreach,
    PromisedRun,
    PromiseRecord,
    PromiseSnapshot,
    PromiseState,
    promises_of,
)
from everytick.domain.snapshots import Edition, JobSnapshot
from everytick.stores.base import Commit, NodeScope
from everytick.stores.sql import commands
from everytick.stores.sql.commands import Ask, PlainVerb, Rows, Verb, many
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Row


def promises(q: ColdQueries, scope: NodeScope, limit: int) -> Verb[DuePromises]:
    """Return promises that may be broken now, longest-waiting first, and breaches that are not told yet."""
    now: datetime = yield Ask.NOW
    unreadable = set[str]()
    seen: Mapping[str, JobSnapshot] = {}
    while True:
        found: Rows = yield q.promises_due(
            now=now, patient_at=now - JUDGED_BY_ANY_AFTER, met=scope.met, job_ids=unreadable, limit=max(limit, 0)
        )
        if not found:
            break
        # Read before the runs and spans, so that these have whatever is decided in between.
        seen = yield commands.look({row["job_id"] for row in found})
        more = {row["job_id"] for row in found} - seen.keys()
        if not more:
            break
        unreadable |= more
    snapshots: tuple[PromiseSnapshot, ...] = ()
    for row in found:
        snapshots += ((yield from _snapshot(q, row, seen[row["job_id"]], now)),)
    owed: Rows = yield q.owed_breaches(patient_at=now - 2 * JUDGED_BY_ANY_AFTER, limit=max(limit, 0))
    told = [
        OwedBreach(row["job_id"], _breach(row), bool(row["is_begin_owed"]), bool(row["is_end_owed"])) for row in owed
    ]
    return DuePromises(now, snapshots, tuple(told))


def _snapshot(q: ColdQueries, row: Row, seen: JobSnapshot, now: datetime) -> Verb[PromiseSnapshot]:
    state = _state(row)
    if state.kind is PromiseKind.SUCCESS_WITHIN:
        return PromiseSnapshot(row["job_id"], state, seen)
    asked = {"job_key": row["job_key"], "begin_after": state.judged_through, "limit": READ_AT_ONCE}
    runs: Rows = yield q.promised_runs(**asked, now=now)
    spans: Rows = yield q.promised_spans(**asked)
    return PromiseSnapshot(row["job_id"], state, seen, tuple(map(_run, runs)), tuple(map(_span, spans)))


def _state(row: Row) -> PromiseState:
    return PromiseState(
        PromiseKind(row["kind"]),
        row["judged_through"],
        row["check_at"],
        row["held_after"],
        row["held_through"],
        None if row["broken_for"] is None else _breach(row),
        row["revision"],
    )


def _breach(row: Row) -> Breach:
    return Breach(
        kind=PromiseKind(row["kind"]),
        broken_for=row["broken_for"],
        due_at=row["due_at"],
        found_at=row["found_at"],
        last_for=row["last_for"],
        count=row["count"],
        reason=row["reason"],
        occurrence_id=row["occurrence_id"],
        ended_at=row["ended_at"],
        is_withdrawn=bool(row["is_withdrawn"]),
    )


def _run(row: Row) -> PromisedRun:
    return PromisedRun(
        id=row["occurrence_id"],
        scheduled_for=row["scheduled_for"],
        status=row["status"],
        cause=row["cause"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        covers_after=row["covers_after"],
        covers_through=row["covers_through"],
        reason=row["reason"],
    )


def _span(row: Row) -> Span:
    why = Why(row["why"])
    return Span(row["status"], why, row["detail"], row["span_after"], row["span_through"], row["version"], row["count"])


def commit_promises(q: ColdQueries, judgements: Sequence[Judgement], told: Sequence[OwedBreach]) -> Verb[list[Commit]]:
    """Write each whole judgement whose promise still stands as it was judged, and what the receivers were told."""
    yield many(q.tell_breach, map(_told_arguments, told))
    if not judgements:
        return []
    judged = [
        {"job_id": judgement.job_id, "kind": str(judgement.state.kind), "revision": judgement.state.revision}
        for judgement in judgements
    ]
    held: Rows = yield q.hold_promises(judged=judged)
    keys = {(row["job_id"], row["kind"]): row["job_key"] for row in held}
    firsts = {(judgement.job_id, str(judgement.state.kind)): judgement for judgement in reversed(judgements)}
    kept = [(keys[key], judgement) for key, judgement in firsts.items() if key in keys]
    yield many(q.settle_promise, [_state_arguments(key, judgement.state) for key, judgement in kept])
    yield many(
        q.write_breach, [_breach_arguments(key, breach) for key, judgement in kept for breach in judgement.breaches]
    )
    now: datetime = yield Ask.NOW
    broken = sorted({key for key, judgement in kept if judgement.breaches})
    yield many(q.forget_breaches, [{"job_key": key, "forgotten_at": now - BREACHES_KEPT} for key in broken])
    written = [judgement for _, judgement in kept]
    return [
        Commit.COMMITTED if any(judgement is stored for stored in written) else Commit.STALE for judgement in judgements
    ]


def _told_arguments(told: OwedBreach) -> dict[str, Any]:
    return {
        "job_id": told.job_id,
        "kind": str(told.breach.kind),
        "broken_for": told.breach.broken_for,
        "is_begin_told": told.is_begin_owed,
        "is_end_told": told.is_end_owed,
    }


def _state_arguments(job_key: int, state: PromiseState) -> dict[str, Any]:
    return {
        "job_key": job_key,
        "kind": str(state.kind),
        "judged_through": state.judged_through,
        "check_at": state.check_at,
        "held_after": state.held_after,
        "held_through": state.held_through,
        "broken_for": None if state.breach is None else state.breach.broken_for,
    }


def _breach_arguments(job_key: int, breach: Breach) -> dict[str, Any]:
    return {
        "job_key": job_key,
        "kind": str(breach.kind),
        "broken_for": breach.broken_for,
        "due_at": breach.due_at,
        "found_at": breach.found_at,
        "last_for": breach.last_for,
        "count": breach.count,
        "reason": breach.reason,
        "occurrence_id": breach.occurrence_id,
        "ended_at": breach.ended_at,
        "is_withdrawn": breach.is_withdrawn,
        "is_begin_owed": True,
        "is_end_owed": breach.ended_at is not None and not breach.is_withdrawn,
    }


def promised(q: ColdQueries, asked: Promises) -> Verb[list[PromiseRecord]]:
    """Return the promises of these jobs, or of all. Those that are judged soonest come first."""
    found: Rows = yield q.promise_records(
        is_any=asked.job_ids is None, job_ids=list(asked.job_ids or ()), limit=max(asked.limit, 0)
    )
    return [PromiseRecord(row["job_id"], row["name"], _state(row)) for row in found]


def breaches(q: ColdQueries, asked: Breaches) -> Verb[list[BreachRecord]]:
    """Return breaches, newest first."""
    found: Rows = yield q.breach_records(
        is_any=asked.job_id is None, job_id=asked.job_id, is_past=not asked.is_open, limit=max(asked.limit, 0)
    )
    return [BreachRecord(row["job_id"], row["name"], _breach(row)) for row in found]


# ------------------------------------------------------------------------------------------------ edits of definitions


def make_promises(q: ColdQueries, jobs: Iterable[tuple[int, Job]], now: datetime) -> PlainVerb[None]:
    """Let the promises of new jobs hold."""
    made = [{"job_key": key, "kind": str(kind), "now": now} for key, job in jobs for kind in promises_of(job.settings)]
    if made:
        yield many(q.keep_promise, made)


def edit_promises(q: ColdQueries, job_key: int, known: Sequence[Edition], job: Job, now: datetime) -> PlainVerb[None]:
    """Let the promises of an edited job hold, and end those that it makes no more.

    `known` are the versions that are not decided; none if they cannot be read. If the first version is among them, no
    other can have made a promise.
    """
    kinds = [str(kind) for kind in promises_of(job.settings)]
    is_whole = bool(known) and known[0].job.version == 1
    if not kinds and is_whole and not any(promises_of(version.job.settings) for version in known):
        return
    yield q.withdraw_breaches(job_key=job_key, now=now, kinds=kinds, is_withdrawn=True)
    yield q.drop_promises(job_key=job_key, kinds=kinds)
    yield from make_promises(q, [(job_key, job)], now)
