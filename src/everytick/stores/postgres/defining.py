"""What follows from a definition when it is stored: its row, where it begins, and the ids of what people ask for."""

import json
from dataclasses import replace
from datetime import datetime, timedelta

from everytick.domain import ids
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.policies import FirstSight
from everytick.domain.reading import as_data
from everytick.domain.snapshots import Request
from everytick.stores.definitions import write_definition

_TICK = timedelta(microseconds=1)


def under_id(job: Job, id_: str) -> Job:
    """Return the definition under the id that the store keeps for it: after a rename the name gives another."""
    if job.id == id_:
        return job
    tasks = tuple(replace(task, job_id=id_, id=ids.task_id(id_, task.name)) for task in job.tasks)
    return replace(job, id=id_, tasks=tasks)


def definition_row(
    seq: int, job: Job, version: int, in_force_after: datetime | None, now: datetime, by: str
) -> tuple[object, ...]:
    """Return the row that keeps this version for ever."""
    effective = {
        key: {"value": as_data(each.value), "origin": str(each.origin)}
        for key, each in job.settings.effective().items()
    }
    return (
        seq,
        version,
        in_force_after,
        job.kind,
        str(job.schedule),
        job.enabled,
        write_definition(job),
        json.dumps(effective, sort_keys=True),
        by,
        now,
    )


def first_watermark(job: Job, now: datetime) -> datetime:
    """Return where a new job begins (C-08): what lies at or before this is never asked about."""
    begin = job.settings.on_create
    match begin.begin:
        case FirstSight.BACKFILL_FROM:
            assert begin.since is not None, "backfill_from says since when"
            return begin.since - _TICK
        case FirstSight.IF_MATCHING_NOW:
            return now.replace(second=0, microsecond=0) - _TICK
        case _:
            return now


def requested_id(job: Job, request: Request) -> str:
    """Return the id of the occurrence that a request asks for."""
    match request.cause:
        case Cause.REPLAY:
            return ids.replay_id(job.id, request.key)
        case Cause.CREATE:
            return ids.create_id(job.id, job.version)
        case _:
            return ids.trigger_id(job.id, request.key)
