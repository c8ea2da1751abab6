"""The cascade: defaults, then application, template, job, task, occurrence, each setting only what it overrides.

A level sets `Overrides`, a diff. The levels are merged once, when a definition is made, into
`Settings`: every policy with its value and its origin. An occurrence names the version it
runs under. `UNSET` is neither None nor zero: `retry=None` says "no retries" and hides what
an outer level says.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple

from everytick.domain.dependencies import DEPENDS_ON, Dependency
from everytick.domain.names import did_you_mean
from everytick.domain.notices import NOTIFY, Notify
from everytick.domain.payload import Payload
from everytick.domain.policies import (
    DESCRIPTION,
    HORIZON,
    LATE_OVERLAP,
    ON_CREATE,
    PROTECTED,
    RECOVERY,
    RETENTION,
    TIMEZONE,
    UPDATE_POLICY,
    Failure,
    LateOverlap,
    Mode,
    OnCreate,
    OnOrphan,
    OnStoreOutage,
    Overlap,
    Protected,
    Recovery,
    Retention,
    UpdatePolicy,
)
from everytick.domain.policy_checks import as_data
from everytick.domain.policy_readers import (
    JSON,
    MOMENT,
    NAME,
    ON_OR_OFF,
    OPTIONAL_DURATION,
    OPTIONAL_SCHEDULE,
    SET_OF_NAMES,
    PolicyReader,
    count,
    duration,
    one_of,
    or_none,
)
from everytick.domain.promise_policies import FINISH_BY, Promised
from everytick.domain.retry import RETRY, RETRY_ON_FAILURE, Retry
from everytick.domain.schedule import Schedule
from everytick.domain.values import value
from everytick.errors import InvalidDuration, InvalidInstant, InvalidName, InvalidPayload, InvalidPolicies, shown


class Unset(Enum):
    """The type of `UNSET`, so that type checkers can tell it from a value."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final[Literal[Unset.UNSET]] = Unset.UNSET
"""The level does not set the policy."""


class Level(StrEnum):
    """Who set a value; a later level overrides an earlier one."""

    DEFAULT = "default"
    APPLICATION = "application"
    TEMPLATE = "template"
    JOB = "job"
    TASK = "task"
    OCCURRENCE = "occurrence"


_RANK = {level: rank for rank, level in enumerate(Level)}


class Policy(NamedTuple):
    """The declaration of a policy: how its value is written, which levels may set it, and what it says.

    It stands in the annotation of a field of `Settings`, whose name and default are the policy's own.
    """

    reader: PolicyReader
    levels: frozenset[Level]
    sentence: str


JOB = frozenset({Level.JOB})
SHARED = JOB | {Level.APPLICATION}
TASKS = SHARED | {Level.TASK}
RUNS = SHARED | {Level.OCCURRENCE}
ALL = TASKS | RUNS


@value
class Settings:
    """Every policy in force, and who set it; what no level set is the built-in default.

    This is the list of policies. Readers, keywords, the schema of files and the pages follow
    from it: after a change, `python3 dev.py docs` writes them anew.
    """

    timezone: Annotated[str, Policy(TIMEZONE, SHARED, "The zone of schedules that name none themselves.")] = "UTC"
    overlap: Annotated[
        Overlap, Policy(one_of(Overlap), SHARED, "What becomes of an instant that comes while the job is busy.")
    ] = Overlap.SKIP
    max_concurrent: Annotated[
        int | None,
        Policy(
            or_none(count(1, "enabled=False, to run none")),
            SHARED,
            "How many occurrences of the job may be busy at once; none means one, and no limit where overlap is allow.",
        ),
    ] = None
    mode: Annotated[
        Mode,
        Policy(one_of(Mode), SHARED, "In which order the tasks start; graph follows from a task with `after`."),
    ] = Mode.SEQUENTIAL
    failure: Annotated[
        Failure, Policy(one_of(Failure), ALL, "What a task that failed for good means for the other tasks.")
    ] = Failure.FAIL_FAST
    retry: Annotated[
        Retry | None,
        Policy(
            RETRY,
            ALL,
            "How often a failed attempt is tried again; none means never, but 3 times with failure retry_on_failure.",
        ),
    ] = None
    execution_timeout: Annotated[
        timedelta | None,
        Policy(OPTIONAL_DURATION, RUNS, "How long one occurrence may take from its first claim on, retries included."),
    ] = None
    task_timeout: Annotated[
        timedelta | None, Policy(OPTIONAL_DURATION, ALL, "How long one attempt of a task may take.")
    ] = timedelta(minutes=5)
    recovery: Annotated[
        Recovery, Policy(RECOVERY, SHARED, "Which late instants still run, after an outage or a pause.")
    ] = Recovery()
    late_overlap: Annotated[
        LateOverlap,
        Policy(
            LATE_OVERLAP,
            SHARED,
            "How late instants start while the job is busy; where overlap is allow, the default is allow.",
        ),
    ] = LateOverlap.QUEUE
    grace: Annotated[
        timedelta,
        Policy(
            duration(timedelta(seconds=1), 'grace="1s", the shortest'),
            SHARED,
            "How long after its time the newest instant still counts as on time.",
        ),
    ] = timedelta(seconds=60)
    on_create: Annotated[OnCreate, Policy(ON_CREATE, SHARED, "Where a new job begins.")] = OnCreate()
    on_orphan: Annotated[
        OnOrphan, Policy(one_of(OnOrphan), RUNS, "What becomes of an occurrence whose node fell silent.")
    ] = OnOrphan.FAIL
    update_policy: Annotated[
        UpdatePolicy, Policy(UPDATE_POLICY, SHARED, "When a new version comes into force, and for how long.")
    ] = UpdatePolicy()
    priority: Annotated[
        int, Policy(count(-32_768, most=32_767), RUNS, "Of what is ready to start, a higher number starts first.")
    ] = 0
    queue: Annotated[str, Policy(NAME, RUNS, "Which queue it waits in; a node takes from the queues it was given.")] = (
        "default"
    )
    spread: Annotated[
        timedelta | None,
        Policy(OPTIONAL_DURATION, SHARED, "Moves every instant by up to this much, always equally for one job."),
    ] = None
    jitter: Annotated[
        timedelta | None,
        Policy(OPTIONAL_DURATION, SHARED, "Delays each start by up to this much; the instant itself stays."),
    ] = None
    payload: Annotated[
        Payload | None,
        Policy(or_none(JSON), RUNS, "What every occurrence is given, unless its trigger gives something else."),
    ] = None
    description: Annotated[str, Policy(DESCRIPTION, JOB | {Level.TASK}, "Free text for people.")] = ""
    tags: Annotated[tuple[str, ...], Policy(SET_OF_NAMES, SHARED, "Words to find the job by.")] = ()
    enabled: Annotated[
        bool, Policy(ON_OR_OFF, SHARED, "Whether the job starts at all; while it is false its instants are skipped.")
    ] = True
    start: Annotated[datetime | None, Policy(or_none(MOMENT), SHARED, "No instant before this one.")] = None
    end: Annotated[datetime | None, Policy(or_none(MOMENT), SHARED, "No instant after this one.")] = None
    skip_if_successful: Annotated[
        bool,
        Policy(ON_OR_OFF, SHARED, "Whether an instant is skipped if the job succeeded since the instant before it."),
    ] = False
    depends_on: Annotated[
        tuple[Dependency, ...],
        Policy(
            DEPENDS_ON, JOB, "Which jobs must have succeeded before an instant runs; it waits for them, or is skipped."
        ),
    ] = ()
    stop_schedule: Annotated[
        Schedule | None, Policy(OPTIONAL_SCHEDULE, JOB, "When occurrences that are busy are asked to stop.")
    ] = None
    restart_schedule: Annotated[
        Schedule | None,
        Policy(OPTIONAL_SCHEDULE, JOB, "When occurrences that are busy are stopped and the job runs anew."),
    ] = None
    max_queued: Annotated[
        int,
        Policy(
            count(1, 'overlap="skip", to let none wait'),
            SHARED,
            "How many occurrences may wait in line; further instants are skipped.",
        ),
    ] = 1000
    late_cap: Annotated[
        int,
        Policy(
            count(1, 'recovery="mark_as_missed", to run none'),
            SHARED,
            "How many late instants run at most, the newest, whatever recovery keeps.",
        ),
    ] = 1000
    max_lost: Annotated[
        int | None,
        Policy(
            or_none(count(0, "max_lost=None, for no limit")),
            RUNS,
            "How often an occurrence may lose its node before it fails; none is no limit.",
        ),
    ] = 3
    on_store_outage: Annotated[
        OnStoreOutage,
        Policy(
            one_of(OnStoreOutage), SHARED, "Whether instants wait for a store that cannot be reached, or fire anyway."
        ),
    ] = OnStoreOutage.WAIT
    retention: Annotated[Retention, Policy(RETENTION, SHARED, "How long ended occurrences are kept.")] = Retention()
    on_failure: Annotated[Notify | None, Policy(NOTIFY, SHARED, "Who is told once when the job begins to fail.")] = None
    on_recovery: Annotated[
        Notify | None, Policy(NOTIFY, SHARED, "Who is told once when the job runs well again after failures.")
    ] = None
    on_success: Annotated[
        Notify | None,
        Policy(NOTIFY, SHARED, "Who is told of every success, such as a check that waits for signs of life."),
    ] = None
    on_breach: Annotated[
        Notify | None,
        Policy(
            NOTIFY, SHARED, "Who is told once when the job breaks a promise; unless it is set, those of on_failure."
        ),
    ] = None
    success_within: Annotated[
        timedelta | None, Policy(OPTIONAL_DURATION, SHARED, "A promise: the last success is never older than this.")
    ] = None
    start_by: Annotated[
        timedelta | None,
        Policy(OPTIONAL_DURATION, SHARED, "A promise: each instant of the schedule has started so long after it."),
    ] = None
    finish_by: Annotated[
        Promised | None,
        Policy(FINISH_BY, SHARED, "A promise: each instant has ended well so long after it, or by this time of day."),
    ] = None
    protected: Annotated[
        Protected,
        Policy(
            PROTECTED,
            SHARED,
            "What a change of the job or a backfill needs: nothing more, a confirmation (true), or a second person.",
        ),
    ] = Protected.NO
    horizon: Annotated[
        int | timedelta | None,
        Policy(
            HORIZON,
            SHARED,
            "How many runs to come SQL shows, or those of how long after the next one, at most 1,000; none shows none.",
        ),
    ] = None
    runner: Annotated[
        str | None, Policy(or_none(NAME), TASKS, "What carries out the task; none means what suits its function.")
    ] = None
    origins: tuple[tuple[str, Level], ...] = ()

    def overridden_by(self, overrides: "Overrides") -> "Settings":
        """Return the settings with what the level sets; what it does not set stays, with its origin.

        Jobs that say the same share one value: there may be thousands of them.
        """
        try:
            return _merged(self, overrides)
        except TypeError:  # a user's own schedule or value may not be hashable
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


POLICIES: Mapping[str, Policy] = MappingProxyType(
    # Read as they are: to evaluate them once more (get_type_hints) would cost an import milliseconds.
    {name: hint.__metadata__[0] for name, hint in Settings.__annotations__.items() if name != "origins"}
)

SCHEDULES = tuple(name for name, policy in POLICIES.items() if policy.reader is OPTIONAL_SCHEDULE)
"""The policies that are schedules. Their texts are read before, where zones and calendars are known."""

NOTICES = tuple(name for name, policy in POLICIES.items() if policy.reader is NOTIFY)
"""The policies that name receivers of notices. What a receiver is told is read before, where targets are known."""


@lru_cache(maxsize=512)
def _merged(settings: Settings, overrides: "Overrides") -> Settings:
    return settings._with(overrides)


class Effective(NamedTuple):
    """One policy in force and who set it."""

    value: object
    origin: Level


def _derived(overlap: Overlap, failure: Failure, origins: Mapping[str, Level]) -> Iterator[tuple[str, object]]:
    """Give the two defaults that depend on another policy, unless a level has set them."""
    if "late_overlap" not in origins:
        yield "late_overlap", LateOverlap.ALLOW if overlap is Overlap.ALLOW else LateOverlap.QUEUE
    if "retry" not in origins:
        yield "retry", RETRY_ON_FAILURE if failure is Failure.RETRY_ON_FAILURE else None


@value
class Overrides:
    """The policies that one level sets. This is what is stored, not the merged settings."""

    level: Level
    items: tuple[tuple[str, Any], ...] = ()

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.items)

    def get(self, key: str) -> Any:
        """Return the value this level sets, or UNSET."""
        return dict(self.items).get(key, UNSET)

    def with_all(self, others: "Overrides") -> "Overrides":
        """Return these and the others of the same level; where both set a policy, the other one counts."""
        return replace(self, items=tuple(sorted({**dict(self.items), **dict(others.items)}.items())))

    def as_data(self) -> dict[str, object]:
        """Return what is set as JSON can carry it; `overrides` reads it back equal."""
        return {key: as_data(content) for key, content in self.items}


def overrides(level: Level, given: Mapping[str, object], job: str = "", what: str = "") -> Overrides:
    """Read what one level sets: unknown keys and nonsense are refused, UNSET is left out.

    `job` is the name for messages; `what` says more where the level is not the job's own.
    """
    items: list[tuple[str, Any]] = []
    for key, written in given.items():
        policy = _policy(level, key, job)
        if written is not UNSET:
            items.append((key, _read(policy, key, written, job, what)))
    return Overrides(level, tuple(sorted(items, key=lambda item: item[0]))) if items else nothing(level)


def queue_of(own: Overrides | None) -> str | None:
    """Return the queue that these overrides name, None where they name none."""
    queue = UNSET if own is None else own.get("queue")
    return queue if isinstance(queue, str) else None


@lru_cache
def nothing(level: Level) -> Overrides:
    """Return the shared value of a level that sets nothing, as most tasks do."""
    return Overrides(level)


def policy_arguments(level: Level, given: Mapping[str, Any], job: str = "") -> dict[str, Any]:
    """Return policies that others have named, as keywords of a call.

    Raise InvalidPolicies for a name that is none: the call may have another argument of that name, such as `by`.
    """
    for key in given:
        if key not in POLICIES:
            raise _no_policy(level, key, job, is_known=False)
    return dict(given)


def _policy(level: Level, key: object, job: str) -> Policy:
    policy = POLICIES.get(key) if isinstance(key, str) else None
    # A template sets what a job may set.
    level = Level.JOB if level is Level.TEMPLATE else level
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


def _read(policy: Policy, key: str, written: object, job: str, what: str) -> object:
    """Read one policy; a refusal says for which job and which key."""
    try:
        return policy.reader.read(key, written)
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
