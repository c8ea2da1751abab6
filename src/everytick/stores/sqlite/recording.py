"""record: what a node fired while it could not reach this file, written down afterwards."""

import json
from collections.abc import Sequence

from everytick.domain.fired import Fired, FiredRun
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import NotFound
from everytick.stores.beginnings import own_overrides
from everytick.stores.definitions import read_definition
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.rows import (
    CAUSE_CODE,
    NO_TEXT,
    STATUS_CODE,
    Columns,
    micros,
    micros_or_never,
    micros_or_none,
)
from everytick.stores.sqlite.writer import Transaction

_WELL = (OccurrenceStatus.COMPLETED, OccurrenceStatus.COMPLETED_WITH_ERRORS)


def record(transaction: Transaction, job_id: str, fired: Fired) -> list[bool]:
    """Write down what was fired; a run whose occurrence is here already is left as that is."""
    found = transaction.execute(Q.job_by_id, (job_id,)).fetchone()
    if found is None:
        raise NotFound("job", job_id)
    job, execute = found[0], transaction.execute
    watermark = execute(Q.watermark_of, (job,)).fetchone()[0]
    written = [_record(transaction, job, job_id, run) for run in fired.runs]
    for span in fired.spans:
        if micros(span.after) >= watermark:
            covers = micros(span.after), micros(span.through)
            execute(
                Q.add_span, (job, span.version, STATUS_CODE[span.status], span.why, span.detail, *covers, span.count)
            )
    through = micros(fired.through) if watermark >= micros(fired.after) else watermark
    execute(Q.record_watermark, (through, transaction.now, job))
    handles = [handle for handle in written if handle is not None]
    good = [handle for handle, run in zip(written, fired.runs, strict=True) if run.creation.status in _WELL]
    _note_last(transaction, Q.note_last_ends, handles)
    _note_last(transaction, Q.note_last_successes, [handle for handle in good if handle is not None])
    transaction.rang = True
    return [handle is not None for handle in written]


def _note_last(transaction: Transaction, query: str, handles: Sequence[int]) -> None:
    if handles:
        transaction.execute(query, (json.dumps(handles[-1:]),))


def _record(transaction: Transaction, job: int, job_id: str, run: FiredRun) -> int | None:
    """Return the handle of what was written, or None where it is here already."""
    made = transaction.execute(Q.record_occurrence, _columns(transaction, job, job_id, run)).fetchone()
    if made is None:
        return None
    [seq] = made
    for place, row in enumerate(run.rows):
        transaction.execute(Q.write_run, rows.run_columns(seq, row.task, place, row.run))
        if row.attempt is not None:
            began, ended = micros_or_never(row.started_at), micros_or_never(row.ended_at)
            error = NO_TEXT if row.error is None else row.error
            tried = (seq, row.task, row.number, place, rows.ATTEMPT_CODE[row.attempt], began, ended, error)
            transaction.execute(Q.write_attempt, tried)
    return int(seq)


def _columns(transaction: Transaction, job: int, job_id: str, run: FiredRun) -> Columns:
    made, now = run.creation, transaction.now
    text, _, created_at, made_at, _ = transaction.execute(Q.definition, (job, made.version)).fetchone()
    times = {"created_at": rows.moment(created_at), "updated_at": rows.moment(made_at)}
    own = read_definition(text, id=job_id, version=made.version, **times).settings
    given = own_overrides(made, own)
    overrides, payload = rows.write_overrides(given)
    own = own.overridden_by(given)
    return (
        rows.id_bytes(made.id), job, made.version, micros(made.scheduled_for), STATUS_CODE[made.status],
        CAUSE_CODE[made.cause], int(made.late), micros_or_none(made.covers_after), micros(made.covers_through),
        micros(made.line_at), micros(made.ready_at), micros_or_none(run.started_at), micros(run.ended_at), run.error,
        overrides, payload, f"{made.why}, {made.detail}", now, now, own.priority, own.queue,
    )  # fmt: skip
