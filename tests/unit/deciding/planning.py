"""Helpers for tests of `plan`: short ways to write jobs, moments and snapshots, and to read plans."""

from datetime import UTC, datetime, timedelta
from typing import Any

from everytick import schedule
from everytick.domain.decisions import Plan, Span
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import Active, Edition, JobSnapshot, Request
from everytick.domain.statuses import BUSY, OccurrenceStatus

DAY = datetime(2026, 11, 16, tzinfo=UTC)


def at(text: str) -> datetime:
    """Return a moment of the test's day: `09:00`, or days before and after it as `-1 09:00`."""
    day, _, clock = text.rpartition(" ")
    hour, minute, second, *_ = [*map(float, clock.split(":")), 0.0]
    return DAY + timedelta(days=int(day or 0), hours=hour, minutes=minute, seconds=second)


def job(when: str = "0 * * * *", **policies: Any) -> Job:
    """Return a job of one task: hourly unless said otherwise."""
    for key in ("stop_schedule", "restart_schedule"):
        if key in policies:
            policies[key] = schedule(policies[key])
    return define_job("report", schedule(when), policies=policies, tasks=[define_task("report", "main")])


def snapshot_of(job: Job, watermark: datetime, **known: Any) -> JobSnapshot:
    """Return a snapshot of the job; what is active is counted, what is not said is empty."""
    active: tuple[Active, ...] = known.pop("active", ())
    busy = tuple(each for each in active if each.status in BUSY)
    waiting = tuple(each for each in active if each.status not in BUSY)
    return JobSnapshot(
        job_id=job.id,
        revision=7,
        woken=3,
        watermark=watermark,
        editions=known.pop("editions", (Edition(job),)),
        busy=busy,
        busy_count=len(busy),
        waiting=waiting,
        waiting_count=len(waiting),
        **known,
    )


def active(id_: str, when: datetime, status: str = "running", cause: str = "schedule", **more: Any) -> Active:
    """Return an occurrence that is not over."""
    return Active(id_, when, when, OccurrenceStatus(status), Cause(cause), **more)


def trigger(key: str = "k", when: datetime | None = None, cause: str = "trigger", **more: Any) -> Request:
    """Return a request made at 09:40, for a trigger unless said otherwise."""
    return Request(key, Cause(cause), when or at("09:40"), **more)


def ended(plan: Plan) -> list[tuple[str, str, str]]:
    """Return what ends without a run: id, status, detail."""
    return [(each.id, str(each.status), each.detail) for each in plan.endings]


def created(plan: Plan) -> list[tuple[datetime, str]]:
    """Return the instants that became occurrences, each with its status."""
    return [(each.scheduled_for, str(each.status)) for each in plan.creations]


def instants(plan: Plan) -> list[datetime]:
    """Return what became occurrences, whatever their status."""
    return [each.scheduled_for for each in plan.creations]


def skipped(plan: Plan) -> list[tuple[datetime, datetime, str, int | None]]:
    """Return the spans: after, through, reason, count."""
    return [(each.after, each.through, reason(each), each.count) for each in plan.spans]


def reason(span: Span) -> str:
    """Return the status and reason of a span in words."""
    return f"{span.status}: {span.why}" + (f", {span.detail}" if span.detail else "")
