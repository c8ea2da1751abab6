"""Who may start, who waits in line and who is turned away: the overlap policies.

The line is kept while a plan is made: releases come first, then everybody new in the order
of (line_at, id). Only here does the number of busy occurrences rise.
"""

from datetime import datetime

from everytick.domain.config import Settings
from everytick.domain.decisions import Ending, Why
from everytick.domain.occurrence import Cause
from everytick.domain.policies import Overlap
from everytick.domain.snapshots import Active, JobSnapshot
from everytick.domain.statuses import OccurrenceStatus

PENDING, QUEUED = OccurrenceStatus.PENDING, OccurrenceStatus.QUEUED
_LIMITED = frozenset({Overlap.SKIP, Overlap.QUEUE, Overlap.QUEUE_LATEST, Overlap.CANCEL_RUNNING})
_STARTED = frozenset({OccurrenceStatus.RUNNING, OccurrenceStatus.AWAITING_RETRY})

Refusal = tuple[Why, str]


class Line:
    """The busy and the waiting of one job, as they change while a plan is made."""

    __slots__ = (
        "busy",
        "busy_count",
        "cancels",
        "endings",
        "limit",
        "max_queued",
        "releases",
        "waiting",
        "waiting_count",
    )

    def __init__(self, snapshot: JobSnapshot, settings: Settings, *, paused: bool) -> None:
        self.busy = list(snapshot.busy)
        self.busy_count = snapshot.busy_count
        # While paused only what people asked for stands in line; the rest stays where it is.
        waiting = (
            [each for each in snapshot.waiting if each.cause is not Cause.SCHEDULE] if paused else snapshot.waiting
        )
        self.waiting = list(waiting)
        self.waiting_count = len(waiting) if paused else snapshot.waiting_count
        self.limit = settings.max_concurrent
        if self.limit is None and settings.overlap in _LIMITED:
            self.limit = 1
        self.max_queued = settings.max_queued
        self.releases: list[str] = []
        self.endings: list[Ending] = []
        self.cancels: list[str] = []

    @property
    def has_room(self) -> bool:
        """Whether one more may be busy."""
        return self.limit is None or self.busy_count < self.limit

    def release(self, most: int) -> None:
        """Let the oldest in line be pending, as long as there is room."""
        while self.waiting and self.has_room and len(self.releases) < most:
            oldest = self.waiting.pop(0)
            self.waiting_count -= 1
            self.releases.append(oldest.id)
            self._join(oldest)

    def supersede_retries(self, by: datetime) -> None:
        """End what only waits for a retry that the next instant makes pointless."""
        for each in [each for each in self.busy if each.superseded_by_next]:
            if each.status is OccurrenceStatus.AWAITING_RETRY:
                self._end(each, by)

    def cancel_all(self) -> None:
        """Ask every busy one to stop."""
        self.cancels += [each.id for each in self.busy if each.id not in self.cancels]

    def admit(self, newcomer: Active, rule: Overlap) -> OccurrenceStatus | Refusal:
        """Return pending or queued, or why it is turned away."""
        if rule is Overlap.ALLOW:
            return self._join(newcomer) if self.has_room else self._queue(newcomer)
        # A job that allows overlap has no limit of its own; a single newcomer may still ask for one at a time.
        if self._fits() and not self.waiting_count:
            return self._join(newcomer)
        match rule:
            case Overlap.SKIP:
                return Why.OVERLAP, f"behind {self._oldest_busy()}"
            case Overlap.QUEUE_LATEST:
                self._supersede([each for each in self.waiting if each.cause is Cause.SCHEDULE], newcomer.scheduled_for)
                return self._queue(newcomer)
            case Overlap.CANCEL_RUNNING:
                return self._replace_all(newcomer)
            case _:
                return self._queue(newcomer)

    def _fits(self) -> bool:
        return self.busy_count < (self.limit if self.limit is not None else 1)

    def _join(self, newcomer: Active) -> OccurrenceStatus:
        self.busy.append(newcomer)
        self.busy_count += 1
        return PENDING

    def _queue(self, newcomer: Active) -> OccurrenceStatus | Refusal:
        if self.waiting_count >= self.max_queued:
            return Why.QUEUE_FULL, f"{self.waiting_count} wait already"
        self.waiting.append(newcomer)
        self.waiting_count += 1
        return QUEUED

    def _replace_all(self, newcomer: Active) -> OccurrenceStatus | Refusal:
        """Stop what runs and drop what does not yet: the newcomer takes their place."""
        self._supersede([each for each in self.busy if each.status not in _STARTED], newcomer.scheduled_for)
        self._supersede(list(self.waiting), newcomer.scheduled_for)
        self.cancel_all()
        return self._join(newcomer) if self._fits() else self._queue(newcomer)

    def _supersede(self, them: list[Active], by: datetime) -> None:
        for each in them:
            self._end(each, by)

    def _end(self, each: Active, by: datetime) -> None:
        if each in self.busy:
            self.busy.remove(each)
            self.busy_count -= 1
        else:
            self.waiting.remove(each)
            self.waiting_count -= 1
        self.endings.append(Ending(each.id, OccurrenceStatus.SUPERSEDED, Why.SUPERSEDED, f"by {by.isoformat()}"))

    def _oldest_busy(self) -> str:
        return min(self.busy, key=lambda each: (each.line_at, each.id)).id if self.busy else "what waits in line"
