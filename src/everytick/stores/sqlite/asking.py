"""request: one fact about a job or an occurrence is written, and wakes the job; only a plan decides."""

from dataclasses import replace

from everytick.domain import facts
from everytick.domain.codes import CAUSE_CODE, FIRST_ENDED, STATUS_CODE, STATUSES
from everytick.domain.facts import ASKS, REVISES, Fact, adjustment_of, request_of
from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import Adjustment, Request
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import JobDisabled, NotFound
from everytick.stores.base import Receipt
from everytick.stores.beginnings import as_stored
from everytick.stores.open_requests import KEEPS_ITS_KEY, KeyUse, as_waiting, has_key_of_its_own, under_key
from everytick.stores.sqlite import ahead, rows
from everytick.stores.sqlite.compiled import Definitions
from everytick.stores.sqlite.job_rows import JobRow, definition_of, foretell, wake, with_id
from everytick.stores.sqlite.planning import creation_columns, end
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.rows import micros, micros_or_none
from everytick.stores.sqlite.writer import Transaction

_RUNNING = STATUS_CODE[OccurrenceStatus.RUNNING]


def request(transaction: Transaction, definitions: Definitions, subject: str, fact: Fact) -> Receipt:
    """Write one fact about a job, or about an occurrence, and let its job be looked at."""
    if isinstance(fact, facts.Cancel):
        return Receipt(subject, _cancel(transaction, definitions, subject, fact.reason))
    row = with_id(transaction.connection, subject)
    receipt = _write(transaction, definitions, row, fact)
    if receipt.changed:
        revises = type(fact) in REVISES
        wake(transaction, row.key, revise=revises)
        if revises:
            foretell(transaction, definitions, [row.id])
    return receipt


def _write(transaction: Transaction, definitions: Definitions, row: JobRow, fact: Fact) -> Receipt:
    if isinstance(fact, ASKS):
        return _ask(transaction, definitions, row, request_of(fact, rows.moment(transaction.now)))
    changed = True
    match fact:
        case facts.Pause():
            pause(transaction, row, fact)
        case facts.Resume():
            changed = resume(transaction, row, fact)
        case facts.Reschedule():
            transaction.execute(Q.reschedule, (transaction.now, micros(fact.to), fact.by, row.key))
        case facts.Rewind():
            changed = ahead.rewind(transaction, row.key)
        case facts.Skip() | facts.Move() | facts.Amend() | facts.Undo():
            _adjust(transaction, row, adjustment_of(fact))
    return Receipt(row.id, changed)


def pause(transaction: Transaction, row: JobRow, fact: facts.Pause) -> None:
    """Hold the schedule from now on; what was not claimed waits."""
    since = now = transaction.now
    running = transaction.execute(Q.running_pause, (row.key, now)).fetchone()
    if running is not None:
        seq, since = running
        transaction.execute(Q.forget_pause, (seq,))
    transaction.execute(Q.add_pause, (row.key, since, micros_or_none(fact.until), fact.missed, fact.reason, fact.by))
    transaction.execute(Q.put_back_in_line, (now, row.key))


def resume(transaction: Transaction, row: JobRow, fact: facts.Resume) -> bool:
    """End a pause now; return whether there was one."""
    now = transaction.now
    running = transaction.execute(Q.running_pause, (row.key, now)).fetchone()
    if running is None:
        return False
    transaction.execute(Q.end_pause, (now, fact.by, running[0]))
    return True


def _adjust(transaction: Transaction, row: JobRow, asked: Adjustment) -> None:
    overrides, payload = rows.write_overrides(asked.overrides)
    to = micros_or_none(asked.to)
    columns = (row.key, micros(asked.at), asked.kind, to, asked.reason, asked.by, asked.done, overrides, payload)
    transaction.execute(Q.put_adjustment, columns)


def _ask(transaction: Transaction, definitions: Definitions, row: JobRow, asked: Request) -> Receipt:
    if row.removed_at is not None:
        raise NotFound("job", row.name)
    version, _, _ = transaction.execute(Q.newest_version, (row.key,)).fetchone()
    job = definition_of(transaction, definitions, row, version)
    if not job.enabled:
        raise JobDisabled(row.name)
    asked = as_stored(job, asked, rows.moment(transaction.now))
    asked, is_known = under_key(row.id, asked, _key_use(transaction, row, asked))
    id_ = asked.occurrence_id(row.id)
    if not is_known:
        if has_key_of_its_own(asked):
            key = CAUSE_CODE[asked.cause], asked.key
            transaction.execute(Q.use_key, (row.key, *key, asked.nth, asked.call, rows.id_bytes(id_)))
        transaction.execute(Q.add_request, rows.request_columns(row.key, row.id, asked))
    return Receipt(id_, not is_known)


def _key_use(transaction: Transaction, row: JobRow, asked: Request) -> KeyUse | None:
    """Return what the key was last used for."""
    key = row.key, CAUSE_CODE[asked.cause], asked.key
    if (open_ := transaction.execute(Q.open_request, key).fetchone()) is not None:
        return KeyUse(open_[0], None, True, rows.payload_or_none(open_[1]))
    if asked.cause is Cause.BACKFILL:
        return None
    nth, call = transaction.execute(Q.key_use, key).fetchone() or (1, None)
    id_ = replace(asked, nth=nth).occurrence_id(row.id)
    made = transaction.execute(Q.payload_of, (rows.id_bytes(id_),)).fetchone()
    if made is None:
        return None if call is None else KeyUse(nth, call, False, None)
    return KeyUse(nth, call, STATUSES[made[0]] in KEEPS_ITS_KEY, rows.payload_or_none(made[1]))


def _cancel(transaction: Transaction, definitions: Definitions, occurrence_id: str, reason: str) -> bool:
    """End what no node has claimed, or ask its owner to stop; return whether it was still active."""
    id_ = rows.id_bytes(occurrence_id)
    found = transaction.execute(Q.status_of, (id_,)).fetchone()
    if found is None:
        _make_canceled(transaction, definitions, occurrence_id)
        found = transaction.execute(Q.status_of, (id_,)).fetchone()
    status, owner, job = found
    if status >= FIRST_ENDED:
        return False
    if owner is None and status != _RUNNING:
        end(transaction, definitions, id_, OccurrenceStatus.CANCELED, reason)
        wake(transaction, job, revise=False)
    else:
        transaction.execute(Q.ask_to_cancel, (reason, id_, True))
        transaction.rang = True
    return True


def _make_canceled(transaction: Transaction, definitions: Definitions, occurrence_id: str) -> None:
    """Make what is asked for and no plan has made, to be canceled: then no older plan makes it."""
    id_ = rows.id_bytes(occurrence_id)
    found = transaction.execute(Q.asked_for, (id_,)).fetchone()
    if found is None:
        raise NotFound("occurrence", occurrence_id)
    key, *columns = found
    version, _, _ = transaction.execute(Q.newest_version, (key,)).fetchone()
    compiled = definitions.get(transaction.connection, key, version)
    if compiled is None:
        raise NotFound("readable definition of occurrence", occurrence_id)
    waiting = as_waiting(compiled.job, rows.request(columns))
    transaction.execute(Q.create_occurrence, creation_columns(key, compiled.job, waiting, transaction.now))
    transaction.execute(Q.forget_asked_for, (id_,))
