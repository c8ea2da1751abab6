"""What the questions of an application return beside values of the domain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.domain.values import value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from everytick.deciding.forecast import LikelyBreach
    from everytick.deciding.revise import Revision
    from everytick.domain.changes import Change
    from everytick.domain.job import Job
    from everytick.domain.promises import Breach
    from everytick.domain.rollouts import Rollout


@value(frozen=True)
class JobStatus:
    """The state of a job at one moment of the store's clock.

    It is active while its schedule has instants to come inside its window, enabled while it
    is active, not paused and not disabled; `is_running` is what the store says. `waits` names the brake that holds
    for it, or the limit for which one of its occurrences waits. `run_count` is
    how many occurrences have begun and ended, `last_error` what the last failure said; both last
    longer than the history. `last_result` is how the last one ended: completed, failed or canceled. `breaches` are the
    promises that are broken now, `forecasts` those that will be or may be.
    """

    name: str
    version: int
    is_active: bool
    is_paused: bool
    is_enabled: bool
    is_running: bool
    next_run: datetime | None
    last_run: datetime | None
    run_count: int = 0
    last_error: str | None = None
    breaches: tuple[Breach, ...] = ()
    forecasts: tuple[LikelyBreach, ...] = ()
    waits: str = ""
    last_result: str | None = None


@value(frozen=True)
class UpcomingRun:
    """One of the next runs of a job.

    `id` is that of a run that was asked for. `mark` says what a person did to a run of the schedule: moved, amended,
    rescheduled or skipped; `detail` says who asked or did it, and why. `instant` names it: from there it was moved.
    `queue` is its own, where it was amended to another one than its job's.
    """

    at: datetime
    id: str | None = None
    detail: str = ""
    mark: str | None = None
    instant: datetime | None = None
    queue: str | None = None

    @property
    def is_asked_for(self) -> bool:
        """Whether it was asked for at this time, and the schedule does not name it."""
        return self.id is not None


@value(frozen=True)
class NodeReports:
    """What living nodes report: the job files that they cannot read, with their mistakes, and the same by job.

    `unknown` are the jobs that no living node knows how to run, with the reason. `parked` are those
    of which nothing is planned: some node cannot read their definition, or the store refuses their plan.
    `living` is how many nodes live.
    """

    files: Mapping[str, str]
    of_job: Mapping[str, str]
    unknown: Mapping[str, str]
    parked: Mapping[str, str]
    living: int


@value(frozen=True)
class PartChange:
    """One part of a definition that differs between two versions: the schedule, a policy, a task."""

    part: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.part}: {self.old} → {self.new}"


@value(frozen=True)
class JobVersion:
    """One version of a job: who wrote it and when, from when on it is in force, and what it changed.

    `is_coming` says that its moment is still to come, unless a later version takes its place. `follows` is the
    windowed version whose window ends before this one, or the one that was rolled back by its outcomes. `rollout`
    are the stages that were left when it was tried; `is_on_trial` says that it is tried now.
    """

    version: int
    job: Job
    edited_at: datetime | None
    by: str
    in_force_after: datetime | None
    is_in_force: bool
    is_coming: bool
    follows: int | None
    changes: tuple[PartChange, ...]
    rollout: Rollout | None = None
    is_on_trial: bool = False


@value(frozen=True)
class RolloutStatus:
    """A rollout that lasts: the version on trial, the stages that are left, and what became of this stage so far.

    `in_force` is the version that the other occurrences run. `created` counts occurrences of both versions.
    """

    name: str
    version: int
    in_force: int
    rollout: Rollout
    since: datetime
    well: int
    failed: int
    created: int

    def __str__(self) -> str:
        rule = self.rollout
        if rule.dry_run:
            return f"version {self.version}: {rule.stage}, {self.created} decided"
        ended = self.well + self.failed
        return (
            f"version {self.version}: {rule.stage}, {ended} of {rule.after} ended, "
            f"{self.failed} failed, {rule.max_failures} may"
        )


@value(frozen=True)
class VersionDiff:
    """Two versions of a job: the parts that differ, and the runs to come if the first gave way to the second now."""

    name: str
    old: int
    new: int
    changes: tuple[PartChange, ...]
    runs: Revision


@value(frozen=True)
class Preview:
    """Changes of definitions that are not stored, the runs to come that they change, by job, and their hash.

    `apply` and `update` take the hash as `plan`: they store exactly this, or nothing because the world has moved.
    `refusals` says of each job that cannot be stored why; if there is one, nothing is.
    """

    changes: tuple[Change, ...]
    runs: Mapping[str, Revision]
    hash: str
    refusals: tuple[str, ...] = ()
