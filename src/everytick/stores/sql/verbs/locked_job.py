"""What most verbs on a job begin and end with: they lock it, read its definition, change its revision, wake it."""

from collections.abc import Collection
from datetime import datetime

from everytick.domain.job import Job
from everytick.errors import JobDisabled, NotFound
from everytick.stores.sql.commands import Ask, Found, Rows, Verb, Versions, look, many
from everytick.stores.sql.definitions import Compiled
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Row
from everytick.stores.storing_rules import shown_next_run


def held_job(q: ColdQueries, job_id: str) -> Verb[Row]:
    """Lock the job, and return its key, id, name and when it was removed.

    From here on no plan of the job commits before this transaction ends.
    """
    found: Rows = yield q.hold_job(job_id=job_id)
    if not found:
        raise NotFound("job", job_id)
    return found[0]


def version_of(job_key: int, version: int) -> Verb[Compiled]:
    """Return one version of a definition. Raise NotFound with the reason if it is unreadable."""
    found: Found = yield Versions(((job_key, version),))
    if (job_key, version) not in found.read:
        raise NotFound("definition", found.broken.get((job_key, version), f"version {version}"))
    return found.read[job_key, version]


def taking_requests(job: Job) -> Job:
    """Return the job, which is enabled."""
    if not job.enabled:
        raise JobDisabled(job.name)
    return job


def wake(q: ColdQueries, job_key: int, now: datetime) -> Verb[None]:
    """Make the job due now."""
    yield q.wake(job_key=job_key, now=now)
    yield Ask.RING


def revise(q: ColdQueries, job_key: int, now: datetime) -> Verb[None]:
    """Make older snapshots of the job stale, make it due now, and let its promises be looked at."""
    yield q.revise(job_key=job_key)
    yield q.recheck_promises(job_key=job_key, now=now)
    yield from wake(q, job_key, now)


def foretell(q: ColdQueries, job_ids: Collection[str]) -> Verb[None]:
    """Set the next run of these jobs as of now; None for an unreadable job."""
    if not job_ids:
        return
    now: datetime = yield Ask.NOW
    seen = yield look(job_ids)
    told = {id_: shown_next_run(seen[id_], now) if id_ in seen else None for id_ in job_ids}
    yield many(q.foretell, [{"job_id": id_, "next_run_at": at} for id_, at in told.items()])
