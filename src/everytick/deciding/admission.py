"""The overlap policies: which occurrence may start, which waits in line and which is turned away.

The line is kept while a plan is made: releases come first, then newcomers in the order of
(line_at, id). Only here does the number of busy occurrences rise.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

from everytick.deciding.dependence import Unmet, unmet, waits_for
from everytick.deciding.narrowing import unwanted
from everytick.domain.decisions import Ending, Refusal, Why
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.policies import LateOverlap, Overlap
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.statuses import OccurrenceStatus

PENDING, QUEUED = OccurrenceStatus.PENDING, OccurrenceStatus.QUEUED
_STARTED = frozenset({OccurrenceStatus.RUNNING, OccurrenceStatus.AWAITING_RETRY})
_ANY_TIME = datetime.max.replace(tzinfo=UTC)


class Lined(Protocol):
    """One place in line: an occurrence that has not ended, or a newcomer."""

    @property
    def id(self) -> str:
        """The occurrence's id."""
        ...

    @property
    def line_at(self) -> datetime:
        """Its place in line: the earliest comes first."""
        ...

    @property
    def scheduled_for(self) -> datetime:
        """The instant it runs for."""
        ...

    @property
    def status(self) -> OccurrenceStatus:
        """The status of the occurrence."""
        ...

    @property
    def cause(self) -> Cause:
        """Why it exists."""
        ...

    @property
    def superseded_by_next(self) -> bool:
        """Whether the next instant ends its wait for a retry."""
        ...

    @property
    def late(self) -> bool:
        """Whether it was created late."""
        ...


class Line:
    """The busy and the waiting of one job, as they change while a plan is made.

    `displaced` are newcomers of this plan that had to give way again, each with the reason: they
    are not created. A snapshot names only some of very many. `cancels_before` asks the rest of
    the busy to stop. If the rest of the line must give way too, the line `is_cut`, and the
    newcomer that displaces it comes in with a later plan.

    A later plan also gives away the room of occurrences that this plan ends. A node may have
    claimed them since the snapshot was read, and they would then run beside their successors.
    `freed` counts them.

    `unmet` are the occurrences in line that wait for another job. They take no room. Requests pass
    them; instants of the schedule keep their order behind them. `stuck` are all that stay in line for
    this reason, without those that the snapshot does not name. `goes_on` says that the next plan can
    release more at once.

    `stopped_at` is the instant of a stop or restart schedule that the plan obeys.
    """

    __slots__ = (
        "_lined",
        "busy",
        "busy_count",
        "cancels",
        "cancels_because",
        "cancels_before",
        "depends_on",
        "displaced",
        "endings",
        "freed",
        "goes_on",
        "is_crowded",
        "is_cut",
        "job",
        "max_concurrent",
        "max_queued",
        "newcomers",
        "releases",
        "stopped_at",
        "stuck",
        "stuck_unseen",
        "unmet",
        "waiting",
        "waiting_count",
    )

    def __init__(self, snapshot: JobSnapshot, job: Job, *, paused: bool) -> None:
        self.job, settings = job, job.settings
        self.depends_on = job.settings.depends_on
        self.busy, self.busy_count = list[Lined](snapshot.busy), snapshot.busy_count
        self.waiting, self.waiting_count = list[Lined](snapshot.waiting), snapshot.waiting_count
        if paused:
            # Only requests stand in line then. Occurrences of the schedule stay where they are.
            self.waiting = [occurrence for occurrence in self.waiting if occurrence.cause is not Cause.SCHEDULE]
            self.waiting_count = len(self.waiting)
        self._lined = snapshot.waiting
        self.max_concurrent, self.max_queued = settings.max_concurrent, settings.max_queued
        self.newcomers: set[str] = set()
        self.displaced: dict[str, Refusal] = {}
        self.releases: list[str] = []
        self.endings: list[Ending] = []
        self.cancels: list[str] = []
        self.cancels_before: datetime | None = None
        self.cancels_because = ""
        self.is_crowded = self.busy_count > len(self.busy)
        self.is_cut = self.goes_on = False
        self.freed = 0
        self.stopped_at: datetime | None = None
        self.unmet: dict[str, Unmet] = {}
        self.stuck: set[str] = set()
        self.stuck_unseen = 0

    @property
    def has_room(self) -> bool:
        """Whether one more may be busy; the rule allow does not ask this.

        Where `max_concurrent` is not set, that is one at a time, also beside a rule that allows any number.
        """
        return self.busy_count < (self.max_concurrent or 1)

    @property
    def _has_sure_room(self) -> bool:
        return self.busy_count + self.freed < (self.max_concurrent or 1)

    @property
    def in_the_way(self) -> int:
        """How many in line come before a newcomer that waits for no other job."""
        return self.waiting_count - len(self.stuck) - self.stuck_unseen

    def ask_others(self, snapshot: JobSnapshot, now: datetime) -> None:
        """End those in line that no longer wait for another job, and note which still do."""
        shown = {occurrence.id for occurrence in self.waiting}
        for occurrence in [occurrence for occurrence in self._lined if occurrence.id in shown]:
            missing = unmet(snapshot, occurrence, now)
            if missing is None:
                continue
            if missing.is_over:
                self.waiting.remove(occurrence)
                self.waiting_count -= 1
                self.endings.append(Ending(occurrence.id, OccurrenceStatus.SKIPPED, Why.DEPENDENCY, missing.said))
            else:
                self.unmet[occurrence.id] = missing

    def release_met(self, most: int) -> None:
        """Release as `release` does where some in line wait for other jobs: those behind them wait too.

        Requests pass them, and so do instants that may overlap.
        """
        unseen = self.waiting_count - len(self.waiting)
        blocked = False
        for occurrence in self.waiting[: len(self.waiting) - (2 if unseen else 0)]:
            rule = self._rule_of(occurrence)
            keeps_order = occurrence.cause is Cause.SCHEDULE and rule is not Overlap.ALLOW
            if occurrence.id in self.unmet or (blocked and keeps_order):
                blocked = blocked or keeps_order
                self.stuck.add(occurrence.id)
            elif not self._fits(rule):
                if rule is Overlap.CANCEL_RUNNING:
                    self._stop_busy(occurrence.scheduled_for)
                self.goes_on = self.goes_on or self.has_room
            elif len(self.releases) >= most:
                self.goes_on = True
            else:
                self.waiting.remove(occurrence)
                self.waiting_count -= 1
                self.releases.append(occurrence.id)
                self._join(occurrence)
        if unseen:
            self.stuck_unseen = unseen + 2 if blocked else 0
            self.goes_on = self.goes_on or bool(self.releases or self.endings)

    def _rule_of(self, occurrence: Lined) -> Overlap:
        """The rule of one in line: that of its schedule, or that of a request that names none."""
        settings = self.job.settings
        if occurrence.cause is not Cause.SCHEDULE:
            return Overlap.ALLOW if settings.overlap is Overlap.ALLOW else Overlap.QUEUE
        if occurrence.late:
            return Overlap.ALLOW if settings.late_overlap is LateOverlap.ALLOW else Overlap.QUEUE
        return settings.overlap

    def _fits(self, rule: Overlap) -> bool:
        if rule is Overlap.ALLOW and self.max_concurrent is None:
            return True
        return self._has_sure_room

    def release(self, most: int) -> None:
        """Let the oldest in line be pending, as long as there is room."""
        # Of a long line a snapshot holds the oldest occurrences and, after a gap, the last two: these are not next.
        seen = len(self.waiting) if self.waiting_count == len(self.waiting) else len(self.waiting) - 2
        while self._has_sure_room and len(self.releases) < min(most, seen):
            oldest = self.waiting.pop(0)
            self.waiting_count -= 1
            self.releases.append(oldest.id)
            self._join(oldest)

    def supersede_retries(self, by: datetime) -> None:
        """End each occurrence that only waits for a retry which the next instant supersedes."""
        for occurrence in [occurrence for occurrence in self.busy if occurrence.superseded_by_next]:
            if occurrence.status is OccurrenceStatus.AWAITING_RETRY:
                self._end(occurrence, by)

    def narrow(self, job: Job, narrowed_at: datetime, most: int) -> bool:
        """End waiting occurrences that the edited `recovery` no longer keeps. True if none is left."""
        to_end = unwanted(self._lined, job.settings.recovery, narrowed_at)
        for occurrence in to_end[:most]:
            self.waiting.remove(occurrence)
            self.waiting_count -= 1
            self.endings.append(Ending(occurrence.id, OccurrenceStatus.CANCELED, Why.RECOVERY))
        unseen = self.waiting_count > len(self.waiting)
        return len(to_end) <= most and not (to_end and unseen)

    def cancel_all(self, who: str, before: datetime | None = None) -> None:
        """Ask every busy one to stop, or every one that stood in line before a moment; `who` asks."""
        asked_before = len(self.cancels)
        for occurrence in self.busy:
            if occurrence.id not in self.cancels and (before is None or occurrence.line_at < before):
                self.cancels.append(occurrence.id)
        if self.is_crowded:
            self.cancels_before = max(filter(None, (before or _ANY_TIME, self.cancels_before)))
        if (len(self.cancels) > asked_before or self.is_crowded) and who not in self.cancels_because:
            self.cancels_because = f"{self.cancels_because} and {who}" if self.cancels_because else f"asked by {who}"

    def admit(self, newcomer: Lined, rule: Overlap) -> OccurrenceStatus | Refusal:
        """Return pending or queued, or why it does not run. The answer counts only if the line is not cut then."""
        if self.depends_on and waits_for(self.depends_on, newcomer.cause):
            return self._admit_dependent(newcomer, rule)
        is_free = rule is Overlap.ALLOW and self.max_concurrent is None
        if is_free or (self._has_sure_room and self.in_the_way <= 0):
            return self._come_in(newcomer)
        if self.freed or (self._has_sure_room and self.in_the_way > 0):
            # Earlier newcomers may still be admitted by a later plan. Only then is the room for this one known.
            return self._cut(newcomer)
        match rule:
            case Overlap.SKIP:
                return Why.OVERLAP, self.behind()
            case Overlap.QUEUE_LATEST:
                scheduled = [occurrence for occurrence in self.waiting if occurrence.cause is Cause.SCHEDULE]
                if newcomer.cause is Cause.SCHEDULE:
                    # A live instant takes no place of a catch-up: late ones keep theirs.
                    scheduled = [occurrence for occurrence in scheduled if not occurrence.late]
                self._displace_from_line(scheduled, newcomer.scheduled_for)
            case Overlap.CANCEL_RUNNING:
                before = self.freed
                self._supersede(
                    [occurrence for occurrence in self.busy if occurrence.status not in _STARTED],
                    newcomer.scheduled_for,
                )
                self._displace_from_line(list(self.waiting), newcomer.scheduled_for)
                self.cancel_all("overlap cancel_running")
                if self.freed > before:
                    return self._cut(newcomer)
                if self.has_room:
                    return self._come_in(newcomer)
        return self._queue(newcomer)

    def _admit_dependent(self, newcomer: Lined, rule: Overlap) -> OccurrenceStatus | Refusal:
        """Put one in line that waits for other jobs, by its rule. The next plan sees whether they have succeeded.

        Until then it stops nothing that is busy.
        """
        if rule is not Overlap.ALLOW and (self.freed or (self._has_sure_room and self.in_the_way > 0)):
            return self._cut(newcomer)
        if rule is Overlap.SKIP and (self.waiting_count or not self.has_room):
            return Why.OVERLAP, self.behind()
        if rule in (Overlap.QUEUE_LATEST, Overlap.CANCEL_RUNNING):
            them = [
                occurrence
                for occurrence in self.waiting
                if occurrence.cause is Cause.SCHEDULE or rule is Overlap.CANCEL_RUNNING
            ]
            if rule is Overlap.QUEUE_LATEST and newcomer.cause is Cause.SCHEDULE:
                them = [occurrence for occurrence in them if not occurrence.late]
            self._displace_from_line(them, newcomer.scheduled_for)
        verdict = self._queue(newcomer)
        if verdict is QUEUED:
            self.stuck.add(newcomer.id)
        return verdict

    def behind(self) -> str:
        """Return the words for what a newcomer that cannot start has to wait for."""
        if not self.busy and self.waiting:
            return f"behind {self.waiting[0].id}"
        return (
            f"behind {min(self.busy, key=lambda occurrence: (occurrence.line_at, occurrence.id)).id}"
            if self.busy
            else "behind others"
        )

    def _cut(self, newcomer: Lined) -> OccurrenceStatus | Refusal:
        """Leave it to the next plan. What a restart asks for stands in line until then."""
        if newcomer.cause is Cause.RESTART:
            self.goes_on = True
            return self._queue(newcomer)
        self.is_cut = True
        return QUEUED

    def _come_in(self, newcomer: Lined) -> OccurrenceStatus:
        self.newcomers.add(newcomer.id)
        return self._join(newcomer)

    def _join(self, newcomer: Lined) -> OccurrenceStatus:
        self.busy.append(newcomer)
        self.busy_count += 1
        return PENDING

    def _queue(self, newcomer: Lined) -> OccurrenceStatus | Refusal:
        if self.waiting_count >= self.max_queued:
            return Why.QUEUE_FULL, f"{self.waiting_count} wait already"
        self.newcomers.add(newcomer.id)
        self.waiting.append(newcomer)
        self.waiting_count += 1
        return QUEUED

    def _displace_from_line(self, them: Sequence[Lined], by: datetime) -> None:
        """Let these give way. The next plan goes on with those that the snapshot does not name."""
        self._supersede(them, by)
        self.is_cut = self.is_cut or (bool(them) and self.waiting_count > len(self.waiting))

    def _stop_busy(self, by: datetime) -> None:
        """End the busy that have not started, and ask the others to stop."""
        self._supersede([occurrence for occurrence in self.busy if occurrence.status not in _STARTED], by)
        self.cancel_all("overlap cancel_running")

    def _supersede(self, them: Sequence[Lined], by: datetime) -> None:
        for occurrence in them:
            self._end(occurrence, by)

    def _end(self, occurrence: Lined, by: datetime) -> None:
        """Take one out of the line. It ends; a newcomer of this plan is not created."""
        if occurrence in self.busy:
            self.busy.remove(occurrence)
            self.busy_count -= 1
            self.freed += occurrence.id not in self.newcomers and occurrence.id not in self.releases
        else:
            self.waiting.remove(occurrence)
            self.waiting_count -= 1
            self.stuck.discard(occurrence.id)
        if occurrence.id in self.newcomers:
            self.displaced[occurrence.id] = Why.SUPERSEDED, f"by {by.isoformat()}"
            return
        for ids in (self.releases, self.cancels):
            if occurrence.id in ids:
                ids.remove(occurrence.id)
        self.endings.append(Ending(occurrence.id, OccurrenceStatus.SUPERSEDED, Why.SUPERSEDED, f"by {by.isoformat()}"))
