"""How late callbacks start, compared with the targets of the specification (R1, R2, S2-069…071)."""

import logging
from datetime import datetime, timedelta

_log = logging.getLogger("everytick.declarative")

TARGET = timedelta(minutes=1)
"""A callback should start within this time of its minute…"""

TASKS_PER_TARGET = 10_000
"""… for so many tasks; the bound grows with their number."""

_QUIET = timedelta(minutes=1)


class Lateness:
    """Counts starts that came later than the target, and logs them, at most once a minute."""

    def __init__(self, tasks: int = 0) -> None:
        self.target = TARGET * max(1.0, tasks / TASKS_PER_TARGET)
        self.deviations = 0
        self.longest = timedelta(0)
        self._since: datetime | None = None
        self._free: dict[str, datetime] = {}
        self._told_at: datetime | None = None
        self._untold = 0

    def begin(self, since: datetime) -> None:
        """Set the time at which the scheduler began to run: earlier minutes are measured from it."""
        self._since = since

    def started(self, task: str, scheduled_for: datetime, at: datetime) -> None:
        """Record a start. It is measured from the scheduler's own start or the task's last end, if those are later."""
        late = at - max(scheduled_for, self._since or scheduled_for, self._free.get(task, scheduled_for))
        if late > self.longest:
            self.longest = late
        if late > self.target:
            self.deviations += 1
            self._warn(task, late, at)

    def ended(self, task: str, at: datetime) -> None:
        """Record that the task can start again."""
        self._free[task] = at

    def _warn(self, task: str, late: timedelta, at: datetime) -> None:
        if self._told_at is not None and at - self._told_at < _QUIET:
            self._untold += 1
            return
        _log.warning(
            "task '%s' started %.1f s after its minute, and the target is %.0f s (%d more since this was last said): "
            "the host was suspended or has too much to do; the task runs all the same",
            task,
            late.total_seconds(),
            self.target.total_seconds(),
            self._untold,
        )
        self._told_at, self._untold = at, 0
