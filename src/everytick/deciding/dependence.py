"""depends_on: whether the jobs on which an occurrence depends have succeeded, and how long it waits for them.

Nothing is remembered: each plan judges the whole line anew. An occurrence of a job with
`depends_on` is first put in line. The next plan, whose snapshot names it, judges it: so what the
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
    """Return the dependencies that an occurrence of this cause obeys. A request obeys only those that say so."""
    return (
        depends_on if cause is Cause.SCHEDULE else tuple(dependency for dependency in depends_on if dependency.requests)
    )


def depends_on(snapshot: JobSnapshot, now: datetime) -> tuple[Dependency, ...]:
    """Return the jobs on which this one depends, by the version in force.

    A snapshot has the jobs of the newest version. If an older one is in force, since a clock was set back or the plan
    is of an earlier moment, a job that only the older one names is not known: the occurrence waits for the next plan.
    """
    return in_force(snapshot.editions, now).settings.depends_on


def unmet(snapshot: JobSnapshot, occurrence: Active, now: datetime) -> Unmet | None:
    """Return what one in line still waits for, or None if every job it depends on has succeeded."""
    dependence = snapshot.dependence or _NOTHING
    known = next((place for place in dependence.in_line if place.id == occurrence.id), None)
    place = known or InLine(occurrence.id, now, occurrence.scheduled_for)
    # A late occurrence waits from its creation on.
    since = place.created_at if occurrence.late else occurrence.line_at
    obeyed = waits_for(depends_on(snapshot, now), occurrence.cause)
    waits = [_missing(snapshot, dependence, dependency, place, since, now) for dependency in obeyed]
    return _together([wait for wait in waits if wait is not None])


def waiting_words(snapshot: JobSnapshot, cause: Cause, since: datetime, now: datetime) -> str:
    """Return the words for what a newcomer has to wait for, and until when."""
    obeyed = waits_for(depends_on(snapshot, now), cause)
    until = min(deadline(snapshot, dependency, since) for dependency in obeyed)
    return f"waits for {' and '.join(dependency.job for dependency in obeyed)} until {until.isoformat()}"


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
    upstream = next((job for job in dependence.upstreams if job.name == dependency.job), None)
    if upstream is None:
        return Unmet(until, now >= until, f"on {dependency.job}: it is not known")
    run = next((run for run in upstream.runs if run.instant == place.instant), UpstreamRun(place.instant))
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
    """Whether the job can succeed only if people run it again. A success within a time cannot come later."""
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


def _together(waits: list[Unmet]) -> Unmet | None:
    """Return what several dependencies that are not met say together: the first that gives up decides."""
    if len(waits) < 2:
        return waits[0] if waits else None
    over = [wait for wait in waits if wait.is_over]
    return Unmet(min(wait.until for wait in waits), bool(over), " and ".join(wait.said for wait in over or waits))


def first_deadline(waits: Iterable[Unmet]) -> datetime | None:
    """Return when the first of them gives up."""
    return min((wait.until for wait in waits), default=None)
