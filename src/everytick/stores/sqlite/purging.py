"""purge: a removed job goes for good, with all that belongs to it."""

import json

from everytick.errors import NotFound
from everytick.stores.beginnings import refuse_purge
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.writer import Transaction

_BELONGING = (
    Q.purge_requests,
    Q.purge_keys,
    Q.purge_adjustments,
    Q.purge_pauses,
    Q.purge_spans,
    Q.forget_parked_job,
    Q.purge_versions,
    Q.purge_failure,
    Q.purge_state,
    Q.purge_job,
)


def purge(transaction: Transaction, job_id: str, limit: int) -> bool:
    """Forget up to `limit` occurrences of a removed job for good, and the job once none is left."""
    found = transaction.execute(Q.job_by_id, (job_id,)).fetchone()
    if found is None:
        raise NotFound("job", job_id)
    key, _, name, removed_at, _ = found
    refuse_purge(name, removed_at, transaction.execute(Q.held_of_job, (key,)).fetchone()[0])
    handles = [row[0] for row in transaction.execute(Q.some_of_job, (key, limit + 1))]
    asked = (json.dumps(handles[:limit]),)
    for query in (Q.forget_attempts, Q.forget_runs, Q.purge_occurrences):
        transaction.execute(query, asked)
    if len(handles) > limit:
        return False
    for query in _BELONGING:
        transaction.execute(query, (key,))
    return True
