"""Overviews: what pictures show of many occurrences at once. Each is bounded."""

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import Query, Request, Response

from everytick.access.people import Person
from everytick.answers.wire import data_of
from everytick.app import Everytick
from everytick.domain.agenda import overview_of
from everytick.domain.questions import FailureKind, Glance
from everytick.web.agenda_cache import agenda_cache
from everytick.web.api import overview_models
from everytick.web.api.hiding import glance_shown_to
from everytick.web.api.shapes import GivenMoment, Routes, told
from everytick.web.asking import Tick, Who
from everytick.web.problems import Problem

routes = Routes("overviews")
router = routes.router

After = Annotated[GivenMoment, Query(examples=["2026-11-16T00:00:00Z"])]
Through = Annotated[GivenMoment, Query(examples=["2026-11-17T00:00:00Z"])]
Jobs = Annotated[
    list[str], Query(max_length=200, description="Names or ids of jobs; none means all.", examples=[["nightly-backup"]])
]


@routes.question("/api/overviews/window", overview_models.WindowData)
async def window(
    tick: Tick,
    who: Who,
    after: After,
    through: Through,
    jobs: Jobs = [],  # noqa: B006 - FastAPI copies it
    limit: Annotated[int, Query(ge=1, le=5_000, examples=[500])] = 5_000,
) -> Response:
    """Return the occurrences with their instant in `(after, through]`, newest first, and earlier ones that run now."""
    found = await tick.window(after, through, limit=limit, jobs=jobs or None)
    return told({"runs": await _glances(tick, who, found.runs), "is_cut": found.is_cut})


async def _glances(tick: Everytick, who: Person, runs: Iterable[Glance]) -> list[dict[str, Any]]:
    some = list(runs)
    tags = await tick.job_tags(run.job_id for run in some)
    return [glance_shown_to(who, data_of(run), tags[run.job_id]) for run in some]


@routes.question("/api/overviews/buckets", list[overview_models.BucketData])
async def buckets(
    tick: Tick,
    after: After,
    through: Through,
    step: Annotated[str, Query(max_length=50, examples=["5m"])] = "5m",
    by: Annotated[str, Query(pattern="^(all|band|job)$", examples=["all"])] = "all",
    jobs: Jobs = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Return how many occurrences of each status each step of time has."""
    return told(data_of(await tick.buckets(after, through, step, by=by, jobs=jobs or None)))


@routes.question("/api/overviews/lengths", dict[str, overview_models.LengthsData])
async def lengths(
    tick: Tick,
    jobs: Jobs = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Return how long jobs usually take, by the name or id that was given."""
    return told(data_of(await tick.lengths(jobs or None)))


@routes.question("/api/overviews/last-runs", dict[str, list[overview_models.GlanceData]])
async def last_runs(
    tick: Tick,
    who: Who,
    jobs: Annotated[list[str], Query(min_length=1, max_length=200, examples=[["nightly-backup"]])],
    count: Annotated[int, Query(ge=1, le=200, examples=[30])] = 30,
) -> Response:
    """Return the last occurrences of each of these jobs, newest first."""
    found = await tick.last_runs(jobs, count)
    return told({name: await _glances(tick, who, runs) for name, runs in found.items()})


@routes.question("/api/overviews/counts", overview_models.TallyData)
async def counts(
    tick: Tick,
    job: Annotated[str | None, Query(max_length=200, examples=["nightly-backup"])] = None,
    after: Annotated[GivenMoment | None, Query()] = None,
    through: Annotated[GivenMoment | None, Query()] = None,
    cause: Annotated[str | None, Query(max_length=20, examples=["schedule"])] = None,
) -> Response:
    """Return how many occurrences stand in each status. More than 10,000 are estimated."""
    return told(data_of(await tick.counts(job, after=after, through=through, cause=cause)))


@routes.question("/api/overviews/failures", list[overview_models.FailureData])
async def failures(
    tick: Tick,
    who: Who,
    since: Annotated[GivenMoment, Query()],
    limit: Annotated[int, Query(ge=1, le=200, examples=[50])] = 50,
) -> Response:
    """Return the failures after a moment, one entry for each kind of error, most frequent first."""
    return told([await _failure(tick, who, kind) for kind in await tick.failures(since, limit)])


@routes.question("/api/overviews/failures/{fingerprint}", overview_models.FailureData)
async def alike(fingerprint: str, tick: Tick, who: Who, since: Annotated[GivenMoment, Query()]) -> Response:
    """Return the failures after a moment that have this fingerprint. It is 404 to viewers, who see no errors."""
    found = await tick.alike(fingerprint, since)
    if found is None or not await _sees(tick, who, found):
        raise Problem(404, "not_found", "there is no failure of this kind since then")
    return told(data_of(found))


async def _failure(tick: Everytick, who: Person, found: FailureKind) -> dict[str, Any]:
    """Return the failures of a kind. A fingerprint tells whether a guess at the error is right, so it is hidden too."""
    data: dict[str, Any] = data_of(found)
    return data if await _sees(tick, who, found) else {**data, "headline": "", "fingerprint": ""}


async def _sees(tick: Everytick, who: Person, found: FailureKind) -> bool:
    """Whether the person may see the error: on all jobs that had it."""
    if who.sees_payloads() or not who.grants:
        return who.sees_payloads()
    tags = await tick.job_tags(found.job_ids)
    return all(who.sees_payloads(tags[id_]) for id_ in found.job_ids)


@routes.question("/api/jobs/{job:name}/days", list[overview_models.DayTallyData])
async def days(job: str, tick: Tick, year: Annotated[int, Query(ge=1970, le=9998, examples=[2026])]) -> Response:
    """Return how each UTC day of a year ended for a job; days without an end are left out."""
    return told(data_of(await tick.days(job, year)))


@routes.question("/api/jobs/{job:name}/coverage", overview_models.CoverageData)
async def coverage(job: str, tick: Tick, after: After, through: Through) -> Response:
    """Return which instants of a job in `(after, through]` are done, missing, under way or done twice.

    A backfill repairs what is missing.
    """
    return told(data_of(await tick.coverage(job, after, through)))


@routes.question("/api/agenda", overview_models.AgendaData)
async def agenda(
    request: Request, crowds: Annotated[int, Query(ge=0, le=200, description="How many at most.", examples=[20])] = 20
) -> Response:
    """Return the planned starts of the coming seven days, of all jobs together.

    It has the starts by quarters of an hour, the instants that most jobs share, and the changes of clocks that concern
    jobs. It may be some minutes old; `now` says of when it is. `uncounted` is how many jobs there was no time to count.
    """
    found, _ = await agenda_cache(request).get()
    return told(data_of(overview_of(found, crowds)))
