"""A schedule of a beat as its author writes it, and what is known of its runs (S3-002, S3-003)."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003, part of public values
from enum import StrEnum

from everytick.domain.values import value


class Priority(StrEnum):
    """How urgent a job is to the workers of a queue."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


@value(frozen=True)
class Schedule:
    """A job that is put into a queue at the times of a cron expression.

    `cron` has five fields or is a word such as `@daily`; its times are those of the zone `timezone`. `job` is the name
    by which workers know the job. `payload` is JSON: a value, or bytes that hold one. A schedule that is not
    `enabled` stays registered and never fires.
    """

    id: str = ""
    cron: str = ""
    job: str = ""
    payload: object = None
    priority: Priority | str = Priority.NORMAL
    timezone: str = "UTC"
    enabled: bool = True
    description: str = ""


@value(frozen=True)
class ScheduleState:
    """What Redis holds of a schedule.

    `last_run` is the time of the last run by the schedule, and `last_success` when its job was put into the queue.
    `next_run` is the time of the next one. `last_error` is the last that was met, also after a success. Every time
    through `decided_through` has had its run, or shall have none. None, 0 and empty texts mean that there is nothing.
    """

    id: str
    last_run: datetime | None = None
    next_run: datetime | None = None
    run_count: int = 0
    last_error: str = ""
    last_success: datetime | None = None
    last_job_id: str = ""
    decided_through: datetime | None = None
