"""The row that keeps one version of a definition for ever."""

from datetime import datetime

from everytick.domain.job import Job
from everytick.stores.definitions import effective_config, write_definition


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
        effective_config(job),
        by,
        now,
    )
