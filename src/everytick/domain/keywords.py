"""The policies as keyword arguments, for type checkers and editors: what may be written, not what it becomes."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Any, Literal, TypeAlias, TypedDict

from everytick.domain.config import Unset
from everytick.domain.policies import OnCreate, Recovery, Retention
from everytick.domain.retry import Retry
from everytick.domain.schedule import Schedule

Duration: TypeAlias = timedelta | str
OverlapWord: TypeAlias = Literal["skip", "queue", "queue_latest", "allow", "cancel_running"]
LateOverlapWord: TypeAlias = Literal["queue", "skip", "allow"]
FailureWord: TypeAlias = Literal["fail_fast", "continue", "retry_on_failure"]
RecoveryWord: TypeAlias = Literal["execute_last", "execute_all", "mark_as_missed", "bounded_window", "compressed"]


class TaskPolicies(TypedDict, total=False):
    """What one task may set."""

    failure: FailureWord | Unset
    retry: Retry | Mapping[str, Any] | Unset | None
    task_timeout: Duration | Unset | None
    runner: str | Unset | None
    description: str | Unset


class JobPolicies(TaskPolicies, total=False):
    """What one job may set."""

    timezone: str | tzinfo | Unset
    overlap: OverlapWord | Unset
    max_concurrent: int | Unset | None
    mode: Literal["sequential", "parallel", "graph"] | Unset
    execution_timeout: Duration | Unset | None
    recovery: RecoveryWord | Recovery | Mapping[str, Any] | Unset
    late_overlap: Literal["queue", "skip", "allow"] | Unset
    grace: Duration | Unset
    on_create: Literal["next", "if_matching_now", "immediately"] | OnCreate | Mapping[str, Any] | Unset
    on_orphan: Literal["fail", "restart", "resume"] | Unset
    update_policy: Literal["immediate"] | Unset
    priority: int | Unset
    queue: str | Unset
    spread: Duration | Unset | None
    jitter: Duration | Unset | None
    payload: Any
    tags: str | Iterable[str] | Unset
    enabled: bool | Unset
    start: datetime | str | Unset | None
    end: datetime | str | Unset | None
    skip_if_successful: bool | Unset
    stop_schedule: Schedule | str | Unset | None
    restart_schedule: Schedule | str | Unset | None
    max_queued: int | Unset
    late_cap: int | Unset
    max_lost: int | Unset | None
    on_store_outage: Literal["wait", "fire_local"] | Unset
    retention: Retention | Mapping[str, Any] | Unset
