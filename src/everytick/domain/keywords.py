"""The policies as keyword arguments, for type checkers and editors: what may be written, not what it becomes.

Written by `python3 dev.py docs` from `Settings` in domain/config.py: edit that, not this.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Any, Literal, TypeAlias, TypedDict

from everytick.domain.config import Unset
from everytick.domain.dependencies import Dependency
from everytick.domain.notices import Notify
from everytick.domain.policies import OnCreate, Recovery, Retention, UpdatePolicy
from everytick.domain.retry import Retry
from everytick.domain.rollouts import Rollout
from everytick.domain.schedule import Schedule

Duration: TypeAlias = timedelta | str
OverlapWord: TypeAlias = Literal["skip", "queue", "queue_latest", "allow", "cancel_running"]
ModeWord: TypeAlias = Literal["sequential", "parallel", "graph"]
FailureWord: TypeAlias = Literal["fail_fast", "continue", "retry_on_failure"]
StrategyWord: TypeAlias = Literal["execute_last", "execute_all", "mark_as_missed", "bounded_window", "compressed"]
LateOverlapWord: TypeAlias = Literal["queue", "skip", "allow"]
FirstSightWord: TypeAlias = Literal["next", "if_matching_now", "immediately"]
OnOrphanWord: TypeAlias = Literal["fail", "restart", "resume"]
UpdateKindWord: TypeAlias = Literal["immediate", "graceful", "windowed"]
OnStoreOutageWord: TypeAlias = Literal["wait", "fire_local"]
ProtectedWord: TypeAlias = Literal["True", "False", "no", "confirm", "two_people"]


class TaskPolicies(TypedDict, total=False):
    """What one task may set."""

    failure: FailureWord | Unset
    """What a task that failed for good means for the other tasks."""

    retry: Retry | Mapping[str, Any] | Unset | None
    """How often a failed attempt is tried again; none means never, but 3 times with failure retry_on_failure."""

    task_timeout: Duration | Unset | None
    """How long one attempt of a task may take."""

    description: str | Unset
    """Free text for people."""

    runner: str | Unset | None
    """What carries out the task; none means what suits its function."""


class JobPolicies(TaskPolicies, total=False):
    """What one job may set."""

    timezone: str | tzinfo | Unset
    """The zone of schedules that name none themselves."""

    overlap: OverlapWord | Unset
    """What becomes of an instant that comes while the job is busy."""

    max_concurrent: int | Unset | None
    """How many occurrences of the job may be busy at once; none means one, and no limit where overlap is allow."""

    mode: ModeWord | Unset
    """In which order the tasks start; graph follows from a task with `after`."""

    execution_timeout: Duration | Unset | None
    """How long one occurrence may take from its first claim on, retries included."""

    recovery: StrategyWord | Recovery | Mapping[str, Any] | Unset
    """Which late instants still run, after an outage or a pause."""

    late_overlap: LateOverlapWord | Unset
    """How late instants start while the job is busy; where overlap is allow, the default is allow."""

    grace: Duration | Unset
    """How long after its time the newest instant still counts as on time."""

    on_create: FirstSightWord | OnCreate | Mapping[str, Any] | Unset
    """Where a new job begins."""

    on_orphan: OnOrphanWord | Unset
    """What becomes of an occurrence whose node fell silent."""

    update_policy: UpdateKindWord | str | UpdatePolicy | Rollout | Unset
    """When a new version comes into force, and for how long."""

    priority: int | Unset
    """Of what is ready to start, a higher number starts first."""

    queue: str | Unset
    """Which queue it waits in; a node takes from the queues it was given."""

    spread: Duration | Unset | None
    """Moves every instant by up to this much, always equally for one job."""

    jitter: Duration | Unset | None
    """Delays each start by up to this much; the instant itself stays."""

    payload: Any
    """What every occurrence is given, unless its trigger gives something else."""

    tags: str | Iterable[str] | Unset
    """Words to find the job by."""

    enabled: bool | Unset
    """Whether the job starts at all; while it is false its instants are skipped."""

    start: datetime | str | Unset | None
    """No instant before this one."""

    end: datetime | str | Unset | None
    """No instant after this one."""

    skip_if_successful: bool | Unset
    """Whether an instant is skipped if the job succeeded since the instant before it."""

    depends_on: str | Dependency | Mapping[str, Any] | Iterable[str | Dependency | Mapping[str, Any]] | Unset | None
    """Which jobs must have succeeded before an instant runs; it waits for them, or is skipped."""

    stop_schedule: Schedule | str | Unset | None
    """When occurrences that are busy are asked to stop."""

    restart_schedule: Schedule | str | Unset | None
    """When occurrences that are busy are stopped and the job runs anew."""

    max_queued: int | Unset
    """How many occurrences may wait in line; further instants are skipped."""

    late_cap: int | Unset
    """How many late instants run at most, the newest, whatever recovery keeps."""

    max_lost: int | Unset | None
    """How often an occurrence may lose its node before it fails; none is no limit."""

    on_store_outage: OnStoreOutageWord | Unset
    """Whether instants wait for a store that cannot be reached, or fire anyway."""

    retention: Retention | Mapping[str, Any] | Unset
    """How long ended occurrences are kept."""

    on_failure: Notify | Mapping[str, Any] | Iterable[Notify | Mapping[str, Any]] | Unset | None
    """Who is told once when the job begins to fail."""

    on_recovery: Notify | Mapping[str, Any] | Iterable[Notify | Mapping[str, Any]] | Unset | None
    """Who is told once when the job runs well again after failures."""

    on_success: Notify | Mapping[str, Any] | Iterable[Notify | Mapping[str, Any]] | Unset | None
    """Who is told of every success, such as a check that waits for signs of life."""

    on_breach: Notify | Mapping[str, Any] | Iterable[Notify | Mapping[str, Any]] | Unset | None
    """Who is told once when the job breaks a promise; unless it is set, those of on_failure."""

    success_within: Duration | Unset | None
    """A promise: the last success is never older than this."""

    start_by: Duration | Unset | None
    """A promise: each instant of the schedule has started so long after it."""

    finish_by: Duration | Unset | None
    """A promise: each instant has ended well so long after it, or by this time of day."""

    protected: ProtectedWord | bool | Unset
    """What a change of the job or a backfill needs: nothing more, a confirmation (true), or a second person."""

    horizon: int | Duration | Unset | None
    """How many runs to come SQL shows, or those of how long after the next one, at most 1,000; none shows none."""


class OccurrencePolicies(TypedDict, total=False):
    """What one single occurrence may have of its own."""

    failure: FailureWord | Unset
    """What a task that failed for good means for the other tasks."""

    retry: Retry | Mapping[str, Any] | Unset | None
    """How often a failed attempt is tried again; none means never, but 3 times with failure retry_on_failure."""

    execution_timeout: Duration | Unset | None
    """How long one occurrence may take from its first claim on, retries included."""

    task_timeout: Duration | Unset | None
    """How long one attempt of a task may take."""

    on_orphan: OnOrphanWord | Unset
    """What becomes of an occurrence whose node fell silent."""

    priority: int | Unset
    """Of what is ready to start, a higher number starts first."""

    queue: str | Unset
    """Which queue it waits in; a node takes from the queues it was given."""

    payload: Any
    """What every occurrence is given, unless its trigger gives something else."""

    max_lost: int | Unset | None
    """How often an occurrence may lose its node before it fails; none is no limit."""
