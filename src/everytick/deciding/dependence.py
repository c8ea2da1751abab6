"""depends_on: whether the jobs on which an occurrence depends have succeeded, and how long it waits for them.

Nothing is remembered: each plan judges all that is in line anew. An occurrence of a job with
`depends_on` is first put in line and judged by the next plan, whose snapshot names it: so what the
snapshot knows of the other jobs is never older than the occurrence itself.
"""

from collections.abc import Iterable
from datetime import datetime

from everytick.domain.dependencies import LONGEST_WAIT, Dependency, Otherwise
from everytick.domain.durations import format_duration
from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import Active, Dependence, InLine, JobSnapshot, Upstream, UpstreamRun
from everytick.domain.upcoming import in_force, next_instant
from everytick.domain.values import value

_GONE = ("removed", "deleted", "disabled")
_NOTHING = Dependence()


@value
class Unmet:
    """What an occurrence waits for, and until when; `is_over` says that it waits no longer."""

    until: datetime
    is_over: bool
    said: str


def waits_for(depends_on: tuple[Dependency, ...], cause: Cause) -> tuple[Dependency, ...]:
    """Return the dependencies that an occurrence of this cause obeys: what people ask for obeys some or none."""
    return depends_on if cause is Cause.SCHEDULE else tuple(each for each in depends_on if each.requests)


def depends_on(snapshot: JobSnapshot, now: datetime) -> tuple[Dependency, ...]:
    """Return the jobs on which this one depends, by the version in force.

    The store follows those of the newest version. That is in force at once, unless a clock was set back or the plan is
    of an earlier moment: then what only the old version depends on is not known, and waits for the next plan.
    """
    return in_force(snapshot.editions, now).settings.depends_on


def unmet(snapshot: JobSnapshot, each: Active, now: datetime) -> Unmet | None:
    """Return what one in line still waits for, or None if every job it depends on has succeeded."""
    dependence = snapshot.dependence or _NOTHING
    known = next((place for place in dependence.in_line if place.id == each.id), None)
    place = known or InLine(each.id, now, each.scheduled_for)
    # What came late can have waited for nothing before it was created.
    since = place.created_at if each.late else each.line_at
    obeyed = waits_for(depends_on(snapshot, now), each.cause)
    found = [_missing(snapshot, dependence, dependency, place, since, now) for dependency in obeyed]
    return _together([each for each in found if each is not None])


def waiting_words(snapshot: JobSnapshot, cause: Cause, since: datetime, now: datetime) -> str:
    """Return the words for what a newcomer has to wait for, and until when."""
    found = waits_for(depends_on(snapshot, now), cause)
    until = min(deadline(snapshot, each, since) for each in found)
    return f"waits for {' and '.join(each.job for each in found)} until {until.isoformat()}"


def deadline(snapshot: JobSnapshot, dependency: Dependency, since: datetime) -> datetime:
    """Return when an occurrence gives up: after the deadline, or at the job's next instant and within a day."""
    if dependency.deadline is not None:
        return since + dependency.deadline
    following = next_instant(snapshot, since, idle=True)
    return since + LONGEST_WAIT if following is None else min(following, since + LONGEST_WAIT)


def _missing(
    snapshot: JobSnapshot,
    dependence: Dependence,
    dependency: Dependency,
    place: InLine,
    since: datetime,
    now: datetime,
) -> Unmet | None:
    until = deadline(snapshot, dependency, since)
    upstream = next((each for each in dependence.upstreams if each.name == dependency.job), None)
    if upstream is None:
        return Unmet(until, now >= until, f"on {dependency.job}: it is not known")
    run = next((each for each in upstream.runs if each.instant == place.instant), UpstreamRun(place.instant))
    at = _succeeded_at(dependency, upstream, run, now)
    if at is not None and (now < until or at <= until):
        return None
    is_over = now >= until or (dependency.otherwise is Otherwise.SKIP and _is_hopeless(dependency, upstream, run))
    return Unmet(until, is_over, _words(dependency, upstream, run))


def _succeeded_at(dependency: Dependency, upstream: Upstream, run: UpstreamRun, now: datetime) -> datetime | None:
    """Return the end of the success that counts, if there is one."""
    last = upstream.last_success
    if dependency.within is not None:
        return last.ended_at if last is not None and last.ended_at >= now - dependency.within else None
    if run.succeeded_at is None and last is not None and last.scheduled_for == run.instant:
        # Its run may have been deleted by retention, and its job remembers it.
        return last.ended_at
    return run.succeeded_at


def _is_hopeless(dependency: Dependency, upstream: Upstream, run: UpstreamRun) -> bool:
    """Whether it can succeed only if people repeat it; a success within a time is there or not."""
    if dependency.within is not None:
        return True
    is_decided = upstream.watermark is None or upstream.watermark >= run.instant or upstream.state in _GONE
    return is_decided and not run.is_active


def _words(dependency: Dependency, upstream: Upstream, run: UpstreamRun) -> str:
    """Say what is missing: the name, what its last success was or what became of its run, and why none may come."""
    name = f"on {dependency.job}" + (f" (now {upstream.called})" if upstream.called not in ("", dependency.job) else "")
    if dependency.within is not None:
        last = upstream.last_success
        when = "it has not succeeded yet" if last is None else f"its last success ended {last.ended_at.isoformat()}"
        said = f"{when}, and one in the last {format_duration(dependency.within)} counts"
    elif run.status is not None:
        said = f"its run for {run.instant.isoformat()} is {run.status}"
    elif upstream.watermark is not None and upstream.watermark >= run.instant:
        said = f"it has no run for {run.instant.isoformat()}"
    else:
        said = f"its run for {run.instant.isoformat()} is still to come"
    return f"{name}: {said}" + (f"; it is {upstream.state}" if upstream.state else "")


def _together(found: list[Unmet]) -> Unmet | None:
    """Return what several dependencies that are not met say together: the first that gives up decides."""
    if len(found) < 2:
        return found[0] if found else None
    over = [each for each in found if each.is_over]
    return Unmet(min(each.until for each in found), bool(over), " and ".join(each.said for each in over or found))


def first_deadline(found: Iterable[Unmet]) -> datetime | None:
    """Return when the first of them gives up."""
    return min((each.until for each in found), default=None)
