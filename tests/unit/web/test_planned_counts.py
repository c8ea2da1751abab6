"""How many runs a band plans in each step: what its jobs plan each, together."""

from datetime import UTC, datetime, timedelta

from everytick import cron, every
from everytick.domain.job import define_job
from everytick.domain.schedule import Schedule
from everytick.stores.base import JobRecord
from everytick.web.lane_rows import planned_counts
from everytick.web.pictures.axis import Axis

NOW = datetime(2026, 10, 23, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def record(name: str, rule: Schedule) -> JobRecord:
    """Return a job that runs next in half an hour."""
    return JobRecord(define_job(name, rule), 1, NOW, None, next_run=NOW + HOUR / 2)


def test_jobs_with_one_schedule_and_jobs_with_their_own_are_counted_together() -> None:
    jobs = [record(f"alike-{n}", every("30m")) for n in range(3)]
    jobs += [record(f"own-{n}", cron("H * * * *", tz="UTC")) for n in range(4)]
    found = planned_counts(jobs, Axis(NOW - HOUR, NOW + HOUR, NOW), HOUR)
    assert sum(found.values()) == 3 * 2 + 4


def test_of_many_jobs_some_are_asked_and_the_counts_are_scaled_up() -> None:
    jobs = [record(f"alike-{n}", every("30m")) for n in range(30)]
    found = planned_counts(jobs, Axis(NOW - HOUR, NOW + HOUR, NOW), HOUR, most_jobs=7)
    assert sum(found.values()) == 30 * 2
