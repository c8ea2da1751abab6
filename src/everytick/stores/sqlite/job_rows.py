"""A job's row as the verbs find it: by name or id, and what every one of them does with it."""

import sqlite3
from collections.abc import Collection

from everytick.domain.job import Job
from everytick.domain.values import value
from everytick.errors import NotFound
from everytick.stores.beginnings import shown_next_run
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.compiled import Definitions
from everytick.stores.sqlite.planning import look
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.rows import micros_or_none
from everytick.stores.sqlite.writer import Transaction


@value
class JobRow:
    """A job as the verbs find it."""

    key: int
    id: str
    name: str
    removed_at: int | None
    created_at: int


def named(transaction: Transaction, name: str) -> JobRow | None:
    """Return the job of this name, removed or not."""
    row = transaction.execute(Q.job_by_name, (name,)).fetchone()
    return None if row is None else JobRow(*row)


def with_id(connection: sqlite3.Connection, job_id: str) -> JobRow:
    """Return the job of this id, removed or not."""
    row = connection.execute(Q.job_by_id, (job_id,)).fetchone()
    if row is None:
        raise NotFound("job", job_id)
    return JobRow(*row)


def wake(transaction: Transaction, key: int, *, revise: bool) -> None:
    """Let the job be looked at now; with `revise` older snapshots of it are stale."""
    if revise:
        transaction.execute(Q.wake_and_revise_job, (transaction.now, key))
    else:
        transaction.execute(Q.wake_job, (1, transaction.now, key))
    transaction.rang = True


def foretell(transaction: Transaction, definitions: Definitions, job_ids: Collection[str]) -> None:
    """Write down when these jobs run next by what is true now; of one that cannot be read here nothing is known."""
    seen = look(transaction.connection, definitions, job_ids, transaction.now)
    now = rows.moment(transaction.now)
    told = {id_: shown_next_run(snapshot, now) for id_, snapshot in seen.items()}
    transaction.executemany(Q.foretell, [(micros_or_none(told.get(id_)), id_) for id_ in job_ids])


def definition_of(transaction: Transaction, definitions: Definitions, row: JobRow, version: int) -> Job:
    """Return this version of the job's definition."""
    compiled = definitions.get(transaction.connection, row.key, version)
    if compiled is None:
        raise NotFound("readable definition of job", row.name)
    return compiled.job
