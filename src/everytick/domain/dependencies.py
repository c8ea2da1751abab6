"""depends_on: an occurrence runs only if other jobs have succeeded, for the same instant or within a given time."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from enum import StrEnum
from itertools import pairwise

from everytick.domain.durations import MICROSECOND, format_duration
from everytick.domain.names import checked_name
from everytick.domain.policy_checks import choice, fill, keys, length, refused, switch
from everytick.domain.policy_readers import DURATION, SWITCH, TEXT, PolicyReader, Schema, described, table
from everytick.domain.values import value
from everytick.errors import InvalidPolicies, shown

LONGEST_WAIT = timedelta(days=1)
"""How long an occurrence waits at most for a job it depends on, where no deadline is named."""

_EXAMPLES = ('depends_on="extract"', 'depends_on={"job": "extract", "within": "1h"}')


class Otherwise(StrEnum):
    """What an occurrence does as long as a job it depends on has not succeeded."""

    WAIT = "wait"
    SKIP = "skip"


@value(frozen=True)
class Dependency:
    """One job that has to succeed before.

    Without `within`, a run of that job for the same instant counts; with it, any success that
    ended no longer ago. `otherwise` says whether to wait for people too, who may repeat what
    failed. `deadline` is how long to wait at most; without it, until the next instant of the job
    that waits and no longer than a day. With `requests`, runs that people ask for wait too.
    """

    job: str
    within: timedelta | None
    otherwise: Otherwise
    deadline: timedelta | None
    requests: bool

    def __init__(
        self,
        job: str,
        within: timedelta | str | None = None,
        otherwise: str = Otherwise.WAIT,
        deadline: timedelta | str | None = None,
        requests: bool = False,
    ) -> None:
        fill(
            self,
            job=checked_name("job of depends_on", job),
            within=None if within is None else length("depends_on within", within, MICROSECOND),
            otherwise=choice("depends_on otherwise", Otherwise, otherwise),
            deadline=None if deadline is None else length("depends_on deadline", deadline, MICROSECOND),
            requests=switch("depends_on requests", requests),
        )
        if self.within is not None and self.otherwise is Otherwise.SKIP and self.deadline is not None:
            reason = "depends_on with within and otherwise skip decides at once, so it takes no deadline"
            raise InvalidPolicies("", reason, ('otherwise="wait", to wait until the deadline', "no deadline"))

    def describe(self) -> str:
        """Say it in English."""
        when = "for the same instant" if self.within is None else f"within {format_duration(self.within)}"
        until = "" if self.deadline is None else f", waits up to {format_duration(self.deadline)}"
        else_ = ", else skipped" if self.otherwise is Otherwise.SKIP else ""
        return f"{self.job} {when}{else_}{until}" + (", requests too" if self.requests else "")

    def as_data(self) -> object:
        """Return the name, or the mapping of all that is not as usual."""
        entry: dict[str, object] = {"job": self.job}
        if self.within is not None:
            entry["within"] = format_duration(self.within)
        if self.otherwise is not Otherwise.WAIT:
            entry["otherwise"] = str(self.otherwise)
        if self.deadline is not None:
            entry["deadline"] = format_duration(self.deadline)
        if self.requests:
            entry["requests"] = True
        return entry if len(entry) > 1 else self.job


def depends_on(given: object) -> tuple[Dependency, ...]:
    """Read one dependency or several, each a name, a mapping or a `Dependency`, in the order of names; None is none."""
    if given is None:
        return ()
    if isinstance(given, (str, Mapping, Dependency)):
        return (_dependency(given),)
    if isinstance(given, Iterable) and not isinstance(given, bytes):
        dependencies = [_dependency(upstream) for upstream in given]
        names = sorted(dependency.job for dependency in dependencies)
        for one, other in pairwise(names):
            if one == other:
                raise refused("depends_on", one, "is named twice", "one entry for each job")
        return tuple(sorted(dependencies, key=lambda dependency: dependency.job))
    raise refused("depends_on", given, "must name a job, or several", *_EXAMPLES)


def _dependency(given: object) -> Dependency:
    if isinstance(given, Dependency):
        return given
    if isinstance(given, str):
        return Dependency(given)
    if isinstance(given, Mapping):
        return Dependency(**keys("depends_on", given, tuple(_KEYS), ("job",)))
    raise refused("depends_on", shown(given), "does not name a job", *_EXAMPLES)


_KEYS: dict[str, Schema] = {
    "job": described(TEXT, "The name of the job that has to succeed."),
    "within": described(DURATION, "A success no longer ago than this counts. Without it, one for the same instant."),
    "otherwise": described(
        {"enum": [str(word) for word in Otherwise]}, "What to do as long as it has not succeeded; usually wait."
    ),
    "deadline": described(
        DURATION, "How long to wait at most. Without it, until the job's own next instant, and at most a day."
    ),
    "requests": described(SWITCH, "Whether runs that people ask for wait too; usually they do not."),
}
_ONE: Schema = {"anyOf": [TEXT, table(("job",), **_KEYS)]}

DEPENDS_ON = PolicyReader(
    lambda key, given: depends_on(given),
    {"anyOf": [*_ONE["anyOf"], {"type": "array", "items": _ONE}, {"type": "null"}]},
    "str | Dependency | Mapping[str, Any] | Iterable[str | Dependency | Mapping[str, Any]]",
    python='Dependency("extract", within="1h")',
    base={"job": "extract"},
    is_optional=True,
)
