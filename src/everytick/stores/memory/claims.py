"""Claims made of rows, and which ready occurrence is claimed first."""

from dataclasses import replace
from datetime import datetime

from everytick.domain.notes import HandedAttempt
from everytick.domain.occurrence import Cause
from everytick.domain.statuses import ATTEMPT_ENDED, OccurrenceStatus
from everytick.domain.steps import OccurrenceHeader, OccurrenceLife, new_header, new_life, rules_of, runs_of
from everytick.stores.base import Claim, ClaimKey
from everytick.stores.memory.rows import OccurrenceRow

_SCHEDULE = Cause.SCHEDULE


def claim_of(row: OccurrenceRow) -> Claim:
    """Return the occurrence as its owner needs it."""
    header, life = header_and_life(row)
    return Claim(key_of(row), row.record, header, life, row.job.versions[row.version][0])


def key_of(row: OccurrenceRow) -> ClaimKey:
    """Return the key of its last claim."""
    return ClaimKey(row.handle, row.fence, row.token)


def header_and_life(row: OccurrenceRow) -> tuple[OccurrenceHeader, OccurrenceLife]:
    """Return what the decisions about an occurrence read."""
    job, rules = row.job.versions[row.version]
    if row.overrides.items:
        rules = rules_of(job, row.overrides)
    creation = row.creation
    header = new_header(
        id=row.id,
        job_id=row.job.id,
        scheduled_for=creation.scheduled_for,
        rules=rules,
        is_recovery_run=creation.late and creation.cause is _SCHEDULE,
        found=row.found,
        holds_place=row.holds_place,
        cause=creation.cause,
    )
    life = new_life(
        status=row.status,
        runs=runs_of(rules, row.runs),
        number=row.number,
        is_owned=row.owner is not None,
        ready_at=row.ready_at,
        started_at=row.started_at,
        claimed_at=row.claimed_at,
        ended_at=row.ended_at,
        error=row.error,
        lost=row.lost,
        cancel=row.cancel,
    )
    return header, life


def with_handed(row: OccurrenceRow, claim: Claim) -> Claim:
    """Return the claim of this row with its attempts that an engine works on."""
    return replace(claim, handed=_handed(row))


def is_handed(row: OccurrenceRow) -> bool:
    """Whether an engine works on an attempt of it."""
    return row.status is OccurrenceStatus.RUNNING and bool(_handed(row))


def _handed(row: OccurrenceRow) -> tuple[HandedAttempt, ...]:
    """Return the open attempts that were handed over to engines, by task and number."""
    tries = [(*key, attempt.handed_to) for key, attempt in row.attempts.items() if attempt.status not in ATTEMPT_ENDED]
    return tuple(sorted(HandedAttempt(task, number, engine) for task, number, engine in tries if engine is not None))


def claim_order(row: OccurrenceRow) -> tuple[int, datetime, str]:
    """Return the place of the row among the ready ones: by priority, then age."""
    return -row.priority, row.line_at, row.id


def waits_for_a_plan(row: OccurrenceRow, now: datetime) -> bool:
    """Whether the row is a retry that the next instant supersedes, and its job is due: then the plan comes first."""
    due_at = row.job.wake_at if row.superseded_by_next else None
    return due_at is not None and due_at <= now
