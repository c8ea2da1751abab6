"""The cascade: built-in defaults, then application, job, task, occurrence, each setting only what it overrides.

What a level sets is `Overrides`, a diff; merging the levels once gives `Settings`, the
whole with the origin of every value. Nobody merges for himself: a definition is merged
when it is made, and an occurrence names the version it runs under. Not set (`UNSET`) is
neither None nor zero: `retry=None` says "no retries" and hides what an outer level says.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from everytick.domain import policies
from everytick.domain.durations import instant
from everytick.domain.names import checked_name, did_you_mean
from everytick.domain.payload import Payload, payload
from everytick.domain.policies import (
    Failure,
    LateOverlap,
    Mode,
    OnCreate,
    OnOrphan,
    OnStoreOutage,
    Overlap,
    Recovery,
    Retention,
    UpdatePolicy,
)
from everytick.domain.reading import (
    INSTANT,
    LARGEST,
    NOT_OBEYED_YET,
    as_data,
    choice,
    length,
    names,
    refused,
    switch,
    whole,
)
from everytick.domain.retry import RETRY_ON_FAILURE, Retry, retry
from everytick.domain.schedule import Schedule
from everytick.domain.values import value
from everytick.errors import InvalidDuration, InvalidInstant, InvalidName, InvalidPayload, InvalidPolicies, shown


class Unset(Enum):
    """The type of `UNSET`, so that type checkers can tell it from a value."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final[Literal[Unset.UNSET]] = Unset.UNSET
"""Nothing was said at this level."""


class Level(StrEnum):
    """Who set a value; a later level overrides an earlier one."""

    DEFAULT = "default"
    APPLICATION = "application"
    JOB = "job"
    TASK = "task"
    OCCURRENCE = "occurrence"


_RANK = {level: rank for rank, level in enumerate(Level)}


@value
class Settings:
    """Every policy in force, and who set it; what nobody set is the built-in default."""

    timezone: str = "UTC"
    overlap: Overlap = Overlap.SKIP
    max_concurrent: int | None = None
    mode: Mode = Mode.SEQUENTIAL
    failure: Failure = Failure.FAIL_FAST
    retry: Retry | None = None
    execution_timeout: timedelta | None = None
    task_timeout: timedelta | None = timedelta(minutes=5)
    recovery: Recovery = Recovery()
    late_overlap: LateOverlap = LateOverlap.QUEUE
    grace: timedelta = timedelta(seconds=60)
    on_create: OnCreate = OnCreate()
    on_orphan: OnOrphan = OnOrphan.FAIL
    update_policy: UpdatePolicy = UpdatePolicy.IMMEDIATE
    priority: int = 0
    queue: str = "default"
    spread: timedelta | None = None
    jitter: timedelta | None = None
    payload: Payload | None = None
    description: str = ""
    tags: tuple[str, ...] = ()
    enabled: bool = True
    start: datetime | None = None
    end: datetime | None = None
    skip_if_successful: bool = False
    stop_schedule: Schedule | None = None
    restart_schedule: Schedule | None = None
    max_queued: int = 1000
    late_cap: int = 1000
    max_lost: int | None = 3
    on_store_outage: OnStoreOutage = OnStoreOutage.WAIT
    retention: Retention = Retention()
    runner: str | None = None
    origins: tuple[tuple[str, Level], ...] = ()

    def overridden_by(self, overrides: "Overrides") -> "Settings":
        """Return the settings with what the level sets; what it does not set stays, with its origin.

        Thousands of jobs that say the same share one value.
        """
        try:
            return _merged(self, overrides)
        except TypeError:  # somebody's own schedule or value cannot be hashed
            return self._with(overrides)

    def _with(self, overrides: "Overrides") -> "Settings":
        origins = dict(self.origins)
        latest = max((_RANK[level] for level in origins.values()), default=0)
        assert _RANK[overrides.level] >= latest, f"{overrides.level} comes before {list(Level)[latest]} in the cascade"
        origins.update(dict.fromkeys(overrides, overrides.level))
        changed = dict(overrides.items)
        changed.update(_derived(changed.get("overlap", self.overlap), changed.get("failure", self.failure), origins))
        return replace(self, **changed, origins=tuple(sorted(origins.items())))

    def origin(self, key: str) -> Level:
        """Say who set this policy."""
        assert key in POLICIES, f"{key} is not a policy"
        return dict(self.origins).get(key, Level.DEFAULT)

    def effective(self) -> Mapping[str, "Effective"]:
        """Return every policy with its value and who set it, for people and for the store."""
        origins = dict(self.origins)
        return {key: Effective(getattr(self, key), origins.get(key, Level.DEFAULT)) for key in POLICIES}


@lru_cache(maxsize=512)
def _merged(settings: Settings, overrides: "Overrides") -> Settings:
    return settings._with(overrides)


class Effective(NamedTuple):
    """One policy in force and who set it."""

    value: object
    origin: Level


def _derived(overlap: Overlap, failure: Failure, origins: Mapping[str, Level]) -> Iterator[tuple[str, object]]:
    """Give the two defaults that depend on another policy; what somebody set is left alone."""
    if "late_overlap" not in origins:
        yield "late_overlap", LateOverlap.ALLOW if overlap is Overlap.ALLOW else LateOverlap.QUEUE
    if "retry" not in origins:
        yield "retry", RETRY_ON_FAILURE if failure is Failure.RETRY_ON_FAILURE else None


@value
class Overrides:
    """What one level sets, and nothing else: this is what is stored."""

    level: Level
    items: tuple[tuple[str, Any], ...] = ()

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.items)

    def get(self, key: str) -> Any:
        """Return the value this level sets, or UNSET."""
        return dict(self.items).get(key, UNSET)

    def as_data(self) -> dict[str, object]:
        """Return what is set as JSON can carry it; `overrides` reads it back equal."""
        return {key: as_data(found) for key, found in self.items}


def overrides(level: Level, given: Mapping[str, object], job: str = "", what: str = "") -> Overrides:
    """Read what one level sets: unknown keys and nonsense are refused, UNSET is left out.

    `job` is the name for messages; `what` says more where the level is not the job's own.
    """
    found: list[tuple[str, Any]] = []
    for key, written in given.items():
        if key in NOT_OBEYED:
            raise not_obeyed(key, written, job, what)
        policy = _policy(level, key, job)
        if written is not UNSET:
            found.append((key, _read(policy, key, written, job, what)))
    return Overrides(level, tuple(sorted(found, key=lambda item: item[0]))) if found else nothing(level)


@lru_cache
def nothing(level: Level) -> Overrides:
    """Return the one value of a level that sets nothing: of thousands of jobs, most tasks are like that."""
    return Overrides(level)


def _policy(level: Level, key: object, job: str) -> "Policy":
    policy = POLICIES.get(key) if isinstance(key, str) else None
    if policy is None or level not in policy.levels:
        raise _no_policy(level, key, job, is_known=policy is not None)
    return policy


def _no_policy(level: Level, key: object, job: str, *, is_known: bool) -> InvalidPolicies:
    known = [name for name, policy in POLICIES.items() if level in policy.levels]
    if not is_known:
        near = did_you_mean(key, known) if isinstance(key, str) else ""
        return InvalidPolicies(job, f"there is no policy '{shown(key)}'{near}", () if near else tuple(known))
    reason = f"{key} cannot be set for one {level}" if level is not Level.APPLICATION else f"{key} is one job's own"
    return InvalidPolicies(job, reason, (f"{key} of the job", f"here one of {', '.join(known)}"))


def _read(policy: "Policy", key: str, written: object, job: str, what: str) -> object:
    """Read one policy; a refusal says for which job and which key."""
    try:
        return policy.read(written)
    except InvalidPolicies as error:
        raise InvalidPolicies(job, f"{what}: {error.reason}" if what else error.reason, error.alternatives) from None
    except (InvalidDuration, InvalidInstant) as error:
        raise type(error)(error.text, f"{error.reason} (read as {_where(key, what, job)})") from None
    except InvalidName as error:
        raise InvalidName(error.what, error.name, f"{error.reason} (read as {_where(key, what, job)})") from None
    except InvalidPayload as error:
        raise InvalidPayload(_where(key, what, job), error.reason) from None


def _where(key: str, what: str, job: str) -> str:
    return " of ".join(part for part in (key, what, f"job '{shown(job)}'" if job else "") if part)


class Policy(NamedTuple):
    """How one policy is read, and at which levels it makes sense."""

    read: Callable[[object], object]
    levels: frozenset[Level]


_JOB = frozenset({Level.JOB})
_MANY = _JOB | {Level.APPLICATION}
_TASK = _MANY | {Level.TASK}
_ONE = _MANY | {Level.OCCURRENCE}
_ALL = _TASK | {Level.OCCURRENCE}


def _or_none(read: Callable[[object], object]) -> Callable[[object], object]:
    return lambda given: None if given is None else read(given)


def _lasting(key: str, *instead: str) -> Callable[[object], object]:
    """A duration of some length, or None for none."""
    return _or_none(lambda given: length(key, given, INSTANT, f"{key}=None, for none", *instead))


def _counted(key: str, least: int, *instead: str) -> Callable[[object], object]:
    return lambda given: whole(key, given, least, LARGEST, *instead)


def _schedule(key: str) -> Callable[[object], object]:
    def read(given: object) -> object:
        if given is None or isinstance(given, Schedule):
            return given
        raise refused(key, given, "is not a schedule", f'{key}=cron("0 6 * * *")')

    return read


def _grace(given: object) -> timedelta:
    return length("grace", given, timedelta(seconds=1), 'grace="1s", the shortest')


POLICIES: Mapping[str, Policy] = MappingProxyType(
    {
        "timezone": Policy(policies.timezone, _MANY),
        "overlap": Policy(partial(choice, "overlap", Overlap), _MANY),
        "max_concurrent": Policy(_or_none(_counted("max_concurrent", 1, "enabled=False, to run none")), _MANY),
        "mode": Policy(partial(choice, "mode", Mode), _MANY),
        "failure": Policy(partial(choice, "failure", Failure), _ALL),
        "retry": Policy(retry, _ALL),
        "execution_timeout": Policy(_lasting("execution_timeout"), _ONE),
        "task_timeout": Policy(_lasting("task_timeout"), _ALL),
        "recovery": Policy(policies.recovery, _MANY),
        "late_overlap": Policy(policies.late_overlap, _MANY),
        "grace": Policy(_grace, _MANY),
        "on_create": Policy(policies.on_create, _MANY),
        "on_orphan": Policy(partial(choice, "on_orphan", OnOrphan), _ONE),
        "update_policy": Policy(policies.update_policy, _MANY),
        "priority": Policy(lambda given: whole("priority", given, -32_768, 32_767), _ONE),
        "queue": Policy(partial(checked_name, "queue"), _ONE),
        "spread": Policy(_lasting("spread"), _MANY),
        "jitter": Policy(_lasting("jitter"), _MANY),
        "payload": Policy(_or_none(payload), _ONE),
        "description": Policy(policies.description, _JOB | {Level.TASK}),
        "tags": Policy(partial(names, "tags"), _MANY),
        "enabled": Policy(partial(switch, "enabled"), _MANY),
        "start": Policy(_or_none(instant), _MANY),
        "end": Policy(_or_none(instant), _MANY),
        "skip_if_successful": Policy(partial(switch, "skip_if_successful"), _MANY),
        "stop_schedule": Policy(_schedule("stop_schedule"), _JOB),
        "restart_schedule": Policy(_schedule("restart_schedule"), _JOB),
        "max_queued": Policy(_counted("max_queued", 1, 'overlap="skip", to let none wait'), _MANY),
        "late_cap": Policy(_counted("late_cap", 1, 'recovery="mark_as_missed", to run none'), _MANY),
        "max_lost": Policy(_or_none(_counted("max_lost", 0, "max_lost=None, for no limit")), _ONE),
        "on_store_outage": Policy(partial(choice, "on_store_outage", OnStoreOutage), _MANY),
        "retention": Policy(policies.retention, _MANY),
        "runner": Policy(_or_none(partial(checked_name, "runner")), _TASK),
    }
)

NOT_OBEYED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "depends_on": ("one job with both as tasks, one `after` the other", "a trigger of this job at the other's end"),
        "success_within": ("a check from outside that asks the view jobs for last_success",),
        "start_by": ('recovery={"strategy": "bounded_window", "max_duration": "5m"}, to run nothing later than that',),
        "finish_by": ('execution_timeout="1h", to end a run that takes longer',),
    }
)
"""Policies of the contract that everytick does not obey yet: what to write instead of each. They are refused."""


def not_obeyed(key: str, written: object, job: str = "", what: str = "") -> InvalidPolicies:
    """Return the refusal of a policy that would change nothing."""
    reason = refused(key, written, NOT_OBEYED_YET).reason
    return InvalidPolicies(job, f"{what}: {reason}" if what else reason, NOT_OBEYED[key])
