"""Jobs that were not there: their rows, many at once."""

from collections.abc import Sequence
from datetime import datetime
from itertools import count
from typing import Any

from everytick.domain import ids
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.policies import FirstSight
from everytick.domain.questions import band_of
from everytick.domain.snapshots import Edition, Request
from everytick.stores.definitions import effective_config, write_definition
from everytick.stores.sql import rows
from everytick.stores.sql.commands import Again, Ask, Forget, KeyTaken, Rows, Verb, many
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.verbs.promises import make_promises
from everytick.stores.storing_rules import first_run, first_watermark, under_id


def create_all(q: ColdQueries, jobs: Sequence[Job], now: datetime, by: str) -> Verb[dict[str, str]]:
    """Create these jobs by a few statements. Return their ids by name."""
    if not jobs:
        return {}
    made = yield from _under_free_ids(q, jobs)
    try:
        yield many(q.add_job, [{"job_id": job.id, "name": job.name, "now": now} for job in made])
    except KeyTaken:
        raise Again("another node made one of these jobs at the same moment") from None
    found: Rows = yield q.keys_of_jobs(job_ids=[job.id for job in made])
    keys = {row["job_id"]: row["job_key"] for row in found}
    for key in keys.values():
        yield Forget(key, 1)
    yield many(q.add_version, [version_arguments(keys[job.id], Edition(job, by=by), 1, now) for job in made])
    yield q.add_bands(bands=[band_row(keys[job.id], job, 1) for job in made])
    yield many(q.add_state, [_state_arguments(keys[job.id], job, now) for job in made])
    yield many(q.edit_job, [_retention_arguments(keys[job.id], job) for job in made])
    asked = [job for job in made if job.settings.on_create.begin is FirstSight.IMMEDIATELY]
    request = Request("create", Cause.CREATE, now)
    yield many(q.keep_request, [rows.request_arguments(keys[job.id], job.id, request) for job in asked])
    yield from make_promises(q, [(keys[job.id], job) for job in made], now)
    yield many(q.wake, [{"job_key": key, "now": now} for key in keys.values()])
    yield Ask.RING
    return {job.name: job.id for job in made}


def _under_free_ids(q: ColdQueries, jobs: Sequence[Job]) -> Verb[list[Job]]:
    """Return each job under the first id of its name that no job has: a renamed job keeps the id of its old name."""
    first = [ids.job_id(job.name) for job in jobs]
    found: Rows = yield q.keys_of_jobs(job_ids=first)
    taken = {row["job_id"] for row in found}
    free = []
    for job, id_ in zip(jobs, first, strict=True):
        for nth in count(2):
            if id_ not in taken:
                break
            id_ = ids.job_id(job.name, nth)
            taken |= {row["job_id"] for row in (yield q.keys_of_jobs(job_ids=[id_]))}
        free.append(under_id(job, id_))
    return free


def version_arguments(job_key: int, edition: Edition, version: int, now: datetime) -> dict[str, Any]:
    """Return the row of this version, which is never changed."""
    job = edition.job
    return {
        "job_key": job_key,
        "version": version,
        "in_force_after": edition.in_force_after,
        "kind": job.kind,
        "schedule": str(job.schedule),
        "enabled": job.enabled,
        "reports": job.owes_reports,
        "definition": write_definition(job),
        "effective": effective_config(job),
        "edited_by": edition.by,
        "edited_at": now,
        "follows": edition.follows,
        "rollout": None if edition.rollout is None else str(edition.rollout),
    }


def band_row(job_key: int, job: Job, version: int) -> dict[str, Any]:
    """Return the band of this version."""
    return {"job_key": job_key, "version": version, "band": band_of(job)}


def _state_arguments(job_key: int, job: Job, now: datetime) -> dict[str, Any]:
    return {
        "job_key": job_key,
        "job_id": job.id,
        "needs": job.needs,
        "watermark": first_watermark(job, now),
        "next_run_at": first_run(job, now),
    }


def _retention_arguments(job_key: int, job: Job) -> dict[str, Any]:
    keep = job.settings.retention
    return {
        "job_key": job_key,
        "keep_success": keep.success,
        "keep_failure": keep.failure,
        "keep_last": keep.keep_last,
    }
