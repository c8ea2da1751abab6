"""Rules that every store follows when it stores what jobs depend on."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from everytick.domain.dependencies import Dependency
from everytick.domain.job import Job
from everytick.domain.names import did_you_mean
from everytick.domain.schedule import Schedule
from everytick.errors import InvalidPolicies, shown

_COMPARED = 100
"""How many instants of each schedule are looked up in the other one."""


def unknown_dependency(job: str, name: str, known: Iterable[str]) -> InvalidPolicies:
    """Return the refusal of a dependency on a job that is not in service."""
    reason = f"depends_on '{shown(name)}': there is no such job in service{did_you_mean(name, known)}"
    return InvalidPolicies(job, reason, ("the name of a job that is stored before, or together with this one",))


def refuse_never_meeting(job: Job, dependency: Dependency, needed: Job, now: datetime) -> None:
    """Return unless the job depends on another for the same instant, and the two have no instant in common."""
    if dependency.within is not None or _share_instants(job, needed, now):
        return
    reason = (
        f"depends_on '{shown(dependency.job)}': that job has no instant in common with this one, "
        "and without `within` its run for the same instant counts"
    )
    instead = f'depends_on={{"job": "{dependency.job}", "within": "1h"}}, for a success in the last hour'
    raise InvalidPolicies(job.name, reason, (instead, "the same schedule for both"))


def _share_instants(job: Job, needed: Job, now: datetime) -> bool:
    """Whether some instants that come soon are named by both; also where one of them names none, or raises."""
    try:
        own, other = job.bound(None), needed.bound(None)
        return own.next_after(now) is None or _meets(own, other, now) or _meets(other, own, now)
    except Exception:  # noqa: BLE001, a schedule of a user's own may raise anything
        return True


def _meets(one: Schedule, other: Schedule, now: datetime) -> bool:
    found = one.next_after(now)
    for _ in range(_COMPARED):
        if found is None or other.last_at(found) == found:
            return found is not None
        found = one.next_after(found)
    return False


def refuse_circles(changed: Iterable[str], needed_by: Callable[[str], Iterable[str]]) -> None:
    """Return if none of the changed jobs depends on itself, directly or through others.

    All jobs are named. `needed_by` returns the names of those on which one depends.
    """
    edited, seen = sorted(changed), set[str]()
    for name in edited:
        circle = _circle(name, needed_by, seen)
        if circle is not None:
            first = next((place for place, name in enumerate(circle) if name in edited), 0)
            told = [*circle[first:], *circle[:first], circle[first]]
            path = " → ".join(f"'{shown(name, 40)}'" for name in told)
            raise InvalidPolicies(
                told[0], f"depends_on goes in a circle: {path}", ("leave out one depends_on of these",)
            )


def _circle(start: str, needed_by: Callable[[str], Iterable[str]], seen: set[str]) -> Sequence[str] | None:
    """Return a circle that can be reached from here, in the order of dependencies; `seen` are names without one."""
    path: list[str] = []
    open_: list[list[str]] = [[start]]
    while open_:
        if not open_[-1]:
            open_.pop()
            if path:
                seen.add(path.pop())
            continue
        name = open_[-1].pop(0)
        if name in path:
            return path[path.index(name) :]
        if name not in seen:
            path.append(name)
            open_.append(sorted(needed_by(name)))
    return None
