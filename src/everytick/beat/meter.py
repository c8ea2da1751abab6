"""What a beat counts, under the names of its contract (S3-028)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from everytick.metrics.text import Series
from everytick.node.meter import ANSWERS, OTHER, Histogram
from everytick.node.settings import JOB_LIMIT

if TYPE_CHECKING:
    from datetime import datetime, timedelta

SUCCESS, FAILURE = "success", "failure"


class ScheduleCounts:
    """The numbers of one schedule, or of all beyond the limit."""

    __slots__ = ("last_run", "lengths", "lock_failures", "next_run", "runs")

    def __init__(self) -> None:
        self.runs: defaultdict[str, int] = defaultdict(int)
        self.lengths = Histogram(ANSWERS)
        self.lock_failures = 0
        self.last_run: datetime | None = None
        self.next_run: datetime | None = None


class BeatMeter:
    """Counts for one beat since it was made. Schedules beyond the limit are counted together."""

    def __init__(self, limit: int = JOB_LIMIT) -> None:
        self._limit = limit
        self._counts: dict[str, ScheduleCounts] = {}

    def of(self, id: str) -> ScheduleCounts:
        """Return the numbers of a schedule."""
        counts = self._counts.get(id)
        if counts is None:
            label = id if len(self._counts) < self._limit else OTHER
            counts = self._counts.setdefault(label, ScheduleCounts())
        return counts

    def ran(self, id: str, scheduled_at: datetime, next_run: datetime | None, length: timedelta) -> None:
        """Count a job that was put into the queue."""
        counts = self.of(id)
        counts.runs[SUCCESS] += 1
        counts.lengths.observe(length)
        counts.last_run, counts.next_run = scheduled_at, next_run

    def failed(self, id: str, length: timedelta) -> None:
        """Count a job that could not be put into the queue."""
        counts = self.of(id)
        counts.runs[FAILURE] += 1
        counts.lengths.observe(length)

    def text(self) -> str:
        """Return everything in Prometheus' text format."""
        series = Series()
        for id, counts in sorted(self._counts.items()):
            for status, number in sorted(counts.runs.items()):
                series.add("scheduler_runs_total", number, id, status)
            series.histogram("scheduler_run_duration_seconds", counts.lengths, id)
            series.add("scheduler_lock_failures_total", counts.lock_failures, id)
            for name, instant in (
                ("scheduler_last_run_timestamp", counts.last_run),
                ("scheduler_next_run_timestamp", counts.next_run),
            ):
                if instant is not None:
                    series.add(name, instant.timestamp(), id)
        return series.text()
