"""What a beat does about one schedule: decided by `plan` of the core, from what Redis holds and its clock.

No other rule says here when something runs. A schedule is a job that recovers by its last missed time and whose runs
may overlap; what was recorded of it is the watermark of its snapshot.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from everytick.deciding.plan import plan
from everytick.domain.durations import MICROSECOND
from everytick.domain.policies import FirstSight
from everytick.domain.snapshots import Edition, JobSnapshot
from everytick.domain.values import value
from everytick.errors import DefinitionError, EverytickError
from everytick.schedules.codec import schedule as read_schedule

if TYPE_CHECKING:
    from datetime import datetime

    from everytick.beat.registry import RegisteredSchedule
    from everytick.domain.job import Job

RULE_ERRORS = (EverytickError, ValueError, ArithmeticError)
"""What a rule may raise that was good when it was registered: its zone is gone, or a time lies beyond the calendar."""

_REVISION = 0
"""The beat's commit is fenced by the watermark, not by a revision."""


_CRON = "cron:"
"""What a beat records begins so. Anything else in its place is not read: what runs comes from code (S3-032)."""


@value
class Recorded:
    """What Redis holds of a schedule, as far as a decision needs it. All of it is unknown for one that never ran."""

    decided_through: datetime | None = None
    definition: str = ""
    defined_at: datetime | None = None


@value
class DueRun:
    """A job that is due: the time it is due for, and its id, which follows from schedule and time."""

    scheduled_at: datetime
    job_id: str


@value
class Decision:
    """What to record of a schedule, and which job to put into the queue before.

    `look_at` is when to look at it again; None if nothing comes any more.
    """

    through: datetime
    look_at: datetime | None
    run: DueRun | None = None


def is_ours(entry: RegisteredSchedule, recorded: Recorded, started_at: datetime) -> bool:
    """Whether this beat may decide: its rule is the recorded one, or the beat started later than that was written.

    While programs are replaced one by one, two rules of one schedule are alive. The newest start wins.
    """
    if recorded.definition in ("", entry.definition):
        return True
    return recorded.defined_at is None or recorded.defined_at < started_at


def decide(
    entry: RegisteredSchedule, recorded: Recorded, now: datetime, first: FirstSight = FirstSight.IMMEDIATELY
) -> Decision:
    """Decide every time of a schedule through `now`. At most one of them, the last, has a run."""
    snapshot = JobSnapshot(
        entry.job.id, _REVISION, _REVISION, _watermark(entry, recorded, now, first), _editions(entry, recorded, now)
    )
    decided = plan(snapshot, now)
    creation = decided.creations[-1] if decided.creations else None
    run = None if creation is None else DueRun(creation.scheduled_for, creation.id.removeprefix("occ_"))
    look_at = decided.next_run if entry.schedule.enabled else None
    return Decision(max(decided.watermark, snapshot.watermark), look_at, run)


def _watermark(entry: RegisteredSchedule, recorded: Recorded, now: datetime, first: FirstSight) -> datetime:
    """Return through when everything is decided. For one that never ran, that is before its last time or now."""
    if recorded.decided_through is not None:
        return recorded.decided_through
    last = entry.job.bound(None).last_at(now) if first is FirstSight.IMMEDIATELY else None
    return now if last is None else last - MICROSECOND


def _editions(entry: RegisteredSchedule, recorded: Recorded, now: datetime) -> tuple[Edition, ...]:
    """Return the rule that was recorded, for what it missed, and from now on that of the registry."""
    if recorded.definition in ("", entry.definition) or not entry.schedule.enabled:
        return (Edition(entry.job),)
    before = _job_before(entry, recorded.definition)
    return (Edition(before), Edition(replace(entry.job, version=before.version + 1), now))


def _job_before(entry: RegisteredSchedule, definition: str) -> Job:
    """Return the job by its recorded rule. One that is disabled or cannot be read here names nothing."""
    if definition.startswith(_CRON):
        with suppress(DefinitionError):
            return replace(entry.job, schedule=read_schedule(definition))
    return replace(entry.job, settings=replace(entry.job.settings, enabled=False))
