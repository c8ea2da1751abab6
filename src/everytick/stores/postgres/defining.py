"""The row that keeps one version of a definition for ever."""

import json
from datetime import datetime
from functools import lru_cache

from everytick.domain.config import Settings
from everytick.domain.job import Job
from everytick.domain.reading import as_data
from everytick.stores.definitions import write_definition


def definition_row(
    seq: int, job: Job, version: int, in_force_after: datetime | None, now: datetime, by: str
) -> tuple[object, ...]:
    """Return the row that keeps this version for ever."""
    return (
        seq,
        version,
        in_force_after,
        job.kind,
        str(job.schedule),
        job.enabled,
        job.reports,
        write_definition(job),
        _effective_of(job),
        by,
        now,
    )


def _effective_of(job: Job) -> str:
    """Every policy in force and who set it, as JSON; thousands of jobs that say the same share one text."""
    try:
        return _effective(job.settings)
    except TypeError:  # somebody's own schedule or value cannot be hashed
        return _effective.__wrapped__(job.settings)


@lru_cache(maxsize=512)
def _effective(settings: Settings) -> str:
    effective = {
        key: {"value": as_data(each.value), "origin": str(each.origin)} for key, each in settings.effective().items()
    }
    return json.dumps(effective, sort_keys=True)
