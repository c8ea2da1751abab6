"""record: the runs that a node fired while it could not reach this store."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from everytick.domain.fired import Fired, FiredRun
from everytick.domain.job import Job
from everytick.domain.needs import needs_in
from everytick.domain.statuses import WELL
from everytick.domain.steps import bounded, failed_at
from everytick.stores.sql import rows
from everytick.stores.sql.commands import Ask, Rows, Verb, many
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.verbs.job_records import job_key
from everytick.stores.sql.verbs.locked_job import held_job, version_of, wake
from everytick.stores.storing_rules import own_overrides


def record(q: ColdQueries, job_id: str, fired: Fired) -> Verb[list[int | None]]:
    """Record the fired runs. A run whose occurrence exists here leaves it as it is."""
    key = yield from job_key(q, job_id)
    jobs: dict[int, Job] = {}
    for version in {run.creation.version for run in fired.runs}:
        jobs[version] = (yield from version_of(key, version)).job
    made = [_occurrence(key, jobs[run.creation.version], run) for run in fired.runs]
    # Before the job is locked, as in every verb: two transactions may write one text at once.
    yield q.know_needs(texts=sorted({row["needs"] for row in made}))
    yield from held_job(q, job_id)
    now: datetime = yield Ask.NOW
    [decided] = yield q.decided_through(job_key=key, now=now)
    handles: list[int | None] = []
    new: list[FiredRun] = []
    for run, columns in zip(fired.runs, made, strict=True):
        handle, is_new = yield from _record(q, run, columns, now)
        handles.append(handle)
        new += [run] if is_new else []
    spans = [span for span in fired.spans if span.after >= decided["watermark"]]
    yield many(q.add_span, [rows.span_arguments(key, span) for span in spans])
    yield from _note_ends(q, key, fired, handles, new, decided["watermark"])
    for owner in sorted({run.owner for run in fired.runs if run.owner is not None}):
        # A record is a sign of life, as a claim is: no reaper must take these runs over at once.
        yield q.hear(node_id=owner, now=now, facts=None)
    yield from wake(q, key, now)
    return handles


def _occurrence(key: int, job: Job, run: FiredRun) -> dict[str, Any]:
    """Return the run as `record_occurrence` takes it, but for the time."""
    made = run.creation
    given = own_overrides(made, job.settings)
    own = job.settings.overridden_by(given)
    overrides, payload = rows.write_overrides(given)
    return {
        "occurrence_id": made.id,
        "job_key": key,
        "version": made.version,
        "scheduled_for": made.scheduled_for,
        "status": made.status,
        "cause": made.cause,
        "late": made.late,
        "covers_after": made.covers_after,
        "covers_through": made.covers_through,
        "line_at": made.line_at,
        "ready_at": made.ready_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "error": run.error,
        "overrides": overrides,
        "payload": payload,
        "reason": run.reason,
        "priority": own.priority,
        "needs": needs_in(job.labels, own.queue),
        "owner": run.owner,
        "fence": run.fence,
        "step_number": run.number,
        "claimed_at": run.claimed_at,
        "lost": run.lost,
        "superseded_by_next": run.superseded_by_next,
        "execution_timeout": bounded(own.execution_timeout),
        "claim_token": run.token,
        "node": run.node,
    }


def _record(q: ColdQueries, run: FiredRun, columns: Mapping[str, Any], now: datetime) -> Verb[tuple[int | None, bool]]:
    """Return the handle of the run's occurrence, None if it belongs to another, and whether it is new here."""
    is_early = run.ended_at is None and run.owner is None and run.creation.ready_at > now
    made: Rows = yield q.record_occurrence(**columns, now=now, is_early=is_early)
    if not made:
        known: Rows = yield q.recorded_before(occurrence_id=run.creation.id, reason=run.reason)
        return known[0]["handle"] if known else None, False
    handle: int = made[0]["handle"]
    if run.report_due:
        yield q.owe_report(handle=handle)
    yield many(q.record_run, [rows.run_arguments(handle, row.task, row.run) for row in run.rows])
    attempts = [
        {
            "handle": handle,
            "task": row.task,
            "number": row.number,
            "attempt_status": row.attempt,
            "started_at": row.started_at,
            "ended_at": row.ended_at,
            "error": row.error,
            "node": run.node,
        }
        for row in run.rows
        if row.attempt is not None
    ]
    yield many(q.record_attempt, attempts)
    return handle, True


def _note_ends(
    q: ColdQueries, key: int, fired: Fired, handles: list[int | None], new: list[FiredRun], watermark: datetime
) -> Verb[None]:
    """Move the job's watermark to that of the node, and set its last ends. Older snapshots become stale."""
    ended = [run for _, _, run in fired.ends(handles)]
    last = ended[-1] if ended else None
    failures = [run.failure for run in ended if run.failure is not None]
    yield q.record_ends(
        job_key=key,
        watermark=max(watermark, fired.through) if watermark >= fired.after else watermark,
        end_for=None if last is None else last.creation.scheduled_for,
        end_started_at=None if last is None else last.started_at,
        end_at=None if last is None else last.ended_at,
        end_occurrence_id=None if last is None else last.creation.id,
        # A run that was recorded by an earlier call was counted then.
        runs=sum(1 for run in new if run.ended_at is not None and run.started_at is not None),
        error=failures[-1] if failures else None,
        failed_at=failed_at(row for run in new for row in run.rows),
    )
    for run in [run for run in ended if run.creation.status in WELL][-2:]:
        yield q.record_success(
            job_key=key,
            scheduled_for=run.creation.scheduled_for,
            started_at=run.started_at,
            ended_at=run.ended_at,
            occurrence_id=run.creation.id,
        )
