"""purge: a removed job goes for good, with everything that belongs to it."""

from everytick.stores.sql.commands import Referenced, Verb, together
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Row
from everytick.stores.sql.verbs.locked_job import held_job
from everytick.stores.sql.verbs.rollups import count_deleted
from everytick.stores.storing_rules import refuse_purge


def purge(q: ColdQueries, job_id: str, limit: int) -> Verb[bool]:
    """Delete up to `limit` occurrences of a removed job, and the job with the last of them."""
    job = yield from held_job(q, job_id)
    yield from _refuse_held(q, job)
    # Before the occurrences are locked: prune takes these two locks in this order.
    yield q.hold_rollup()
    handles = [row["handle"] for row in (yield q.purgeable(job_key=job["job_key"], limit=limit + 1))]
    yield from count_deleted(q, handles[:limit])
    for forget in (q.forget_attempts, q.forget_runs, q.forget_reports, q.purge_occurrences):
        yield forget(handles=handles[:limit])
    if len(handles) > limit:
        return False
    # A node may have claimed an occurrence between the two reads: that one is not deleted.
    yield from _refuse_held(q, job)
    try:
        yield together(forget(job_key=job["job_key"]) for forget in q.belonging_to_a_job)
    except Referenced:
        # A transaction of a caller's own has asked for the job meanwhile. The next call sees that request.
        return False
    return True


def _refuse_held(q: ColdQueries, job: Row) -> Verb[None]:
    [found] = yield q.held_of_job(job_key=job["job_key"])
    refuse_purge(job["name"], job["removed_at"], found["held"])
