"""Whether a job is active."""

from everytick.deciding.activity import is_active
from everytick.domain.snapshots import Rescheduled
from tests.unit.deciding.planning import active, at, job, snapshot_of

NOW = at("09:30")


def test_a_job_is_active_while_its_schedule_has_something_to_come_inside_its_window() -> None:
    """S0-045, S0-052; what runs or was set by hand keeps it active."""
    over = job("once: 2026-11-16T09:00:00Z")
    assert is_active(snapshot_of(job(), NOW), NOW)
    assert not is_active(snapshot_of(job(start=at("10:00")), NOW), NOW)
    assert not is_active(snapshot_of(job("cron: 0 * * * *; start=2026-11-16T10:00:00Z"), NOW), NOW)
    assert not is_active(snapshot_of(job(), NOW, retire_at=at("10:00")), NOW)
    assert not is_active(snapshot_of(over, NOW), NOW)
    assert is_active(snapshot_of(over, NOW, active=(active("a", at("09:00")),)), NOW)
    assert is_active(snapshot_of(over, NOW, reschedule=Rescheduled(NOW, at("10:30"))), NOW)
    assert is_active(snapshot_of(job("after: 10m"), NOW), NOW)
    assert not is_active(snapshot_of(job("after: 10m", end=at("09:00")), NOW), NOW)
