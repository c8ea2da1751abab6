"""What clock changes do to a schedule, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from everytick.schedules.cron import ClockChange


def clock_changes(schedule: object, after: datetime, through: datetime) -> Iterator[ClockChange]:
    """Give the effects of clock changes on a schedule, also on a cron expression inside another schedule."""
    from everytick.schedules.cron import Cron

    if isinstance(schedule, Cron):
        yield from schedule.clock_changes(after, through)
    inner = getattr(schedule, "schedule", None)
    for part in (*getattr(schedule, "parts", ()), *([] if inner is None else [inner])):
        yield from clock_changes(part, after, through)


def change_words(change: ClockChange) -> str:
    """Return the effect of a clock change in words."""
    wall = change.wall.strftime("%Y-%m-%d %H:%M")
    said = {
        "moved": f"{wall} does not exist, the clock skips it: it comes right after",
        "skipped": f"{wall} does not exist, the clock skips it: it is left out",
        "doubled": f"{wall} comes twice, and so does this",
        "silenced": f"{wall} comes twice, and only one of them counts",
    }
    return f"{said.get(change.what, change.what)} ({change.rule})"
