"""When a new version of a job comes into force: at once, after what is scheduled already, or for a while.

A store asks this under the lock of the job, with its own time, and keeps the moments with the versions. From then on
they are facts: `plan` and every look ahead read them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo

from everytick.domain.config import Level, Overrides, Settings
from everytick.domain.durations import MICROSECOND
from everytick.domain.job import Job, same_definition
from everytick.domain.policies import UpdateKind, UpdatePolicy
from everytick.domain.rollouts import NEVER, RolloutVerdict, Way
from everytick.domain.snapshots import Edition, JobSnapshot
from everytick.domain.upcoming import editions_to_come, in_force, trial_of, upcoming
from everytick.errors import InvalidPolicies

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_PERIODS = (
    (timedelta(minutes=1), "minute"),
    (_HOUR, "hour"),
    (_DAY + _HOUR, "day"),
    (7 * _DAY + _HOUR, "week"),
    (31 * _DAY + _HOUR, "month"),
)
"""The longest gap between two runs of which one period has one. A day may have 25 hours."""


def updated(
    snapshot: JobSnapshot,
    job: Job,
    policy: UpdatePolicy,
    now: datetime,
    calendar: tzinfo = UTC,
    *,
    is_lasting: bool = False,
) -> tuple[Edition, ...]:
    """Return the editions to add for this definition, in the order of their versions; their jobs have no number yet.

    `calendar` is the zone of the job's schedule, by which periods begin and end. A windowed update adds the version
    that is in force in the window, and what is in force afterwards: `follows` is then 0, for the first of them.
    With `is_lasting` the definition is to stay, also if it is on trial.
    """
    current, later = in_force(snapshot.editions, now), editions_to_come(snapshot.editions, now)
    trial = trial_of(snapshot.editions)
    if _is_alike(asked_edition(snapshot.editions, now).job, job) and not (trial is not None and is_lasting):
        return _carried(current, [*later, trial] if trial is not None else later, job, now)
    if current.settings.depends_on != job.settings.depends_on:
        return _depending(job, policy, now)
    if policy.kind is UpdateKind.IMMEDIATE or snapshot.retire_at is not None or not (job.enabled and current.enabled):
        return (Edition(job, now),)
    if policy.kind is UpdateKind.WINDOWED:
        return _windowed(snapshot, job, policy, now, calendar)
    if policy.rollout is not None:
        return (Edition(job, NEVER, rollout=policy.rollout),)
    if _names(current) == _names(job):
        # No instant moves: there is nothing to wait for.
        return (Edition(job, now),)
    return (Edition(job, _end(snapshot, policy, now, calendar) or now),)


def settled(snapshot: JobSnapshot, verdict: RolloutVerdict, now: datetime) -> tuple[Edition, ...]:
    """Return the edition that the outcomes of a rollout have decided: the next stage, the version itself, or the old.

    A rolled-back version follows the version on trial, so code or a file that still says it changes nothing.
    """
    trial = trial_of(snapshot.editions)
    assert trial is not None, f"version {verdict.version} is on trial"
    assert trial.rollout is not None, "it has a stage"
    if verdict.way is Way.BACK:
        return (Edition(in_force(snapshot.editions, now), now, follows=trial.job.version),)
    if trial.rollout.rest is None:
        return (Edition(trial.job, now),)
    return (Edition(trial.job, NEVER, rollout=trial.rollout.rest),)


def asked_edition(editions: Iterable[Edition], now: datetime) -> Edition:
    """Return the edition that people asked for last: the newest, or that of a window which is still open."""
    known = {edition.job.version: edition for edition in editions}
    newest = known[max(known)]
    if newest.follows is None or newest.follows not in known:
        return newest
    until = known[newest.follows + 1].in_force_after
    return known[newest.follows] if until is not None and until > now else newest


def _depending(job: Job, policy: UpdatePolicy, now: datetime) -> tuple[Edition, ...]:
    """What a job depends on is followed at once, by other jobs too: an edit of it neither waits nor ends by itself."""
    if policy.kind in (UpdateKind.WINDOWED, UpdateKind.ROLLOUT):
        raise InvalidPolicies(
            job.name,
            f"update_policy '{policy}' may end by itself, and what a job depends on is followed for good",
            ('policy="immediate" for an edit of depends_on', "depends_on as it is"),
        )
    return (Edition(job, now),)


def _windowed(
    snapshot: JobSnapshot, job: Job, policy: UpdatePolicy, now: datetime, calendar: tzinfo
) -> tuple[Edition, ...]:
    """Return the version, what was in force before it at the window's end, and what was to come after that."""
    inside = replace(snapshot, editions=(Edition(job),), watermark=max(now, snapshot.watermark))
    until = _end(inside, policy, now, calendar)
    if until is None:
        is_paused = any(pause.until is None for pause in snapshot.pauses)
        why = "the job is paused until it is resumed" if is_paused else "the schedule names none to come"
        raise InvalidPolicies(
            job.name,
            f"update_policy '{policy}' counts runs, and {why}",
            ('update_policy="windowed 30d", to say how long', 'update_policy="immediate"'),
        )
    before = in_force(snapshot.editions, until)
    later = editions_to_come(snapshot.editions, until)
    return (
        Edition(job, now),
        Edition(switched(before, job), until, follows=0),
        *(Edition(switched(edition.job, job), edition.in_force_after, follows=0) for edition in later),
    )


def _carried(current: Job, later: Sequence[Edition], job: Job, now: datetime) -> tuple[Edition, ...]:
    """Return what is in force and what is to come once more, with another name, owner or switch: no moment changes."""
    return (
        Edition(switched(current, job), now),
        *(
            Edition(
                switched(edition.job, job),
                edition.in_force_after,
                follows=None if edition.follows is None else 0,
                rollout=edition.rollout,
            )
            for edition in later
        ),
    )


def _is_alike(newest: Job, job: Job) -> bool:
    """Whether the definition differs from the one asked for last only in its name, its owner and whether it runs."""
    return same_definition(switched(newest, job), job)


def switched(job: Job, like: Job) -> Job:
    """Return the definition with the name, the owner and the switch of another."""
    if job.enabled != like.enabled or job.overrides.get("enabled") != like.overrides.get("enabled"):
        given, level = like.overrides.get("enabled"), like.settings.origin("enabled")
        items = [item for item in job.overrides.items if item[0] != "enabled"]
        if "enabled" in like.overrides:
            items = sorted([*items, ("enabled", given)], key=lambda item: item[0])
        settings = _with_switch(job.settings, like.enabled, level)
        tasks = tuple(replace(task, settings=_with_switch(task.settings, like.enabled, level)) for task in job.tasks)
        job = replace(job, overrides=Overrides(Level.JOB, tuple(items)), settings=settings, tasks=tasks)
    if (job.name, job.owner) == (like.name, like.owner):
        return job
    return replace(job, name=like.name, owner=like.owner)


def _with_switch(settings: Settings, enabled: bool, level: Level) -> Settings:
    origins = dict(settings.origins)
    origins.pop("enabled", None)
    if level is not Level.DEFAULT:
        origins["enabled"] = level
    return replace(settings, enabled=enabled, origins=tuple(sorted(origins.items())))


def _names(job: Job) -> tuple[object, ...]:
    """What decides which instants there are."""
    return job.schedule, job.settings.start, job.settings.end


# -------------------------------------------------------------------------------------------------------------- moments


def _end(snapshot: JobSnapshot, policy: UpdatePolicy, now: datetime, calendar: tzinfo) -> datetime | None:
    """Return the moment through which what is in force stays: the bound of the policy. None if no run is to come."""
    if policy.duration is not None:
        return now + policy.duration
    assert policy.occurrences is not None, f"{policy} has a bound"
    runs = upcoming(snapshot, now, policy.occurrences + 1)
    if not runs:
        return None
    if len(runs) <= policy.occurrences:
        # The rule ends with this run.
        return runs[-1]
    return period_end(runs[-2], runs[-1] - runs[-2], calendar)


def period_end(run: datetime, gap: timedelta, calendar: tzinfo) -> datetime:
    """Return the last moment of the period of a run: the minute, hour, day, week, month or year that has one of them.

    A daily job at 05:00 that moves to 06:00 so has one run on each day, and not two on the first.
    """
    unit = next((word for longest, word in _PERIODS if gap <= longest), "year")
    wall = run.astimezone(calendar)
    begin = wall.replace(tzinfo=None, second=0, microsecond=0, fold=0)
    match unit:
        case "minute":
            end = begin + timedelta(minutes=1)
        case "hour":
            end = begin.replace(minute=0) + _HOUR
        case "day":
            end = begin.replace(hour=0, minute=0) + _DAY
        case "week":
            end = begin.replace(hour=0, minute=0) + (7 - begin.weekday()) * _DAY
        case "month":
            end = (begin.replace(day=1, hour=0, minute=0) + 32 * _DAY).replace(day=1)
        case _:
            end = begin.replace(year=begin.year + 1, month=1, day=1, hour=0, minute=0)
    # An hour that the clocks repeat has no later end than its first pass: never before the run itself.
    return max(end.replace(tzinfo=calendar).astimezone(UTC) - MICROSECOND, run)


def numbered(editions: Sequence[Edition], newest: int, by: str) -> list[Edition]:
    """Return the editions with the numbers of their versions, counted on from the newest one, and who wrote them."""
    return [
        Edition(
            replace(edition.job, version=newest + 1 + place),
            edition.in_force_after,
            by,
            # 0 is the first of these.
            newest + 1 if edition.follows == 0 else edition.follows,
            edition.rollout,
        )
        for place, edition in enumerate(editions)
    ]


def is_asked(
    editions: Sequence[Edition], job: Job, now: datetime, *, is_lasting: bool = False, is_named: bool = False
) -> bool:
    """Whether this definition was asked for last, so that storing it again changes nothing.

    `editions` are the newest and, where it follows a window, that of the window and the one after it. After a window
    both count: what it was for, which a file or code still says, and what is in force again. With `is_lasting` the
    definition is to stay: then a window is no reason to leave it. `is_named` says that a policy was named with it: then
    what was rolled back is tried again.
    """
    last_asked, newest = asked_edition(editions, now), max(editions, key=lambda edition: edition.job.version)
    if newest.rollout is not None and is_lasting:
        return False
    if last_asked is not newest:
        return same_definition(last_asked.job, job) and not is_lasting
    if same_definition(newest.job, job):
        return True
    windowed = [
        edition.job
        for edition in editions
        if edition.job.version == newest.follows and not (is_named and edition.rollout is not None)
    ]
    return not is_lasting and any(same_definition(switched(edition, newest.job), job) for edition in windowed)
