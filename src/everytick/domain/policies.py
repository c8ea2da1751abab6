"""The policies a definition can hold, each refusing nonsense at birth and naming the alternatives.

A policy is written the same way in Python, in a file and over HTTP: a word, a mapping
or one of the values here. `read` functions take whatever was written and return the
value; `as_data` gives the text or mapping that reads back equal. What a policy means is
decided in `deciding`; nothing here acts.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from everytick.domain.durations import format_duration, instant
from everytick.domain.names import checked_name
from everytick.domain.reading import INSTANT, LARGEST, choice, fill, keys, length, refused, whole
from everytick.domain.values import value
from everytick.errors import InvalidPolicies


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


class Change(StrEnum):
    """When a changed schedule replaces the old one."""

    IMMEDIATE = "immediate"
    GRACEFUL = "graceful"
    WINDOWED = "windowed"


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


def description(given: object) -> str:
    """Return free text for people, at most 10,000 characters."""
    if not isinstance(given, str):
        raise refused("description", given, "must be text")
    if len(given) > 10_000:
        raise refused("description", given, f"has {len(given):,} characters, and at most 10,000 are allowed")
    return given


def timezone(given: object) -> str:
    """Return the name of a time zone; whether there is such a zone is for the schedules to say."""
    if given is UTC:
        return "UTC"
    return checked_name("timezone", getattr(given, "key", given))


@value
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
        bounds = _bounds("recovery", max_occurrences, max_duration, kind is Strategy.BOUNDED_WINDOW, "bounded_window")
        fill(self, strategy=kind, **bounds)

    def as_data(self) -> object:
        """Return the word, or the mapping where there are bounds."""
        return _worded("strategy", self.strategy, self.max_occurrences, self.max_duration)


def bounded_window(max_occurrences: int | None = None, max_duration: timedelta | str | None = None) -> Recovery:
    """Keep the late instants of the last `max_duration`, and of these the newest `max_occurrences`."""
    return Recovery(Strategy.BOUNDED_WINDOW, max_occurrences, max_duration)


def recovery(given: object) -> Recovery:
    """Read `"execute_last"` or `{"strategy": "bounded_window", "max_duration": "6h"}`."""
    if isinstance(given, Recovery):
        return given
    if isinstance(given, Mapping):
        return Recovery(**keys("recovery", given, ("strategy", "max_occurrences", "max_duration"), ("strategy",)))
    return Recovery(choice("recovery", Strategy, given))


@value
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


@value
class UpdatePolicy:
    """When a changed schedule replaces the old one; `windowed` recomputes a horizon, 30 days unless said."""

    change: Change
    max_occurrences: int | None
    max_duration: timedelta | None

    def __init__(
        self,
        change: str = Change.IMMEDIATE,
        max_occurrences: int | None = None,
        max_duration: timedelta | str | None = None,
    ) -> None:
        kind = choice("update_policy", Change, change)
        if kind is Change.WINDOWED and max_occurrences is None and max_duration is None:
            max_duration = timedelta(days=30)
        bounds = _bounds("update_policy", max_occurrences, max_duration, kind is Change.WINDOWED, "windowed")
        fill(self, change=kind, **bounds)

    def as_data(self) -> object:
        """Return the word, or the mapping where there are bounds."""
        return _worded("change", self.change, self.max_occurrences, self.max_duration)


def update_policy(given: object) -> UpdatePolicy:
    """Read `"immediate"`, `"graceful"`, `"windowed"` or `{"change": "windowed", "max_occurrences": 10}`."""
    if isinstance(given, UpdatePolicy):
        return given
    if isinstance(given, Mapping):
        return UpdatePolicy(**keys("update_policy", given, ("change", "max_occurrences", "max_duration"), ("change",)))
    return UpdatePolicy(choice("update_policy", Change, given))


@value
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
        return Retention(**keys("retention", given, ("success", "failure", "keep_last")))
    raise refused("retention", given, "must say what is kept", 'retention={"success": "30d", "failure": "90d"}')


@value
class Dependency:
    """Another job that must have succeeded within the time before the instant."""

    job: str
    within: timedelta

    def __init__(self, job: str, within: timedelta | str = timedelta(hours=1)) -> None:
        fill(self, job=checked_name("depends_on", job), within=length("depends_on", within, INSTANT))

    def as_data(self) -> object:
        """Return the mapping `{"job": name, "within": duration}`."""
        return {"job": self.job, "within": format_duration(self.within)}


def depends_on(given: object) -> tuple[Dependency, ...]:
    """Read a job's name, a list of names or `{name: within}`; an hour unless said."""
    if isinstance(given, Mapping):
        found = [Dependency(job, within) for job, within in given.items()]
    elif isinstance(given, (str, Dependency)):
        found = [_dependency(given)]
    elif isinstance(given, Iterable) and not isinstance(given, bytes):
        found = [_dependency(item) for item in given]
    else:
        raise refused("depends_on", given, "must be a job's name or a list of names", 'depends_on={"extract": "2h"}')
    if len({one.job for one in found}) < len(found):
        raise refused("depends_on", given, "names a job twice")
    return tuple(sorted(found, key=lambda one: one.job))


def _dependency(given: object) -> Dependency:
    if isinstance(given, Dependency):
        return given
    if isinstance(given, Mapping):
        return Dependency(**keys("depends_on", given, ("job", "within"), ("job",)))
    return Dependency(checked_name("depends_on", given))


def _bounds(policy: str, count: object, age: object, bounded: bool, word: str) -> dict[str, object]:
    """The two bounds of a window; they make sense with one word only, and zero keeps nothing."""
    if not bounded and (count is not None or age is not None):
        bound = "max_occurrences" if count is not None else "max_duration"
        raise InvalidPolicies("", f"{policy} takes {bound} only with {word}", (f'"{word}"', f"no {bound}"))
    none = ('recovery="mark_as_missed", to run none',) if policy == "recovery" else ('update_policy="graceful"',)
    return {
        "max_occurrences": None if count is None else whole(f"{policy} max_occurrences", count, 1, LARGEST, *none),
        "max_duration": None if age is None else length(f"{policy} max_duration", age, INSTANT, *none),
    }


def _worded(key: str, word: StrEnum, count: int | None, age: timedelta | None) -> object:
    bounds = {"max_occurrences": count, "max_duration": None if age is None else format_duration(age)}
    kept = {name: bound for name, bound in bounds.items() if bound is not None}
    return {key: str(word), **kept} if kept else str(word)
