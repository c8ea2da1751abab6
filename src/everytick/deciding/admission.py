"""The overlap policies: which occurrence may start, which waits in line and which is turned away.

The line is kept while a plan is made: releases come first, then everybody new in the order
of (line_at, id). Only here does the number of busy occurrences rise.
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

    `unmet` are those in line that wait for another job. They take no room, and what people ask for
    passes them by; the schedule's own keep their order behind them. `stuck` are all that stay in
    line for this reason, those aside that the snapshot does not name, and `goes_on` says that the next
    plan can release more at once.

    A stop schedule means what is busy at its instant. While a pause lets the watermark wait, every plan within the
    grace sees that instant, and would stop what came in after it. So what stood in line or was asked for before it
    (`held_before`) waits until the instant is no longer on time (`held_until`).
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
        "held_before",
        "held_until",
        "is_crowded",
        "is_cut",
        "is_paused",
        "job",
        "max_concurrent",
        "max_queued",
        "newcomers",
        "releases",
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
        self.is_paused = paused
        if paused:
            # Only what people asked for stands in line then; the rest stays where it is.
            self.waiting = [each for each in self.waiting if each.cause is not Cause.SCHEDULE]
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
        self.held_before: datetime | None = None
        self.held_until: datetime | None = None
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
        shown = {each.id for each in self.waiting}
        for each in [each for each in self._lined if each.id in shown]:
            found = unmet(snapshot, each, now)
            if found is None:
                continue
            if found.is_over:
                self.waiting.remove(each)
                self.waiting_count -= 1
                self.endings.append(Ending(each.id, OccurrenceStatus.SKIPPED, Why.DEPENDENCY, found.said))
            else:
                self.unmet[each.id] = found

    def release_met(self, most: int) -> None:
        """Do as `release` where some in line wait for other jobs: they keep the places of those behind them.

        What people ask for passes them by, and so does an instant that may overlap.
        """
        unseen = self.waiting_count - len(self.waiting)
        blocked = False
        for each in self.waiting[: len(self.waiting) - (2 if unseen else 0)]:
            if self._is_held(each):
                break
            rule = self._rule_of(each)
            keeps_order = each.cause is Cause.SCHEDULE and rule is not Overlap.ALLOW
            if each.id in self.unmet or (blocked and keeps_order):
                blocked = blocked or keeps_order
                self.stuck.add(each.id)
            elif not self._fits(rule):
                if rule is Overlap.CANCEL_RUNNING:
                    self._stop_busy(each.scheduled_for)
                self.goes_on = self.goes_on or self.has_room
            elif len(self.releases) >= most:
                self.goes_on = True
            else:
                self.waiting.remove(each)
                self.waiting_count -= 1
                self.releases.append(each.id)
                self._join(each)
        if unseen:
            self.stuck_unseen = unseen + 2 if blocked else 0
            self.goes_on = self.goes_on or bool(self.releases or self.endings)

    def _rule_of(self, each: Lined) -> Overlap:
        """The rule of one in line: that of its schedule, or that of a request that names none."""
        settings = self.job.settings
        if each.cause is not Cause.SCHEDULE:
            return Overlap.ALLOW if settings.overlap is Overlap.ALLOW else Overlap.QUEUE
        if each.late:
            return Overlap.ALLOW if settings.late_overlap is LateOverlap.ALLOW else Overlap.QUEUE
        return settings.overlap

    def _fits(self, rule: Overlap) -> bool:
        if rule is Overlap.ALLOW and self.max_concurrent is None:
            return True
        return self._has_sure_room

    def release(self, most: int) -> None:
        """Let the oldest in line be pending, as long as there is room."""
        # Of a long line a snapshot holds the oldest, and two behind a gap: those in the gap come before these.
        seen = len(self.waiting) if self.waiting_count == len(self.waiting) else len(self.waiting) - 2
        while self._has_sure_room and len(self.releases) < min(most, seen) and not self._is_held(self.waiting[0]):
            oldest = self.waiting.pop(0)
            self.waiting_count -= 1
            self.releases.append(oldest.id)
            self._join(oldest)

    def hold(self, before: datetime, until: datetime) -> None:
        """Let those that stood in line before a moment stay there, if the job is paused; until then all plans do."""
        if self.is_paused:
            self.held_before, self.held_until = before, until

    def _is_held(self, each: Lined) -> bool:
        return self.held_before is not None and each.line_at < self.held_before

    def supersede_retries(self, by: datetime) -> None:
        """End each occurrence that only waits for a retry which the next instant supersedes."""
        for each in [each for each in self.busy if each.superseded_by_next]:
            if each.status is OccurrenceStatus.AWAITING_RETRY:
                self._end(each, by)

    def narrow(self, job: Job, narrowed_at: datetime, most: int) -> bool:
        """End what waits without a reason since `recovery` was edited; return whether none of it is left."""
        found = unwanted(self._lined, job.settings.recovery, narrowed_at)
        for each in found[:most]:
            self.waiting.remove(each)
            self.waiting_count -= 1
            self.endings.append(Ending(each.id, OccurrenceStatus.CANCELED, Why.RECOVERY))
        unseen = self.waiting_count > len(self.waiting)
        return len(found) <= most and not (found and unseen)

    def cancel_all(self, who: str, before: datetime | None = None) -> None:
        """Ask every busy one to stop, or every one that stood in line before a moment; `who` asks."""
        asked = len(self.cancels)
        for each in self.busy:
            if each.id not in self.cancels and (before is None or each.line_at < before):
                self.cancels.append(each.id)
        if self.is_crowded:
            self.cancels_before = max(filter(None, (before or _ANY_TIME, self.cancels_before)))
        if (len(self.cancels) > asked or self.is_crowded) and who not in self.cancels_because:
            self.cancels_because = f"{self.cancels_because} and {who}" if self.cancels_because else f"asked by {who}"

    def admit(self, newcomer: Lined, rule: Overlap) -> OccurrenceStatus | Refusal:
        """Return pending or queued, or why it is turned away; it counts only if the line is not cut afterwards."""
        if self._is_held(newcomer):
            return self._queue(newcomer)
        if self.depends_on and waits_for(self.depends_on, newcomer.cause):
            return self._admit_dependent(newcomer, rule)
        if rule is Overlap.ALLOW:
            fits = self.max_concurrent is None or self.busy_count + self.freed < self.max_concurrent
        else:
            fits = self._has_sure_room and self.in_the_way <= 0
        if fits:
            return self._come_in(newcomer)
        if self.freed or (self._has_sure_room and self.in_the_way > 0):
            # Those before him may come in, and a later plan lets them: only then is it known what is left for him.
            return self._cut()
        match rule:
            case Overlap.SKIP:
                return Why.OVERLAP, self.behind()
            case Overlap.QUEUE_LATEST:
                scheduled = [each for each in self.waiting if each.cause is Cause.SCHEDULE]
                if newcomer.cause is Cause.SCHEDULE:
                    # A live instant takes no place of a catch-up: late ones keep theirs.
                    scheduled = [each for each in scheduled if not each.late]
                self._displace_from_line(scheduled, newcomer.scheduled_for)
            case Overlap.CANCEL_RUNNING:
                before = self.freed
                self._supersede([each for each in self.busy if each.status not in _STARTED], newcomer.scheduled_for)
                self._displace_from_line(list(self.waiting), newcomer.scheduled_for)
                self.cancel_all("overlap cancel_running")
                if self.freed > before:
                    return self._cut()
                if self.has_room:
                    return self._come_in(newcomer)
        return self._queue(newcomer)

    def _admit_dependent(self, newcomer: Lined, rule: Overlap) -> OccurrenceStatus | Refusal:
        """Put one in line that waits for other jobs, by its rule. The next plan sees whether they have succeeded.

        Until then it stops nothing that is busy.
        """
        if rule is not Overlap.ALLOW and (self.freed or (self._has_sure_room and self.in_the_way > 0)):
            return self._cut()
        if rule is Overlap.SKIP and (self.waiting_count or not self.has_room):
            return Why.OVERLAP, self.behind()
        if rule in (Overlap.QUEUE_LATEST, Overlap.CANCEL_RUNNING):
            them = [each for each in self.waiting if each.cause is Cause.SCHEDULE or rule is Overlap.CANCEL_RUNNING]
            if rule is Overlap.QUEUE_LATEST and newcomer.cause is Cause.SCHEDULE:
                them = [each for each in them if not each.late]
            self._displace_from_line(them, newcomer.scheduled_for)
        verdict = self._queue(newcomer)
        if verdict is QUEUED:
            self.stuck.add(newcomer.id)
        return verdict

    def behind(self) -> str:
        """Return the words for what a newcomer that cannot start has to wait for."""
        if not self.busy and self.waiting:
            return f"behind {self.waiting[0].id}"
        return f"behind {min(self.busy, key=lambda each: (each.line_at, each.id)).id}" if self.busy else "behind others"

    def _cut(self) -> OccurrenceStatus:
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
        self._supersede([each for each in self.busy if each.status not in _STARTED], by)
        self.cancel_all("overlap cancel_running")

    def _supersede(self, them: Sequence[Lined], by: datetime) -> None:
        for each in them:
            self._end(each, by)

    def _end(self, each: Lined, by: datetime) -> None:
        """Take one out of the line. It ends; a newcomer of this plan is not created."""
        if each in self.busy:
            self.busy.remove(each)
            self.busy_count -= 1
            self.freed += each.id not in self.newcomers and each.id not in self.releases
        else:
            self.waiting.remove(each)
            self.waiting_count -= 1
            self.stuck.discard(each.id)
        if each.id in self.newcomers:
            self.displaced[each.id] = Why.SUPERSEDED, f"by {by.isoformat()}"
            return
        for told in (self.releases, self.cancels):
            if each.id in told:
                told.remove(each.id)
        self.endings.append(Ending(each.id, OccurrenceStatus.SUPERSEDED, Why.SUPERSEDED, f"by {by.isoformat()}"))
