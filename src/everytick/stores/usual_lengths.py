"""How long the runs of a job usually take."""

from datetime import timedelta
from statistics import median

from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import HistoryFilter
from everytick.stores.protocols import HistoryStore

_RUNS_SEEN = 25
"""How many of the latest successful runs the median is taken of."""


async def usual_length(store: HistoryStore, job_id: str) -> timedelta | None:
    """Return the median length of the latest successful runs of a job, None if there is none."""
    page = await store.history(HistoryFilter(job_id=job_id, statuses=(OccurrenceStatus.COMPLETED,), limit=_RUNS_SEEN))
    seconds = [
        (occurrence.ended_at - occurrence.started_at).total_seconds()
        for occurrence in page.occurrences
        if occurrence.started_at is not None and occurrence.ended_at is not None
    ]
    return timedelta(seconds=median(seconds)) if seconds else None
