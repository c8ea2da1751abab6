"""What a schedule is to the rest of everytick: three questions, no memory.

Instants are aware UTC datetimes and intervals are `(after, through]`. Anything with
these methods is a schedule; `bound` may be left out by one that does not depend on its job.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable


@runtime_checkable
class Schedule(Protocol):
    """A rule that names instants. Equal questions get equal answers, on every node."""

    def next_after(self, instant: datetime, /) -> datetime | None:
        """Return the first instant later than `instant`, or None if there is none."""
        ...

    def last_at(self, instant: datetime, /) -> datetime | None:
        """Return the last instant not later than `instant`, or None if there is none."""
        ...

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> Sequence[datetime]:
        """Return the instants in `(after, through]` in order, at most `limit` of them."""
        ...

    def describe(self) -> str:
        """Say the rule in plain English."""
        ...


def bound(schedule: Schedule, job_id: str, last_end: datetime | None) -> Schedule:
    """Return the schedule as this job has it; `last_end` is when its last occurrence ended.

    Asked by name rather than by protocol: a protocol check costs more than most answers.
    """
    binder: Callable[[str, datetime | None], Schedule] | None = getattr(schedule, "bound", None)
    return schedule if binder is None else binder(job_id, last_end)


def waits_for_end(schedule: Schedule) -> bool:
    """Tell whether the schedule's next instant follows from the end of the job's last occurrence."""
    return bool(getattr(schedule, "waits_for_end", False))


def is_on_request(schedule: Schedule) -> bool:
    """Whether it names no instant at all, so that its job runs only when it is asked for."""
    return getattr(schedule, "is_on_request", False) is True
