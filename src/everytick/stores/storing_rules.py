"""Rules that every store follows when it stores a definition, a request or a plan."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise, takewhile

from everytick.domain import ids
from everytick.domain.changes import Put
from everytick.domain.config import Level, Overrides, Settings
from everytick.domain.decisions import Creation
from everytick.domain.durations import MICROSECOND
from everytick.domain.job import Job
from everytick.domain.policies import FirstSight
from everytick.domain.snapshots import Edition, JobSnapshot, Request
from everytick.domain.upcoming import in_force, next_run
from everytick.domain.updates import settled, updated
from everytick.errors import Conflict, TooManyEditions, shown
from everytick.schedules.timezones import calendar_of
from everytick.stores.base import MAX_EDITIONS

NOTHING_TO_KEEP = "canceled: the occurrence it replays was forgotten before its results could be kept"
"""The reason of a replay that ends because the results it had to keep were deleted. It must not run the tasks again."""


def updated_by(snapshot: JobSnapshot, change: Put | None, job: Job, now: datetime) -> tuple[Edition, ...]:
    """Return the editions that this definition adds, by its own update policy or that of the change."""
    if change is not None and change.verdict is not None:
        return settled(snapshot, change.verdict, now)
    policy = job.settings.update_policy if change is None or change.policy is None else change.policy
    current = in_force(snapshot.editions, now)
    calendar = calendar_of(current.schedule, current.settings.timezone)
    lasts = change is not None and is_lasting(change)
    return updated(snapshot, job, policy, now, calendar, is_lasting=lasts)


def is_lasting(change: Put) -> bool:
    """Whether the change says itself that its definition is to stay."""
    return change.verdict is not None or (change.policy is not None and change.policy.is_lasting)


def has_room(waiting: int, job: Job, adding: int = 1) -> bool:
    """Whether so many more versions may wait for a plan. A disabled one leaves room for one that enables the job."""
    return waiting + adding - 1 < _most(job)


def refuse_edit(name: str, waiting: int, job: Job, adding: int = 1) -> None:
    """Raise TooManyEditions if no further version may wait for a plan."""
    if not has_room(waiting, job, adding):
        raise TooManyEditions(name, _most(job))


def name_taken(name: str) -> str:
    """Return the sentence that refuses this name for a job."""
    return f"there is a job named '{shown(name)}' already: remove or rename it first"


def _most(job: Job) -> int:
    return MAX_EDITIONS if job.enabled else MAX_EDITIONS - 1


def forgettable(waiting: Sequence[Edition], now: datetime) -> int:
    """Return how many of the oldest versions need not be kept, because the next version names the same instants.

    Their other settings no longer matter: the version in force decides those.
    """
    alike = takewhile(
        lambda pair: is_in_force(pair[1], now) and _names(pair[0].job) == _names(pair[1].job), pairwise(waiting)
    )
    return sum(1 for _ in alike)


def is_in_force(edition: Edition, at: datetime) -> bool:
    """Whether the edition has come into force, or a later one instead of it."""
    return edition.in_force_after is None or edition.in_force_after <= at


def _names(job: Job) -> tuple[object, ...]:
    return job.schedule, job.enabled, job.settings.start, job.settings.end


def refuse_purge(name: str, removed_at: object, held: int) -> None:
    """Raise Conflict unless the job is removed and no node owns an occurrence of it. `held` counts those."""
    if removed_at is None:
        raise Conflict(f"job '{shown(name)}' is in service: remove it before it is purged")
    if held:
        raise Conflict(
            f"job '{shown(name)}' is removed, and {held} of its occurrences still run: "
            "cancel them or wait for their end, then purge it"
        )


def under_id(job: Job, id_: str) -> Job:
    """Return the definition with the id that the store has for the job. A renamed job keeps the id of its old name."""
    if job.id == id_:
        return job
    tasks = tuple(replace(task, job_id=id_, id=ids.task_id(id_, task.name)) for task in job.tasks)
    return replace(job, id=id_, tasks=tasks)


def as_named(job: Job, name: str) -> Job:
    """Return the definition with the name that its job has now. A job removed long ago may have lost its own name."""
    return job if job.name == name else replace(job, name=name)


def in_force_at(editions: Sequence[Edition], at: datetime) -> Edition:
    """Return the edition that names the instants at this moment. At the moment of an edit that is the old edition."""
    since = [edition for edition in editions if edition.in_force_after is None or edition.in_force_after < at]
    return since[-1] if since else editions[0]


def first_run(job: Job, now: datetime) -> datetime | None:
    """Return when a job that is created now runs first."""
    made = replace(job, created_at=now)
    return shown_next_run(JobSnapshot(job.id, 1, 1, now, (Edition(made),)), now)


def shown_next_run(snapshot: JobSnapshot, now: datetime) -> datetime | None:
    """Return when the job runs next, for people. Return None if its schedule raises.

    The planner delays such a job and logs the reason. People must still be able to edit it.
    """
    try:
        return next_run(snapshot, now)
    except Exception:  # noqa: BLE001, a schedule of a user's own may raise anything
        return None


def first_watermark(job: Job, now: datetime) -> datetime:
    """Return the first watermark of a new job (C-08). No instant at or before it is ever planned."""
    begin = job.settings.on_create
    match begin.begin:
        case FirstSight.BACKFILL_FROM:
            assert begin.since is not None, "backfill_from says since when"
            return begin.since - MICROSECOND
        case FirstSight.IF_MATCHING_NOW:
            return now.replace(second=0, microsecond=0) - MICROSECOND
        case _:
            return now


def as_stored(newest: Edition, request: Request, now: datetime) -> Request:
    """Return the request as it is stored: requested not later than now, without a payload equal to the job's own.

    While a version is still to come, the payload is kept: it is not known by which one the run is made.
    """
    if request.requested_at > now:
        request = replace(request, requested_at=now)
    if request.payload is None or newest.has_waited or request.payload != newest.job.settings.payload:
        return request
    return replace(request, payload=None)


def own_overrides(creation: Creation, settings: Settings) -> Overrides:
    """Return the overrides of an occurrence: those it was amended with, and a payload that is not the job's."""
    items = dict(creation.overrides.items) if creation.overrides is not None else {}
    items.pop("payload", None)
    if creation.payload is not None and creation.payload != settings.payload:
        items["payload"] = creation.payload
    return Overrides(Level.OCCURRENCE, tuple(sorted(items.items())))
