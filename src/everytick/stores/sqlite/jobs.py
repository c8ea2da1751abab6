"""What people and definitions ask of jobs: each verb writes facts and wakes the job; only a plan decides."""

import json
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import takewhile

from everytick.domain import facts, ids
from everytick.domain.changes import Edit, Put, Remove, Rename, Tell, in_order, refuse_unexpected
from everytick.domain.codes import STATUS_CODE
from everytick.domain.job import Job
from everytick.domain.needs import RETIRED
from everytick.domain.occurrence import Cause
from everytick.domain.policies import FirstSight
from everytick.domain.snapshots import Request
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import (
    DuplicateDefinition,
    NotFound,
)
from everytick.stores.base import REMEMBERED, JobRecord, Stored
from everytick.stores.beginnings import (
    as_named,
    first_run,
    first_watermark,
    forgettable,
    has_room,
    name_taken,
    refuse_edit,
    under_id,
)
from everytick.stores.definitions import effective_config, write_definition
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.asking import pause, resume
from everytick.stores.sqlite.compiled import Definitions, Unreadable
from everytick.stores.sqlite.job_rows import JobRow, definition_of, foretell, named, wake
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.rows import Columns, micros, micros_or_none
from everytick.stores.sqlite.writer import Transaction

_TICK = timedelta(microseconds=1)
_RUNNING = STATUS_CODE[OccurrenceStatus.RUNNING]


# ------------------------------------------------------------------------------------------------- the definitions


def apply(transaction: Transaction, definitions: Definitions, changes: Sequence[Edit], by: str) -> list[Stored]:
    """Do every change; one that is refused undoes the others, for they are one call."""
    named_versions = (change.name for change in changes if change.expected is not None)
    refuse_unexpected(changes, {name: _version_in_service(transaction, name) for name in named_versions})
    stored = {place: _change(transaction, definitions, change, by) for place, change in in_order(changes)}
    # A new job has its first run already, unless it is held at once.
    told = {
        stored[place].job_id
        for place, change in enumerate(changes)
        if stored[place].changed and not (isinstance(change, Put) and stored[place].version == 1)
    }
    foretell(transaction, definitions, told)
    return [stored[place] for place in range(len(changes))]


def _version_in_service(transaction: Transaction, name: str) -> int:
    row = named(transaction, name)
    if row is None or row.removed_at is not None:
        return 0
    version: int = transaction.execute(Q.newest_version, (row.key,)).fetchone()[0]
    return version


def _change(transaction: Transaction, definitions: Definitions, change: Edit, by: str) -> Stored:
    if isinstance(change, Put):
        return _put(transaction, definitions, change.job, by)
    row, changed = named(transaction, change.name), True
    if row is None or row.removed_at is not None:
        raise NotFound("job", change.name)
    version: int = transaction.execute(Q.newest_version, (row.key,)).fetchone()[0]
    match change:
        case Rename():
            if change.to != row.name and named(transaction, change.to) is not None:
                raise DuplicateDefinition(name_taken(change.to))
            renamed = replace(definition_of(transaction, definitions, row, version), name=change.to)
            return _edit(transaction, definitions, row, renamed, by)
        case Tell(fact=facts.Pause() as fact):
            pause(transaction, row, fact)
        case Tell(fact=facts.Resume() as fact):
            changed = resume(transaction, row, fact)
        case Remove():
            _retire(transaction, row, change.retire_after, by)
    if changed:
        wake(transaction, row.key, revise=True)
    return Stored(row.id, version, changed)


def _put(transaction: Transaction, definitions: Definitions, job: Job, by: str) -> Stored:
    row = named(transaction, job.name)
    if row is not None and row.removed_at is not None and transaction.now - row.removed_at > rows.length(REMEMBERED):
        # A job that was removed long ago makes room for a new one of its name; its history stays.
        transaction.execute(Q.rename_job, (f"{row.name} (removed {rows.moment(row.removed_at)})", row.key))
        row = None
    if row is None:
        return _create(transaction, job, by)
    version, definition, _ = transaction.execute(Q.newest_version, (row.key,)).fetchone()
    if row.removed_at is None and definition == write_definition(job):
        return Stored(row.id, version, changed=False)
    return _edit(transaction, definitions, row, job, by)


def _create(transaction: Transaction, job: Job, by: str) -> Stored:
    nth, now = 1, transaction.now
    while transaction.execute(Q.job_by_id, (id_ := ids.job_id(job.name, nth),)).fetchone() is not None:
        nth += 1
    made = replace(under_id(job, id_), version=1)
    [key] = transaction.execute(Q.add_job, (id_, *_words(made), now)).fetchone()
    transaction.execute(Q.add_version, _version(key, made, 1, None, now, by))
    begin, moment = first_watermark(made, rows.moment(now)), rows.moment(now)
    transaction.execute(Q.add_needs, (made.needs,))
    state = (key, id_, made.needs, micros(begin), micros_or_none(first_run(made, moment)))
    transaction.execute(Q.add_job_state, state)
    if made.settings.on_create.begin is FirstSight.IMMEDIATELY:
        asked = Request("create", Cause.CREATE, rows.moment(now))
        transaction.execute(Q.add_request, rows.request_columns(key, id_, asked))
    wake(transaction, key, revise=False)
    return Stored(id_, 1, changed=True)


def _edit(transaction: Transaction, definitions: Definitions, row: JobRow, job: Job, by: str) -> Stored:
    """A new version, in force after now; what was not claimed takes it, what has started keeps its own."""
    newest, _, oldest = transaction.execute(Q.newest_version, (row.key,)).fetchone()
    if not has_room(newest - oldest + 1, job):
        oldest += forgettable(_readable(transaction, definitions, row.key, oldest, newest))
    refuse_edit(row.name, newest - oldest + 1, job)
    version, now = newest + 1, transaction.now
    made = replace(under_id(job, row.id), version=version)
    transaction.execute(Q.add_version, _version(row.key, made, version, now, now, by))
    transaction.execute(Q.edit_job, (*_words(made), row.key))
    settings = made.settings
    timeout, queue, labels = rows.timeout_or_none(settings.execution_timeout), settings.queue, made.labels
    named = (queue, labels, f"{labels}\n" if labels else "", queue)
    transaction.execute(Q.give_new_version, (version, settings.priority, *named, timeout, row.key))
    transaction.execute(Q.add_needs, (made.needs,))
    transaction.execute(Q.add_needs_of_active, (row.key,))
    if made.enabled:
        transaction.execute(Q.let_waits_go, (now, row.key))
    else:
        transaction.execute(Q.put_all_back_in_line, (now, row.key))
        transaction.execute(Q.hold_waits, (row.key,))
    known = _readable(transaction, definitions, row.key, oldest, newest)
    is_readable = len(known) == newest - oldest + 1
    narrowed_at = now if is_readable and known[-1].settings.recovery != settings.recovery else None
    if transaction.execute(Q.forget_parked_job, (row.key,)).rowcount or not is_readable:
        # By what cannot be read nothing can be decided: the new version is in force for what is left.
        oldest = version
    transaction.execute(Q.edit_job_state, (version, made.needs, oldest, now, narrowed_at, row.key))
    transaction.rang = True
    return Stored(row.id, version, changed=True)


def _readable(transaction: Transaction, definitions: Definitions, key: int, oldest: int, newest: int) -> list[Job]:
    """Return the definitions of these versions up to the first that cannot be read."""
    found = (definitions.get(transaction.connection, key, version) for version in range(oldest, newest + 1))
    return [compiled.job for compiled in takewhile(bool, found) if compiled is not None]


def _words(job: Job) -> Columns:
    """What a job's row says of its newest version: the name, and what retention goes by."""
    keep = job.settings.retention
    success = None if keep.success is None else rows.length(keep.success)
    failure = None if keep.failure is None else rows.length(keep.failure)
    return job.name, success, failure, keep.keep_last


def _version(key: int, job: Job, version: int, in_force_after: int | None, now: int, by: str) -> Columns:
    """The row that keeps this version for ever."""
    said = job.kind, str(job.schedule), job.enabled, write_definition(job), effective_config(job), job.reports
    return key, version, *said, in_force_after, now, by


def _retire(transaction: Transaction, row: JobRow, retire_after: timedelta, by: str) -> None:
    now = transaction.now
    transaction.execute(Q.remove_job, (now, by, row.key))
    transaction.execute(Q.add_needs, (RETIRED,))
    transaction.execute(Q.retire_job, (now + rows.length(retire_after), RETIRED, row.key))


# --------------------------------------------------------------------------------------------------- the questions


def by_ids(connection: sqlite3.Connection, definitions: Definitions, job_ids: str, now: int) -> dict[str, JobRecord]:
    """Return those of the jobs that exist and can be read."""
    return _records(connection, definitions, connection.execute(Q.jobs_by_id, (job_ids,)).fetchall(), now)


def by_name(connection: sqlite3.Connection, definitions: Definitions, now: int, removed: bool) -> list[JobRecord]:
    """Return every job that is not removed and can be read, by name, or the removed ones too."""
    found = connection.execute(Q.jobs_by_name, (removed,)).fetchall()
    return list(_records(connection, definitions, found, now).values())


def _records(
    connection: sqlite3.Connection, definitions: Definitions, found: list[Columns], now: int
) -> dict[str, JobRecord]:
    asked = json.dumps([row[0] for row in found])
    pauses = {row[0]: rows.pause(row[1:]) for row in reversed(_all(connection, Q.running_pauses, (now, asked)))}
    records = {}
    for row in found:
        compiled = definitions.get(connection, row[0], row[1])
        if compiled is not None:
            records[row[15]] = JobRecord(
                as_named(compiled.job, row[20]),
                row[2],
                rows.moment(row[3]),
                rows.moment_or_none(row[4]),
                pauses.get(row[0]),
                rows.moment_or_none(row[5]),
                rows.moment_or_none(row[6]),
                rows.ended(row[7:11]),
                rows.ended(row[11:15]),
                row[16],
                rows.moment_or_none(row[17]),
                row[18],
                row[19],
                row[21],
                row[22],
                rows.moment_or_none(row[23]),
            )
    return records


def _all(connection: sqlite3.Connection, query: str, asked: Columns) -> list[Columns]:
    return connection.execute(query, tuple(asked)).fetchall()


def parked(connection: sqlite3.Connection) -> dict[str, str]:
    """Return why each job in service is parked that is, by name."""
    return dict(connection.execute(Q.parked_jobs))


def show_parked(transaction: Transaction, found: Collection[Unreadable]) -> None:
    """Let people see which definitions this process could not read."""
    for each in found:
        transaction.execute(Q.show_parked, (each.job, each.version, each.reason, transaction.now))


def look_again_at_parked(transaction: Transaction, definitions: Definitions) -> None:
    """Forget that a definition was parked if this process can read it: perhaps it is a newer everytick."""
    for job, version in transaction.execute(Q.parked_definitions).fetchall():
        if definitions.get(transaction.connection, job, version) is not None:
            transaction.execute(Q.forget_parked, (job, version))
