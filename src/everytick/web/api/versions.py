"""Versions of a job: list them, compare two, go back to one."""

from typing import Annotated

from fastapi import Query, Response

from everytick.access.people import Role, tags_of
from everytick.answers.jobs import version_record
from everytick.answers.runs_to_come import diff_data
from everytick.answers.wire import data_of
from everytick.web.api import bodies, models
from everytick.web.api.hiding import shown_to
from everytick.web.api.jobs import IfMatch, expected, past_tags
from everytick.web.api.shapes import Routes, told
from everytick.web.asking import Tick, Who

routes = Routes("versions")
router = routes.router

_MOST_VERSIONS = 1_000
Number = Annotated[int, Query(ge=1, le=1_000_000_000, examples=[3])]


@routes.question("/api/jobs/{job:name}/versions", list[models.JobVersionData])
async def list_versions(
    job: str,
    tick: Tick,
    who: Who,
    n: Annotated[int, Query(ge=1, le=_MOST_VERSIONS, description="How many at most.", examples=[20])] = 20,
) -> Response:
    """Return the newest versions of a job: who wrote each, when, and what it changed."""
    found = await tick.versions(job, n)
    tags = tags_of(found[0].job.name, found[0].job.settings.tags) if found else ()
    return told(shown_to(who, [version_record(version) for version in found], tags))


@routes.question("/api/jobs/{job:name}/difference", models.DifferenceData)
async def compare_versions(job: str, tick: Tick, who: Who, old: Number, new: Number) -> Response:
    """Return what differs between two versions of a job, and what that would mean for the runs to come."""
    found = await tick.compare(job, old, new)
    return told(shown_to(who, diff_data(found), await past_tags(tick, job)))


@routes.question("/api/jobs/{job:name}/rollout", models.RolloutData)
async def read_rollout(job: str, tick: Tick) -> Response:
    """Return which version of a job is on trial, in which stage, and what became of it so far."""
    found = await tick.rollout(job)
    return told({"rollout": None if found is None else {**data_of(found), "rollout": str(found.rollout)}})


@routes.operation("/api/jobs/{job:name}/rollout/end", models.EditedData, role=Role.ADMIN)
async def end_rollout(job: str, body: bodies.EndRolloutBody, tick: Tick) -> Response:
    """End the trial of a version by hand: with `keep` it is in force now, without it what was before."""
    version = await tick.end_rollout(job, keep=body.keep, confirmed=body.confirm)
    return told({"version": version}, headers={"etag": f'"v{version}"'})


@routes.operation("/api/jobs/{job:name}/rollback", models.EditedData, role=Role.ADMIN)
async def rollback(job: str, body: bodies.RollbackBody, tick: Tick, if_match: IfMatch = None) -> Response:
    """Make an old version the newest one again, as a new version equal to it."""
    version = await tick.rollback(
        job,
        body.version,
        policy=body.policy,
        expected_version=expected(if_match, body.expected_version),
        detach=body.detach,
        confirmed=body.confirm,
    )
    return told({"version": version}, headers={"etag": f'"v{version}"'})
