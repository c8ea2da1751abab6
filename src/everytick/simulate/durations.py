"""How long the jobs of a simulation take: as given by name, else the median of past runs, else no time at all."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING

from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value
from everytick.stores.base import HistoryFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from everytick.domain.job import Job
    from everytick.stores.protocols import HistoryStore

_SEEN = 25
"""How many of the latest successful runs the median is taken of."""


class Origin(StrEnum):
    """Where the length of a job comes from."""

    GIVEN = "given"
    HISTORY = "history"
    UNKNOWN = "unknown"


@value
class Length:
    """How long one job takes, and where that comes from."""

    length: timedelta
    origin: Origin


async def known_lengths(store: HistoryStore, jobs: Iterable[Job], given: Mapping[str, timedelta]) -> dict[str, Length]:
    """Return the length of each job by its id; `given` has them by name."""
    return {
        job.id: Length(given[job.name], Origin.GIVEN) if job.name in given else await _seen(store, job.id)
        for job in jobs
    }


async def _seen(store: HistoryStore, job_id: str) -> Length:
    page = await store.history(HistoryFilter(job_id=job_id, statuses=(OccurrenceStatus.COMPLETED,), limit=_SEEN))
    seconds = [
        (occurrence.ended_at - occurrence.started_at).total_seconds()
        for occurrence in page.occurrences
        if occurrence.started_at is not None and occurrence.ended_at is not None
    ]
    if not seconds:
        return Length(timedelta(0), Origin.UNKNOWN)
    return Length(timedelta(seconds=median(seconds)), Origin.HISTORY)
