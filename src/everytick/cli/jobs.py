"""Jobs with their status."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everytick.answers.values import JobStatus
    from everytick.app import Everytick
    from everytick.stores.base import JobRecord


async def with_status(app: Everytick, records: Sequence[JobRecord]) -> list[tuple[JobRecord, JobStatus]]:
    """Return each job with its status. A job that was removed since is left out."""
    statuses = await app.statuses(records)
    return [(record, statuses[record.job.id]) for record in records if record.job.id in statuses]
