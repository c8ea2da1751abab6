"""record: what a node fired while it could not reach this file, written down afterwards."""

import json

from everytick.domain.codes import ATTEMPT_CODE, CAUSE_CODE, STATUS_CODE
from everytick.domain.fired import Fired, FiredRun
from everytick.domain.job import Job
from everytick.domain.needs import needs_in
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.steps import failed_at
from everytick.errors import NotFound
from everytick.stores.definitions import read_definition
from everytick.stores.sql.rows import write_overrides
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.rows import NO_TEXT, Columns, micros, micros_or_never, micros_or_none
from everytick.stores.sqlite.writer import Transaction
from everytick.stores.storing_rules import own_overrides

_WELL = (OccurrenceStatus.COMPLETED, OccurrenceStatus.COMPLETED_WITH_ERRORS)


def record(transaction: Transaction, job_id: str, fired: Fired) -> list[int | None]:
    """Write down what was fired; a run whose occurrence is here already is left as that is."""
    found = transaction.execute(Q.job_by_id, (job_id,)).fetchone()
    if found is None:
        raise NotFound("job", job_id)
    job, execute = found[0], transaction.execute
    watermark = execute(Q.watermark_of, (job,)).fetchone()[0]
    made: list[FiredRun] = []
    handles = [_record(transaction, job, job_id, run, made) for run in fired.runs]
    for span in fired.spans:
        if micros(span.after) >= watermark:
            covers = micros(span.after), micros(span.through)
            execute(
                Q.add_span, (job, span.version, STATUS_CODE[span.status], span.why, span.detail, *covers, span.count)
            )
    through = micros(fired.through) if watermark >= micros(fired.after) else watermark
    execute(Q.record_watermark, (through, transaction.now, job))
    ends = fired.ends(handles)
    for _, seq, _ in ends[-1:]:
        execute(Q.note_last_ends, (json.dumps([seq]),))
    # What was told before was counted then; the last end was counted just now, new or not.
    begun = sum(1 for run in made if run.ended_at is not None and run.started_at is not None)
    execute(Q.count_runs, (begun - len(ends[-1:]), job_id))
    for failure in [run.failure for _, _, run in ends if run.failure is not None][-1:]:
        execute(Q.note_failure, (failure, job_id))
    if (failed := failed_at(row for run in made for row in run.rows)) is not None:
        execute(Q.note_failed_attempt, (micros(failed), job_id))
    good = [seq for _, seq, run in ends if run.creation.status in _WELL]
    for seq in good[-2:]:
        execute(Q.note_last_successes, (json.dumps([seq]),))
    for owner in {run.owner for run in fired.runs if run.owner is not None}:
        # Like a claim it is a sign of life: others must not take its owner for dead at once.
        execute(Q.beat, (owner, transaction.now))
    transaction.rang = True
    return handles


def _record(transaction: Transaction, job: int, job_id: str, run: FiredRun, new: list[FiredRun]) -> int | None:
    """Return the handle of what is here of the run, or None where that is another's; what is new here joins `new`."""
    defined = _definition(transaction, job, job_id, run.creation.version)
    places = {task.name: task.order for task in defined.tasks}
    own = defined.settings.overridden_by(own_overrides(run.creation, defined.settings))
    transaction.execute(Q.add_needs, (needs_in(defined.labels, own.queue),))
    made = transaction.execute(Q.record_occurrence, _columns(transaction.now, job, defined, run)).fetchone()
    if made is None:
        known = transaction.execute(Q.recorded_before, (rows.id_bytes(run.creation.id), run.reason)).fetchone()
        return None if known is None else int(known[0])
    [seq] = made
    new.append(run)
    for row in run.rows:
        place = places[row.task]
        transaction.execute(Q.write_run, rows.run_columns(seq, row.task, place, row.run))
        if row.attempt is not None:
            began, ended = micros_or_never(row.started_at), micros_or_never(row.ended_at)
            error = NO_TEXT if row.error is None else row.error
            tried = (row.task, row.number, place, ATTEMPT_CODE[row.attempt], began, ended, error, seq)
            transaction.execute(Q.write_attempt, tried)
    return int(seq)


def _definition(transaction: Transaction, job: int, job_id: str, version: int) -> Job:
    text, _, created_at, made_at, _ = transaction.execute(Q.definition, (job, version)).fetchone()
    times = {"created_at": rows.moment(created_at), "updated_at": rows.moment(made_at)}
    return read_definition(text, id=job_id, version=version, **times)


def _columns(now: int, job: int, defined: Job, run: FiredRun) -> Columns:
    made = run.creation
    given = own_overrides(made, defined.settings)
    overrides, payload = write_overrides(given)
    own = defined.settings.overridden_by(given)
    ready_at = micros(made.ready_at)
    is_early = int(run.ended_at is None and run.owner is None and ready_at > now)
    return (
        rows.id_bytes(made.id), job, made.version, micros(made.scheduled_for), STATUS_CODE[made.status],
        CAUSE_CODE[made.cause], int(made.late), micros_or_none(made.covers_after), micros(made.covers_through),
        micros(made.line_at), ready_at, micros_or_none(run.started_at), micros_or_none(run.ended_at), run.error,
        overrides, payload, run.reason, now, now, own.priority,
        needs_in(defined.labels, own.queue), run.owner, run.fence, run.number,
        micros_or_none(run.claimed_at), run.lost, int(run.superseded_by_next), int(run.report_due), is_early,
        rows.timeout_or_none(own.execution_timeout), run.token, run.node,
    )  # fmt: skip
