"""The values that policies have, beside plain numbers, lengths and names.

A policy is written the same way in Python, in a file and over HTTP: a word, a mapping
or one of the values here. The functions named like a policy read what was written and refuse
nonsense with alternatives; `as_data` gives the text or mapping that reads back equal. Which
policies there are is declared in `config.py`, and what one means is decided in `deciding`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from everytick.domain.durations import MICROSECOND, format_duration, instant
from everytick.domain.names import checked_name
from everytick.domain.policy_checks import LARGEST, choice, fill, keys, length, refused, whole
from everytick.domain.policy_readers import (
    DURATION,
    TEXT,
    PolicyReader,
    Schema,
    count,
    described,
    one_of,
    or_null,
    own,
    table,
)
from everytick.domain.rollouts import Rollout, rollout
from everytick.domain.values import value
from everytick.errors import InvalidPolicies

LONGEST_DESCRIPTION = 10_000
"""Characters."""


class Overlap(StrEnum):
    """What happens to an instant that comes while the job is busy."""

    SKIP = "skip"
    QUEUE = "queue"
    QUEUE_LATEST = "queue_latest"
    ALLOW = "allow"
    CANCEL_RUNNING = "cancel_running"


class LateOverlap(StrEnum):
    """The same for late instants that recovery keeps; these never cancel anything."""

    QUEUE = "queue"
    SKIP = "skip"
    ALLOW = "allow"


class Mode(StrEnum):
    """In which order the tasks of one occurrence start."""

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"
    GRAPH = "graph"


class Failure(StrEnum):
    """What a task that failed for good means for its peers."""

    FAIL_FAST = "fail_fast"
    CONTINUE = "continue"
    RETRY_ON_FAILURE = "retry_on_failure"


class OnOrphan(StrEnum):
    """What becomes of an occurrence whose node fell silent."""

    FAIL = "fail"
    RESTART = "restart"
    RESUME = "resume"


class OnStoreOutage(StrEnum):
    """Whether instants wait for a store that cannot be reached, or fire from this node's memory."""

    WAIT = "wait"
    FIRE_LOCAL = "fire_local"


class Strategy(StrEnum):
    """Which late instants are still run."""

    EXECUTE_LAST = "execute_last"
    EXECUTE_ALL = "execute_all"
    MARK_AS_MISSED = "mark_as_missed"
    BOUNDED_WINDOW = "bounded_window"
    COMPRESSED = "compressed"


class FirstSight(StrEnum):
    """Where a new job begins."""

    NEXT = "next"
    IF_MATCHING_NOW = "if_matching_now"
    IMMEDIATELY = "immediately"
    BACKFILL_FROM = "backfill_from"


class Protected(StrEnum):
    """What a person who changes the job needs."""

    NO = "no"
    CONFIRM = "confirm"
    TWO_PEOPLE = "two_people"


MOST_COMING = 1000
"""How many runs to come of one job are written down at most."""


class UpdateKind(StrEnum):
    """When a new version of a job comes into force."""

    IMMEDIATE = "immediate"
    GRACEFUL = "graceful"
    WINDOWED = "windowed"
    ROLLOUT = "rollout"


def late_overlap(given: object) -> LateOverlap:
    """Return the overlap policy of late instants; the two that look at other instants are refused."""
    if given == Overlap.CANCEL_RUNNING:
        reason = "would let a late instant cancel the one before it"
    elif given == Overlap.QUEUE_LATEST:
        reason = "would drop late instants that recovery has just kept"
    else:
        return choice("late_overlap", LateOverlap, given)
    one_by_one, only_one = 'late_overlap="queue", to run them one after another', 'recovery="execute_last", to run one'
    raise refused("late_overlap", given, reason, one_by_one, only_one)


def protected(given: object) -> Protected:
    """Return how far the job is protected; `true` asks for a confirmation."""
    if isinstance(given, bool):
        return Protected.CONFIRM if given else Protected.NO
    return choice("protected", Protected, given)


def description(given: object) -> str:
    """Return free text for people, of a bounded length."""
    if not isinstance(given, str):
        raise refused("description", given, "must be text")
    if len(given) > LONGEST_DESCRIPTION:
        reason = f"has {len(given):,} characters, and at most {LONGEST_DESCRIPTION:,} are allowed"
        raise refused("description", given, reason)
    return given


def timezone(given: object) -> str:
    """Return the name of a time zone; whether there is such a zone is for the schedules to say."""
    if given is UTC:
        return "UTC"
    return checked_name("timezone", getattr(given, "key", given))


@value(frozen=True)
class Recovery:
    """Which late instants are run; the bounds belong to `bounded_window`, and without any it keeps all."""

    strategy: Strategy
    max_occurrences: int | None
    max_duration: timedelta | None

    def __init__(
        self,
        strategy: str = Strategy.EXECUTE_LAST,
        max_occurrences: int | None = None,
        max_duration: timedelta | str | None = None,
    ) -> None:
        kind = choice("recovery", Strategy, strategy)
        fill(self, strategy=kind, **_bounds(max_occurrences, max_duration, kind is Strategy.BOUNDED_WINDOW))

    def as_data(self) -> object:
        """Return the word, or the mapping where there are bounds."""
        age = None if self.max_duration is None else format_duration(self.max_duration)
        bounds = {"max_occurrences": self.max_occurrences, "max_duration": age}
        given = {name: bound for name, bound in bounds.items() if bound is not None}
        return {"strategy": str(self.strategy), **given} if given else str(self.strategy)


def bounded_window(max_occurrences: int | None = None, max_duration: timedelta | str | None = None) -> Recovery:
    """Keep the late instants of the last `max_duration`, and of these the newest `max_occurrences`."""
    return Recovery(Strategy.BOUNDED_WINDOW, max_occurrences, max_duration)


def recovery(given: object) -> Recovery:
    """Read `"execute_last"` or `{"strategy": "bounded_window", "max_duration": "6h"}`."""
    if isinstance(given, Recovery):
        return given
    if isinstance(given, Mapping):
        return Recovery(**keys("recovery", given, tuple(_RECOVERY_KEYS), ("strategy",)))
    return Recovery(choice("recovery", Strategy, given))


@value(frozen=True)
class OnCreate:
    """Where a new job begins: after now, at the current minute, at once, or at an instant of the past."""

    begin: FirstSight
    since: datetime | None

    def __init__(self, begin: str = FirstSight.NEXT, since: datetime | str | None = None) -> None:
        kind = choice("on_create", FirstSight, begin)
        if (kind is FirstSight.BACKFILL_FROM) != (since is not None):
            reason = "needs the instant to begin at" if since is None else "takes no instant"
            raise refused("on_create", begin, reason, 'on_create=backfill_from("2026-01-31T00:00:00Z")')
        fill(self, begin=kind, since=None if since is None else instant(since))

    def as_data(self) -> object:
        """Return the word, or the mapping `{"backfill_from": instant}`."""
        return str(self.begin) if self.since is None else {str(self.begin): self.since.isoformat()}


def backfill_from(since: datetime | str) -> OnCreate:
    """Begin a new job at an instant of the past; its late instants follow `recovery`."""
    return OnCreate(FirstSight.BACKFILL_FROM, since)


def on_create(given: object) -> OnCreate:
    """Read `"next"`, `"if_matching_now"`, `"immediately"` or `{"backfill_from": instant}`."""
    if isinstance(given, OnCreate):
        return given
    if isinstance(given, Mapping):
        return backfill_from(keys("on_create", given, ("backfill_from",), ("backfill_from",))["backfill_from"])
    return OnCreate(choice("on_create", FirstSight, given))


@value(frozen=True)
class UpdatePolicy:
    """When a new version comes into force: at once, after runs that are scheduled already, for a while, or once tried.

    `graceful` leaves the next `occurrences` to the old version, or all through `duration`.
    `windowed` gives them to the new one; then the old version is in force again. `rollout` says how it is tried first.
    """

    kind: UpdateKind
    occurrences: int | None
    duration: timedelta | None
    rollout: Rollout | None

    def __init__(
        self,
        kind: str = UpdateKind.IMMEDIATE,
        occurrences: int | None = None,
        duration: timedelta | str | None = None,
        rollout: Rollout | None = None,
    ) -> None:
        word = choice("update_policy", UpdateKind, kind)
        if word in (UpdateKind.IMMEDIATE, UpdateKind.ROLLOUT) and (occurrences is not None or duration is not None):
            raise refused("update_policy", kind, "takes no bound", *_UPDATES)
        if (word is UpdateKind.ROLLOUT) != (rollout is not None):
            raise refused("update_policy", kind, "and the stages of a rollout belong together", *_UPDATES)
        if occurrences is not None and duration is not None:
            raise refused("update_policy", kind, "takes so many occurrences or a length of time, not both", *_UPDATES)
        if word is UpdateKind.GRACEFUL and occurrences is None and duration is None:
            occurrences = 1
        if word is UpdateKind.WINDOWED and occurrences is None and duration is None:
            duration = USUAL_WINDOW
        fill(
            self,
            kind=word,
            occurrences=None
            if occurrences is None
            else whole("update_policy occurrences", occurrences, 1, MOST_OCCURRENCES),
            duration=None if duration is None else length("update_policy duration", duration, MICROSECOND),
            rollout=rollout,
        )

    def __str__(self) -> str:
        if self.rollout is not None:
            return f"{self.kind} {self.rollout}"
        bound = self.occurrences if self.duration is None else format_duration(self.duration)
        return str(self.kind) if self == UpdatePolicy(self.kind) else f"{self.kind} {bound}"

    @property
    def is_lasting(self) -> bool:
        """Whether the new version stays in force once it is."""
        return self.kind not in (UpdateKind.WINDOWED, UpdateKind.ROLLOUT)

    def as_data(self) -> object:
        """Return the text that reads back equal."""
        return str(self)


USUAL_WINDOW = timedelta(days=30)
"""How long a `windowed` update lasts that names no bound."""

MOST_OCCURRENCES = 1000
"""Most occurrences that an update policy may count."""

_UPDATES = (
    'update_policy="immediate", in force at once',
    'update_policy="graceful" or "graceful 3" or "graceful 2d", after the next run, the next three, or two days',
    'update_policy="windowed 5" or "windowed 30d", for so many runs or so long',
    'update_policy="rollout 10% after 20", for a tenth of the runs first',
)


def update_policy(given: object) -> UpdatePolicy:
    """Read `"immediate"`, `"graceful"`, `"graceful 3"`, `"graceful 2d"`, `"windowed 5"`, `"rollout 10%"`, …"""
    if isinstance(given, UpdatePolicy):
        return given
    if isinstance(given, Rollout):
        return UpdatePolicy(UpdateKind.ROLLOUT, rollout=given)
    if not isinstance(given, str):
        raise refused("update_policy", given, "must be text", *_UPDATES)
    word, _, bound = given.strip().partition(" ")
    bound = bound.strip()
    if word == UpdateKind.ROLLOUT:
        return UpdatePolicy(word, rollout=rollout(bound))
    if not bound:
        return UpdatePolicy(choice("update_policy", UpdateKind, word))
    if bound.isascii() and bound.isdigit():
        return UpdatePolicy(word, occurrences=int(bound))
    return UpdatePolicy(word, duration=bound)


def horizon(given: object) -> int | timedelta | None:
    """Read how many runs to come are written down, or `"30d"` for those within so long after the next one."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int):
        return length("horizon", given, MICROSECOND, "horizon=None, to write none")
    return whole("horizon", given, 1, MOST_COMING, 'horizon="30d", for those of a time', "horizon=None, to write none")


@value(frozen=True)
class Retention:
    """How long ended occurrences are kept; None means for ever.

    `success` is for what ended well or was skipped, `failure` for the rest. The newest
    `keep_last` of a job stay, however old.
    """

    success: timedelta | None
    failure: timedelta | None
    keep_last: int

    def __init__(
        self,
        success: timedelta | str | None = timedelta(days=30),
        failure: timedelta | str | None = timedelta(days=90),
        keep_last: int = 20,
    ) -> None:
        fill(
            self,
            success=None if success is None else length("retention success", success, timedelta(0)),
            failure=None if failure is None else length("retention failure", failure, timedelta(0)),
            keep_last=whole("retention keep_last", keep_last),
        )

    def as_data(self) -> object:
        """Return the mapping of all three."""
        return {
            "success": None if self.success is None else format_duration(self.success),
            "failure": None if self.failure is None else format_duration(self.failure),
            "keep_last": self.keep_last,
        }


def retention(given: object) -> Retention:
    """Read `{"success": "7d", "failure": "90d", "keep_last": 20}`; what is left out stays as usual."""
    if isinstance(given, Retention):
        return given
    if isinstance(given, Mapping):
        return Retention(**keys("retention", given, tuple(_RETENTION_KEYS)))
    raise refused("retention", given, "must say what is kept", 'retention={"success": "30d", "failure": "90d"}')


def _bounds(count: object, age: object, is_window: bool) -> dict[str, object]:
    """The two bounds of `bounded_window`; the other strategies have none, and zero would keep nothing."""
    if not is_window and (count is not None or age is not None):
        bound = "max_occurrences" if count is not None else "max_duration"
        raise InvalidPolicies(
            "", f"recovery takes {bound} only with bounded_window", ('"bounded_window"', f"no {bound}")
        )
    none = 'recovery="mark_as_missed", to run none'
    return {
        "max_occurrences": None if count is None else whole("recovery max_occurrences", count, 1, LARGEST, none),
        "max_duration": None if age is None else length("recovery max_duration", age, MICROSECOND, none),
    }


# ------------------------------------------------------------------------------------------------------------ readers

_STRATEGY: Schema = {"enum": [str(word) for word in Strategy]}
_RECOVERY_KEYS: dict[str, Schema] = {
    "strategy": described(_STRATEGY, "Which late instants still run."),
    "max_occurrences": described(count(1).schema, "With bounded_window: at most so many, the newest."),
    "max_duration": described(DURATION, "With bounded_window: none that is older than this."),
}
_RETENTION_KEYS: dict[str, Schema] = {
    "success": described(or_null(DURATION), "How long to keep what ended well or was skipped; null keeps it for ever."),
    "failure": described(or_null(DURATION), "How long to keep the rest; null keeps it for ever."),
    "keep_last": described(count(0).schema, "How many of a job's newest occurrences to keep, however old they are."),
}

TIMEZONE = PolicyReader(
    own(timezone), {**TEXT, "examples": ["Europe/Berlin", "UTC"]}, "str | tzinfo", python='ZoneInfo("Europe/Berlin")'
)
DESCRIPTION = PolicyReader(own(description), {**TEXT, "maxLength": LONGEST_DESCRIPTION}, "str")
LATE_OVERLAP = one_of(LateOverlap, late_overlap)
PROTECTED = PolicyReader(
    own(protected), {"enum": [True, False, *map(str, Protected)]}, "ProtectedWord | bool", choices=Protected
)
UPDATE_POLICY = PolicyReader(
    own(update_policy),
    {
        "anyOf": [
            {"enum": [str(word) for word in UpdateKind if word is not UpdateKind.ROLLOUT]},
            {
                **TEXT,
                "pattern": "^(graceful|windowed|rollout) .+$",
                "examples": ["graceful 3", "windowed 30d", "rollout 10% 50% after 20 failures 1"],
            },
        ]
    },
    "UpdateKindWord | str | UpdatePolicy | Rollout",
    python="Rollout(share=0.1, after=20, max_failures=1)",
    choices=UpdateKind,
)
RECOVERY = PolicyReader(
    own(recovery),
    {"anyOf": [_STRATEGY, table(("strategy",), **_RECOVERY_KEYS)]},
    "StrategyWord | Recovery | Mapping[str, Any]",
    python='bounded_window(max_duration="6h")',
    choices=Strategy,
    base={"strategy": "bounded_window"},
)
ON_CREATE = PolicyReader(
    own(on_create),
    {
        "anyOf": [
            {"enum": [str(word) for word in FirstSight if word is not FirstSight.BACKFILL_FROM]},
            table(("backfill_from",), backfill_from=described(TEXT, "The instant of the past to begin at.")),
        ]
    },
    "FirstSightWord | OnCreate | Mapping[str, Any]",
    python='backfill_from("2026-01-31T00:00:00Z")',
    choices=FirstSight,
)
HORIZON = PolicyReader(
    own(horizon),
    {"anyOf": [count(1, most=MOST_COMING).schema, DURATION, {"type": "null"}]},
    "int | Duration",
    python="timedelta(days=30)",
    is_optional=True,
)
RETENTION = PolicyReader(own(retention), table((), **_RETENTION_KEYS), "Retention | Mapping[str, Any]", base={})
