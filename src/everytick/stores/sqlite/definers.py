"""define, undefined and retire: which jobs starts define, and what becomes of jobs that were left out."""

import json
import sqlite3
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from everytick.domain.changes import Remove
from everytick.domain.definers import NameSet, Undefined, UndefinedJob, hash_of
from everytick.stores.sqlite import jobs, rows
from everytick.stores.sqlite.compiled import Definitions
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.rows import micros
from everytick.stores.sqlite.writer import Transaction


def define(transaction: Transaction, names: Collection[str], left_out: Collection[str]) -> None:
    """Keep the names that a start defines, once under their hash, and mark the jobs that it leaves out."""
    told = json.dumps(sorted(names))
    transaction.execute(Q.add_name_set, (hash_of(names), told, transaction.now))
    transaction.execute(Q.take_marks, (told,))
    if left_out:
        transaction.execute(Q.mark_undefined, (transaction.now, json.dumps([*set(left_out).difference(names)])))


def undefined(connection: sqlite3.Connection, now: int) -> Undefined:
    """Return every job in service that is marked, by name, and every set of names if there is any."""
    found = connection.execute(Q.undefined_jobs).fetchall()
    sets = connection.execute(Q.name_sets).fetchall() if found else ()
    return Undefined(
        rows.moment(now),
        tuple(UndefinedJob(id_, name, rows.moment(since)) for id_, name, since in found),
        tuple(NameSet(hash_, frozenset(json.loads(names)), rows.moment(at)) for hash_, names, at in sets),
    )


def retire(
    transaction: Transaction, definitions: Definitions, marks: Mapping[str, datetime], after: timedelta, by: str
) -> frozenset[str]:
    """Remove each of these jobs, by id, if it still has the mark that was seen; return those that were removed."""
    marked = {id_: (name, since) for id_, name, since in transaction.execute(Q.undefined_jobs)}
    taken = {id_: marked[id_][0] for id_, since in marks.items() if id_ in marked and marked[id_][1] == micros(since)}
    jobs.apply(transaction, definitions, [Remove(name, after) for name in taken.values()], by)
    return frozenset(taken)
