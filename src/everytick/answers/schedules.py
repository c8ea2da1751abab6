"""A schedule as data: in words, with the instants around a moment and what clock changes do to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from everytick.domain.durations import MICROSECOND
from everytick.schedules.clock_changes import clock_changes

if TYPE_CHECKING:
    from everytick.domain.schedule import Schedule

CHANGES_WITHIN = timedelta(days=400)
"""How far ahead changes of the clock are looked for: every zone that has them shows each once."""

_CALENDAR_CYCLE = timedelta(days=366 * 400)
"""After 400 years the calendar repeats itself: a rule without an instant until then has none."""


def explained(schedule: Schedule, now: datetime, count: int) -> dict[str, Any]:
    """Return a schedule in words, with its instants around now. `note` says where the job matters."""
    from everytick.domain.schedule import waits_for_end

    own, note = _bound(schedule)
    end = min(now + _CALENDAR_CYCLE, datetime(9998, 1, 1, tzinfo=UTC))
    following = list(own.instants(now, end, count)) if not waits_for_end(own) else []
    former = _former(own, now, 2) if following or not waits_for_end(own) else []
    changes = list(clock_changes(schedule, now, now + CHANGES_WITHIN))
    return {
        "schedule": str(schedule),
        "words": schedule.describe(),
        "previous": former,
        "next": following,
        "clock_changes": [
            {"what": change.what, "wall": change.wall, "at": change.instant, "rule": change.rule} for change in changes
        ],
        "note": note,
    }


def _bound(schedule: Schedule) -> tuple[Schedule, str]:
    """Return the schedule as a job would have it, and a word about that where the job matters."""
    from everytick.domain.ids import job_id
    from everytick.domain.schedule import bound, waits_for_end
    from everytick.errors import UnboundSchedule

    if waits_for_end(schedule):
        return schedule, "it depends on when the last occurrence ends"
    try:
        schedule.next_after(datetime(2026, 1, 1, tzinfo=UTC))
    except UnboundSchedule:
        return bound(schedule, job_id("example"), None), "these are the instants of a job called 'example'"
    return schedule, ""


def _former(schedule: Schedule, now: datetime, count: int) -> list[datetime]:
    instants: list[datetime] = []
    at = schedule.last_at(now)
    while at is not None and len(instants) < count:
        instants.insert(0, at)
        at = schedule.last_at(at - MICROSECOND)
    return instants
