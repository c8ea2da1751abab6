"""Rows that hot statements write: each function gives the columns that the tuple beside it names.

The names fill the statement: `queries.py` refuses a text that takes other parameters, or takes them in another order.
Rows are tuples in the driver's form, with `NEVER` and `NO_TEXT` instead of None: by name a driver takes twice as long.
"""

from everytick.domain.codes import ATTEMPT_CODE, CAUSE_CODE, RUN_CODE, STATUS_CODE
from everytick.domain.decisions import Creation, Plan, Span
from everytick.domain.job import Job
from everytick.domain.needs import late_needs, needs_in
from everytick.domain.statuses import ENDED, OccurrenceStatus, may_move
from everytick.domain.steps import RunRow, RunState, Step
from everytick.stores.base import Claim
from everytick.stores.sql.rows import write_overrides, write_waits
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.rows import NEVER, NO_TEXT, Columns, micros, micros_or_never
from everytick.stores.storing_rules import own_overrides

_HELD = (OccurrenceStatus.RUNNING, OccurrenceStatus.AWAITING_RETRY)

# The statuses of an owned occurrence: running, or waiting for a retry that its owner keeps.
_STEP_CODE = {
    status: code
    for status, code in STATUS_CODE.items()
    if status in _HELD or any(may_move(held, status) for held in _HELD)
}

# ------------------------------------------------------------------------------------------------------ by a plan

CREATION_COLUMNS = (
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
    "ended_at",
    "overrides",
    "payload",
    "replay_of",
    "reason",
    "created_at",
    "updated_at",
    "priority",
    "needs",
    "is_early",
    "execution_timeout",
)


def creation_columns(job_key: int, definition: Job, creation: Creation, now: int) -> Columns:
    """Return the columns of a new occurrence."""
    own, overrides, payload = definition.settings, None, None
    if creation.overrides is not None or creation.payload is not None:
        of_its_own = own_overrides(creation, own)
        overrides, payload = write_overrides(of_its_own)
        own = own.overridden_by(of_its_own)
    instant, status = creation.scheduled_for, creation.status
    scheduled_for = micros(instant)
    needs = definition.needs if own is definition.settings else needs_in(definition.labels, own.queue)
    line_at = scheduled_for if creation.line_at is instant else micros(creation.line_at)
    ready_at = scheduled_for if creation.ready_at is instant else micros(creation.ready_at)
    return (
        rows.new_id(creation.id),
        job_key,
        creation.version,
        scheduled_for,
        STATUS_CODE[status],
        CAUSE_CODE[creation.cause],
        1 if creation.late else 0,
        micros_or_never(creation.covers_after),
        scheduled_for if creation.covers_through is instant else micros(creation.covers_through),
        line_at,
        ready_at,
        now if status in ENDED else NEVER,
        NO_TEXT if overrides is None else overrides,
        NO_TEXT if payload is None else payload,
        NO_TEXT if creation.replay_of is None else creation.replay_of,
        f"{creation.why}, {creation.detail}" if creation.detail else str(creation.why),
        now,
        now,
        own.priority,
        needs if not creation.in_lane else late_needs(needs),
        1 if ready_at > now else 0,
        rows.timeout_or_never(own.execution_timeout),
    )


SPAN_COLUMNS = ("job_key", "version", "status", "why", "detail", "span_after", "span_through", "count")


def span_columns(job_key: int, span: Span) -> Columns:
    """Return the columns of instants that do not run."""
    status, after, through = STATUS_CODE[span.status], micros(span.after), micros(span.through)
    return job_key, span.version, status, span.why, span.detail, after, through, span.count


MOVE_COLUMNS = ("watermark", "woken", "wake_at", "now", "next_run_at", "plan_token", "woken", "job_key")


def move_columns(job_key: int, plan: Plan, watermark: int, token: int, now: int) -> Columns:
    """Return what a plan writes of where its job stands. `watermark` is that of the plan, in microseconds."""
    wake_at, next_run_at = micros_or_never(plan.wake_at), micros_or_never(plan.next_run)
    return watermark, plan.woken, wake_at, now, next_run_at, token, plan.woken, job_key


# ------------------------------------------------------------------------------------------------------ by a step

ADVANCE_COLUMNS = (
    "status",
    "is_free",
    "ready_at",
    "is_free",
    "ready_at",
    "now",
    "error",
    "step_number",
    "lost",
    "superseded_by_next",
    "now",
    "handle",
    "fence",
    "claim_token",
    "step_number",
)


def advance_columns(claim: Claim, step: Step, now: int) -> Columns:
    """Return the columns of a step that is not the last."""
    after, number = step.after, step.number
    ready_at = micros_or_never(step.resume_at or after.ready_at)
    is_free = 1 if step.resume_at is not None or step.release else 0
    error = NO_TEXT if after.error is None else after.error
    superseded = 1 if step.superseded_by_next else 0
    return (
        _STEP_CODE[after.status], is_free, ready_at, is_free, ready_at, now, error, number, after.lost, superseded, now,
        *claim.key, number,
    )  # fmt: skip


END_COLUMNS = (
    "handle",
    "fence",
    "claim_token",
    "step_number",
    "status",
    "ready_at",
    "ended_at",
    "error",
    "lost",
    "superseded_by_next",
)


def end_columns(claim: Claim, step: Step, ended_at: int) -> Columns:
    """Return the columns of an end."""
    after = step.after
    error = NO_TEXT if after.error is None else after.error
    superseded = 1 if step.superseded_by_next else 0
    return (
        *claim.key, step.number, _STEP_CODE[after.status], micros_or_never(after.ready_at), ended_at, error, after.lost,
        superseded,
    )  # fmt: skip


RUN_COLUMNS = (
    "handle",
    "task",
    "status",
    "attempts",
    "retries",
    "last_attempt_status",
    "resume_at",
    "started_at",
    "attempt_started_at",
    "ended_at",
    "error",
    "result",
    "waits",
    "because_of",
    "out_of_time",
)
_ATTEMPT_STARTED_AT = RUN_COLUMNS.index("attempt_started_at")


def run_columns(handle: int, task: str, run: RunState) -> Columns:
    """Return the columns of a task's run."""
    began, again, error, because_of = run.started_at, run.attempt_started_at, run.error, run.because_of
    started_at = NEVER if began is None else micros(began)
    return (
        handle,
        task,
        RUN_CODE[run.status],
        run.attempts,
        run.retries,
        NEVER if run.last is None else ATTEMPT_CODE[run.last],
        NEVER if run.resume_at is None else micros(run.resume_at),
        started_at,
        started_at if again is began else micros_or_never(again),
        NEVER if run.ended_at is None else micros(run.ended_at),
        NO_TEXT if error is None else error,
        NO_TEXT if run.result is None else run.result.text,
        write_waits(run.waits) or NO_TEXT,
        NO_TEXT if because_of is None else because_of,
        1 if run.out_of_time else 0,
    )


ATTEMPT_COLUMNS = ("handle", "task", "number", "status", "started_at", "ended_at", "error")


def attempt_columns(handle: int, row: RunRow, run: Columns, ended_at: int) -> Columns | None:
    """Return the columns of the attempt that a step has written, if it has. `run` are the columns of its run."""
    if row.attempt is None:
        return None
    # Mostly the run's last attempt, whose start is in the run's columns already.
    began = row.started_at
    started_at = run[_ATTEMPT_STARTED_AT] if began is row.run.attempt_started_at else micros_or_never(began)
    error = NO_TEXT if row.error is None else row.error
    return handle, row.task, row.number, ATTEMPT_CODE[row.attempt], started_at, ended_at, error
