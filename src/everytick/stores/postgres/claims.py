"""Claims from rows. Columns are read by place, since thousands of claims are made in a second."""

from collections.abc import Mapping
from functools import partial

from everytick.domain.codes import CAUSES, STATUSES
from everytick.domain.config import Overrides
from everytick.domain.occurrence import Cause, Occurrence
from everytick.domain.steps import NOT_STARTED, RunState, new_header, new_life, rules_of
from everytick.stores.base import Claim, ClaimKey
from everytick.stores.postgres.rows import Row
from everytick.stores.sql.definitions import Compiled
from everytick.stores.sql.rows import read_overrides

_SCHEDULE = Cause.SCHEDULE

CLAIM_COLUMNS = (
    "handle",
    "id",
    "job_key",
    "version",
    "scheduled_for",
    "status",
    "cause",
    "late",
    "covers_after",
    "covers_through",
    "line_at",
    "ready_at",
    "owner",
    "fence",
    "started_at",
    "ended_at",
    "error",
    "overrides",
    "payload",
    "replay_of",
    "reason",
    "created_at",
    "updated_at",
    "step_number",
    "claimed_at",
    "lost",
    "cancel_reason",
    "priority",
    "claim_token",
    "node",
    "found",
    "holds_place",
)
"""The columns of a claim, in the order in which `claim` takes them: a statement says «claim» where they belong."""


def place_in_line(row: Row) -> tuple[object, ...]:
    """Return the order of a claimed row: priority, then age."""
    return -row["priority"], row["line_at"], row["id"]


def claim(row: Row, kept: Compiled, known: Mapping[str, RunState] | None) -> Claim:
    """Return a claim from its columns. Its record is made at the first access."""
    (
        handle,
        id_,
        _,
        _,
        scheduled_for,
        status,
        cause,
        late,
        _,
        _,
        _,
        ready_at,
        owner,
        fence,
        started_at,
        ended_at,
        error,
        overrides,
        payload,
        _,
        _,
        _,
        _,
        step_number,
        claimed_at,
        lost,
        cancel_reason,
        _,
        claim_token,
        _,
        found,
        holds_place,
        *_,
    ) = row
    job, rules = kept.job, kept.rules
    own = read_overrides(overrides, payload)
    if own.items:
        rules = rules_of(job, own)
    why = CAUSES[cause]
    header = new_header(
        id=f"occ_{id_}",
        job_id=job.id,
        scheduled_for=scheduled_for,
        rules=rules,
        is_recovery_run=late and why is _SCHEDULE,
        found=STATUSES[found],
        holds_place=holds_place,
        cause=why,
    )
    life = new_life(
        status=STATUSES[status],
        runs=tuple(known.get(task.name, NOT_STARTED) for task in rules.tasks) if known else kept.rules.not_started,
        number=step_number,
        is_owned=owner is not None,
        ready_at=ready_at,
        started_at=started_at,
        claimed_at=claimed_at,
        ended_at=ended_at,
        error=error,
        lost=lost,
        cancel=cancel_reason,
    )
    return Claim(ClaimKey(handle, fence, claim_token), partial(_record, row, job.id, own), header, life, job)


def _record(row: Row, job_id: str, own: Overrides) -> Occurrence:
    """Return what people see of an occurrence, from the columns of a claim."""
    return Occurrence(
        f"occ_{row['id']}",
        job_id,
        row["version"],
        row["scheduled_for"],
        STATUSES[row["status"]],
        CAUSES[row["cause"]],
        late=row["late"],
        covers_after=row["covers_after"],
        covers_through=row["covers_through"],
        line_at=row["line_at"],
        ready_at=row["ready_at"],
        owner=row["owner"],
        fence=row["fence"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        error=row["error"],
        overrides=own,
        replay_of=row["replay_of"],
        reason=row["reason"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        node=row["node"],
    )
