"""How long the jobs of a simulation take: as given by name, else the median of past runs, else no time at all."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from everytick.domain.values import value
from everytick.stores.usual_lengths import usual_length

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from everytick.domain.job import Job
    from everytick.stores.protocols import HistoryStore


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
    usual = await usual_length(store, job_id)
    return Length(timedelta(0), Origin.UNKNOWN) if usual is None else Length(usual, Origin.HISTORY)
