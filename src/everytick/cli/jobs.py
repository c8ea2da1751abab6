"""A job as `list` and `show` tell of it: its status in a word, and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everytick.cli.promises import breach_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everytick.app import Everytick
    from everytick.app.questions import JobStatus
    from everytick.cli.node_reports import Broken
    from everytick.stores.base import JobRecord

UNKNOWN = "no node can run it"


async def with_status(app: Everytick, records: Sequence[JobRecord]) -> list[tuple[JobRecord, JobStatus]]:
    """Return each job with its status. A job that was removed since is left out."""
    statuses = await app._statuses(records)
    return [(record, statuses[record.job.id]) for record in records if record.job.id in statuses]


def last_result(record: JobRecord) -> str | None:
    """How the last occurrence ended, as far as the job remembers: well or not."""
    end, success = record.last_end, record.last_success
    if end is None:
        return None
    return "completed" if success is not None and success.ended_at >= end.ended_at else "failed"


def word(record: JobRecord, status: JobStatus, unknown: str | None = None) -> str:
    """Return the status of a job in a word or two. `unknown` is why no node can run it."""
    if not record.job.enabled:
        return "disabled"
    if record.pause is not None:
        return "paused"
    if unknown is not None:
        return UNKNOWN
    if record.parked_reason is not None:
        return "parked"
    if status.is_running:
        return "running"
    if status.waits:
        return "waits"
    # A job that sends notices has no instant to come, and is not over.
    return "enabled" if status.is_active or record.job.schedule_type == "notice" else "over"


def job_data(record: JobRecord, status: JobStatus, broken: Broken) -> dict[str, Any]:
    """Return a job as data."""
    job = record.job
    unknown = broken.unknown.get(job.name)
    return {
        "name": job.name,
        "id": job.id,
        "status": word(record, status, unknown),
        "unknown_target": unknown,
        "parked_reason": record.parked_reason,
        "definition_error": broken.of_job.get(job.name),
        "schedule": str(job.schedule),
        "schedule_type": job.schedule_type,
        "schedule_words": job.schedule.describe(),
        "next_run": status.next_run,
        "last_run": status.last_run,
        "last_result": last_result(record),
        "run_count": status.run_count,
        "last_error": status.last_error,
        "owner": job.owner,
        "version": job.version,
        "tags": job.settings.tags,
        "is_active": status.is_active,
        "is_paused": status.is_paused,
        "is_enabled": status.is_enabled,
        "is_running": status.is_running,
        "broken_promises": [breach_data(breach) for breach in status.breaches],
        "waits": status.waits or None,
    }
