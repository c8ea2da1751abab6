"""define, undefined and retire: which jobs the starting processes define, and how jobs that none defines retire."""

import json
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from everytick.domain.definers import NameSet, Undefined, UndefinedJob, hash_of
from everytick.domain.lookups import UndefinedJobs
from everytick.domain.needs import RETIRED
from everytick.stores.sql.commands import Ask, Rows, Verb
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Row
from everytick.stores.sql.verbs.editing import remove
from everytick.stores.sql.verbs.locked_job import foretell


def define(q: ColdQueries, names: Collection[str], left_out: Collection[str]) -> Verb[None]:
    """Store the names that a starting process defines, once under their hash, and mark the jobs in `left_out`."""
    defined = sorted(names)
    now: datetime = yield Ask.NOW
    yield q.add_name_set(hash=hash_of(defined), names_json=json.dumps(defined), now=now)
    yield q.take_marks(names=defined)
    if left_out:
        unmarked = sorted(set(left_out).difference(defined))
        yield q.lock_names(names=unmarked)
        yield q.mark_undefined(names=unmarked, now=(yield Ask.NOW))


def undefined(q: ColdQueries, _: UndefinedJobs) -> Verb[Undefined]:
    """Return every marked job in service, by name. If there is one, return every stored set of names too."""
    now: datetime = yield Ask.NOW
    found: Rows = yield q.undefined_jobs()
    sets: Rows = (yield q.name_sets()) if found else ()
    return Undefined(
        now,
        tuple(UndefinedJob(row["job_id"], row["name"], row["undefined_at"]) for row in found),
        tuple(NameSet(row["hash"], frozenset(json.loads(row["names_json"])), row["stored_at"]) for row in sets),
    )


def retire(q: ColdQueries, marks: Mapping[str, datetime], after: timedelta, by: str) -> Verb[frozenset[str]]:
    """Remove each of these jobs, by id, if it still has the mark that was seen; return the removed ones."""
    if not _still_marked((yield q.undefined_jobs()), marks):
        return frozenset()
    # Before any job is locked, as in every verb: two transactions may write this text at the same moment.
    yield q.know_needs(texts=[RETIRED])
    taken = _still_marked((yield q.hold_undefined(job_ids=list(marks))), marks)
    now: datetime = yield Ask.NOW
    for row in taken:
        yield from remove(q, row["job_key"], after, now, by)
    removed = frozenset(row["job_id"] for row in taken)
    yield from foretell(q, removed)
    return removed


def _still_marked(found: Rows, marks: Mapping[str, datetime]) -> list[Row]:
    return [row for row in found if marks.get(row["job_id"]) == row["undefined_at"]]
