"""A version comes into force, at once or after it has waited: what changes in the rows of its job."""

from datetime import datetime

from everytick.domain.decisions import Turned
from everytick.domain.job import Job
from everytick.domain.steps import bounded
from everytick.stores.sql.commands import PlainVerb
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.verbs.promises import edit_promises


def come_into_force(q: ColdQueries, job_key: int, turned: Turned, now: datetime) -> PlainVerb[None]:
    """Let a version that has waited come into force. Its job is locked."""
    yield q.turn_state(job_key=job_key, needs=turned.job.needs, narrowed_at=turned.narrowed_at)
    yield from go_by_version(q, job_key, turned.job, turned.job.version)
    if turned.job.settings.horizon is None:
        yield q.purge_coming(job_key=job_key)
    yield from edit_promises(q, job_key, (), turned.job, now)


def go_by_version(q: ColdQueries, job_key: int, job: Job, version: int) -> PlainVerb[None]:
    """Let retention go by this version, and occurrences that have not started take it."""
    settings = job.settings
    keep = settings.retention
    yield q.edit_job(job_key=job_key, keep_success=keep.success, keep_failure=keep.failure, keep_last=keep.keep_last)
    yield q.edit_unclaimed(
        job_key=job_key,
        version=version,
        priority=settings.priority,
        queue=settings.queue,
        labels=job.labels,
        execution_timeout=bounded(settings.execution_timeout),
    )
    yield q.add_needs_of_active(job_key=job_key)
