"""The row that keeps one version of a definition for ever."""

import json
from datetime import datetime

from everytick.domain.job import Job
from everytick.domain.reading import as_data
from everytick.stores.definitions import write_definition


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
        job.reports,
        write_definition(job),
        json.dumps(effective, sort_keys=True),
        by,
        now,
    )
