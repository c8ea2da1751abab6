"""Jobs: list them, read one, make one, change its definition."""

from typing import Annotated, Any

from fastapi import Header, Query, Request, Response

from everytick.access.people import Person, Role, tags_of
from everytick.answers.jobs import (
    breach_data,
    job_data,
    job_details,
    promise_details,
    record_data,
    upcoming_data,
)
from everytick.answers.occurrences import explanation_record
from everytick.answers.runs_to_come import preview_data
from everytick.answers.values import JobStatus, NodeReports
from everytick.answers.wire import data_of
from everytick.app import Everytick
from everytick.domain.config import UNSET, Level, policy_arguments
from everytick.domain.notices import OWNER as NOTICES
from everytick.stores.base import JobRecord
from everytick.web.api import bodies, models
from everytick.web.api.definitions import new_job, refuse_foreign_receivers
from everytick.web.api.hiding import explanation_shown_to, shown_to
from everytick.web.api.paging import USUAL_ITEMS, CursorParameter, Limit, page_after
from everytick.web.api.shapes import GivenMoment, Moment, Routes, done, told
from everytick.web.asking import Tick, Who
from everytick.web.known_jobs import by_name, known_jobs, name_of
from everytick.web.problems import Problem

routes = Routes("jobs")
router = routes.router

_NEXT_SHOWN = 5
"""Runs to come in the answer about one job."""

_BREACHES_SHOWN = 5
_MOST_RUNS = 1_000

Record = Annotated[
    str | None,
    Query(alias="with", pattern="^record$", description="`record` adds the definition.", examples=["record"]),
]
IfMatch = Annotated[
    str | None, Header(max_length=50, description="The ETag that was read: 412 if it is another.", examples=['"v3"'])
]
After = Annotated[GivenMoment, Query(examples=["2026-11-16T00:00:00Z"])]
Through = Annotated[GivenMoment, Query(examples=["2026-11-17T00:00:00Z"])]


@routes.question("/api/jobs", models.PageData[models.JobSummaryData])
async def list_jobs(
    request: Request,
    tick: Tick,
    who: Who,
    contains: Annotated[str | None, Query(max_length=200, description="Part of the name.", examples=["backup"])] = None,
    tag: Annotated[str | None, Query(max_length=200, examples=["crm"])] = None,
    failed: Annotated[bool, Query(description="Only those whose last occurrence did not end well.")] = False,
    broken: Annotated[bool, Query(description="Only those that have broken a promise.")] = False,
    all: Annotated[bool, Query(description="Also the jobs that send notices.")] = False,
    removed: Annotated[bool, Query(description="Also jobs that were removed.")] = False,
    with_record: Record = None,
    limit: Limit = USUAL_ITEMS,
    cursor: CursorParameter = None,
) -> Response:
    """List the jobs in the store, by name."""

    def is_meant(record: JobRecord) -> bool:
        return (
            (all or failed or record.job.owner != NOTICES)
            and (contains is None or contains.lower() in record.job.name.lower())
            and (tag is None or tag in record.job.settings.tags)
            and (not failed or record.ended_badly)
        )

    stored = by_name(await tick.jobs(removed=True)) if removed else (await known_jobs(request).listed()).by_name
    if broken:
        meant = [record for record in stored if is_meant(record)]
        known = await tick.statuses(meant)
        stored = [record for record in meant if record.job.id in known and known[record.job.id].breaches]
    some, following = page_after("jobs", stored, name_of, limit, cursor, is_meant)
    # Of this page alone: a store may have ten thousand jobs.
    statuses = await tick.statuses(some)
    reports = await tick.reports(some)
    items = [
        _summary(who, record, statuses.get(record.job.id) or _gone(record), reports, with_record)
        for record in some
        if record.job.id in statuses or record.removed_at is not None
    ]
    return told({"items": items, "cursor": following})


def _summary(
    who: Person, record: JobRecord, status: JobStatus, reports: NodeReports, with_record: str | None
) -> dict[str, Any]:
    more = {} if with_record is None else {"record": record_data(record)}
    found: dict[str, Any] = shown_to(who, job_data(record, status, reports) | more, _tags(record))
    return found


def _tags(record: JobRecord) -> tuple[str, ...]:
    """Return the tags by which grants name the job."""
    return tags_of(record.job.name, record.job.settings.tags)


def _gone(record: JobRecord) -> JobStatus:
    """Return the state of a removed job."""
    last = None if record.last_end is None else record.last_end.started_at
    job = record.job
    return JobStatus(
        name=job.name,
        version=job.version,
        is_active=False,
        is_paused=False,
        is_enabled=False,
        is_running=False,
        next_run=None,
        last_run=last,
        run_count=record.run_count,
        last_error=record.last_error,
        last_result=None if record.last_end is None else "failed" if record.ended_badly else "completed",
    )


@routes.question("/api/jobs/{job:name}", models.JobDetailsData)
async def read_job(job: str, tick: Tick, who: Who, with_record: Record = None) -> Response:
    """Read one job: definition, state, next runs, promises. The ETag is its version."""
    record = await tick.job(job)
    return told(await _details(tick, who, record, with_record), headers=_etag(record.job.version))


async def _details(tick: Everytick, who: Person, record: JobRecord, with_record: str | None) -> Any:
    name = record.job.name
    status, coming, past = await tick._summary(record, _NEXT_SHOWN, _BREACHES_SHOWN)
    waiting = (
        [proposal.id for proposal in await tick.proposals() if name in proposal.jobs] if record.job.is_protected else []
    )
    summary = job_data(record, status, await tick.reports([record]))
    details = job_details(record, [run.at for run in coming])
    data = summary | details | {"proposals": waiting} | promise_details(record, status, past)
    if with_record is not None:
        data["record"] = record_data(record)
    return shown_to(who, data, _tags(record))


def _etag(version: int) -> dict[str, str]:
    return {"etag": f'"v{version}"'}


def expected(if_match: str | None, given: int | None) -> int | None:
    """Return the version that the caller has read: of the header, or of the body."""
    if if_match is None or if_match.strip() == "*":
        return given
    digits = if_match.strip().removeprefix("W/").strip('"').removeprefix("v")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise Problem(412, "version_conflict", "If-Match is the ETag of no version of this job: read it again")
    return int(digits)


# --------------------------------------------------------------------------------------------------------- definitions


@routes.operation("/api/jobs", models.EditedData, status=201, role=Role.ADMIN)
async def create_job(body: bodies.NewJobBody, tick: Tick) -> Response:
    """Make a new job, owned by the API.

    It may only name functions that this service's application registers, and calls that its setting `allow_calls`
    allows. A job of this name must not exist.
    """
    job = new_job(tick, body.name, body.definition)
    if any(record.job.name == job.name for record in await tick.jobs()):
        raise Problem(409, "job_exists", f"there is a job '{job.name}' already: change it with PATCH")
    await tick.apply([job], confirmed=body.confirm)
    record = await tick.job(job.name)
    return told({"version": record.job.version}, 201, _etag(record.job.version))


@routes.operation("/api/jobs/{job:name}", models.EditedData | models.PreviewData, role=Role.ADMIN, method="PATCH")
async def update_job(job: str, body: bodies.UpdateBody, tick: Tick, if_match: IfMatch = None) -> Response:
    """Change the schedule or single policies of a job; with `dry_run` answer with a preview.

    412 if it was edited since the version of If-Match, with what others changed and what this edit would.
    """
    policies = policy_arguments(Level.JOB, {**body.policies, **dict.fromkeys(body.unset, UNSET)}, job)
    refuse_foreign_receivers(tick, policies)
    if body.dry_run:
        seen = await tick.preview_update(job, body.schedule, policy=body.policy, detach=body.detach, **policies)
        return told(preview_data(seen))
    version = await tick.update(
        job,
        body.schedule,
        policy=body.policy,
        expected_version=expected(if_match, body.expected_version),
        plan=body.plan,
        detach=body.detach,
        confirmed=body.confirm,
        **policies,
    )
    return told({"version": version}, headers=_etag(version))


@routes.operation("/api/jobs/{job:name}", None, status=204, role=Role.ADMIN, method="DELETE")
async def remove_job(
    job: str,
    tick: Tick,
    purge: Annotated[bool, Query(description="Forget its history too.")] = False,
    expected_version: Annotated[int | None, Query(ge=1, lt=2**31, description="The same as If-Match.")] = None,
    confirm: Annotated[bool, Query(description="Carry out what is guarded.")] = False,
    if_match: IfMatch = None,
) -> Response:
    """Take a job out of service; its history is kept unless `purge` says otherwise.

    412 if it was edited since the version of If-Match, with what others changed.
    """
    await tick.remove(job, purge=purge, expected_version=expected(if_match, expected_version), confirmed=confirm)
    return done()


@routes.operation("/api/jobs/{job:name}/rename", None, status=204, role=Role.ADMIN)
async def rename_job(job: str, body: bodies.RenameBody, tick: Tick, if_match: IfMatch = None) -> Response:
    """Give a job another name; its id, watermark and history stay.

    412 if it was edited since the version of If-Match, with what others changed.
    """
    version = expected(if_match, body.expected_version)
    await tick.rename(job, body.to, expected_version=version, detach=body.detach, confirmed=body.confirm)
    return done()


@routes.operation("/api/jobs/{job:name}/enable", models.ChangedData)
async def enable_job(job: str, body: bodies.ConfirmedBody, tick: Tick) -> Response:
    """Let a disabled job run again, from its next instant on."""
    return told({"changed": await tick.enable(job, confirmed=body.confirm)})


@routes.operation("/api/jobs/{job:name}/disable", models.ChangedData)
async def disable_job(job: str, body: bodies.ConfirmedBody, tick: Tick) -> Response:
    """Disable a job: no scheduled runs and no triggers until it is enabled."""
    return told({"changed": await tick.disable(job, confirmed=body.confirm)})


# ----------------------------------------------------------------------------------------------------------- questions


@routes.question("/api/jobs/{job:name}/next", list[models.UpcomingData])
async def next_runs(
    job: str,
    tick: Tick,
    n: Annotated[int, Query(ge=1, le=10_000, description="How many at most.", examples=[10])] = 10,
    skipped: Annotated[bool, Query(description="Also instants that a person has skipped.")] = False,
) -> Response:
    """Return the next runs of a job, with what people did to them."""
    return told([upcoming_data(run, job) for run in await tick.upcoming(job, n, skipped=skipped)])


@routes.question("/api/jobs/{job:name}/instants", list[Moment])
async def job_instants(
    job: str,
    tick: Tick,
    after: After,
    through: Through,
    limit: Annotated[int, Query(ge=1, le=10_000, description="How many at most.", examples=[100])] = _MOST_RUNS,
) -> Response:
    """Return the instants in `(after, through]` that the job's schedule names, whether they run or not."""
    return told(await tick.instants(job, after, through, limit))


@routes.question("/api/jobs/{job:name}/explanation", models.ExplanationData)
async def explain_instant(job: str, tick: Tick, who: Who, at: Annotated[GivenMoment, Query()]) -> Response:
    """Explain what happened to one instant of a job, or will happen, and why."""
    found = await tick.explain(job, at)
    error = None if found.occurrence is None else found.occurrence.error
    tags = await past_tags(tick, job)
    return told(explanation_shown_to(who, explanation_record(found), tags, error))


async def past_tags(tick: Everytick, job: str) -> tuple[str, ...]:
    """Return the tags by which grants name a job, which may be removed or have another name by now: then none."""
    named = [record for record in await tick.jobs(removed=True) if record.job.name == job]
    # A removed job may have had the name, and other tags: the one in service counts.
    named.sort(key=lambda record: record.removed_at is not None)
    return _tags(named[0]) if named else ()


@routes.question("/api/jobs/{job:name}/breaches", list[models.JobBreachData])
async def job_breaches(
    job: str,
    tick: Tick,
    is_open: Annotated[bool, Query(description="Only those that still are.")] = False,
    limit: Limit = USUAL_ITEMS,
) -> Response:
    """Return the promises that a job has broken, newest first."""
    return told(await _breaches(tick, job, is_open, limit))


@routes.question("/api/breaches", list[models.JobBreachData])
async def all_breaches(
    tick: Tick,
    is_open: Annotated[bool, Query(description="Only those that still are.")] = False,
    limit: Limit = USUAL_ITEMS,
) -> Response:
    """Return the promises that any job has broken, newest first."""
    return told(await _breaches(tick, None, is_open, limit))


async def _breaches(tick: Everytick, job: str | None, is_open: bool, limit: int) -> list[dict[str, Any]]:
    found = await tick.breaches(job, is_open=is_open, limit=limit)
    return [breach_data(record.breach) | {"job": record.job, "job_id": record.job_id} for record in found]


@routes.question("/api/promises", list[models.JobPromiseData])
async def promises(
    tick: Tick, job: Annotated[str | None, Query(max_length=200, examples=["nightly-backup"])] = None
) -> Response:
    """Return what jobs have promised, and whether it is broken now; soonest check first."""
    return told(
        [
            {
                "job": record.job,
                "job_id": record.job_id,
                "promise": record.state.kind,
                "judged_through": record.state.judged_through,
                "check_at": record.state.check_at,
                "is_broken": record.state.breach is not None,
                "state": data_of(record.state),
            }
            for record in await tick.promises(job)
        ]
    )
