"""The page of a year: was it a good one? One job, day by day, by its worst outcome and by how long its runs took."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from everytick.access.people import Role
from everytick.app.job_years import JobYear
from everytick.domain.questions import tally_of
from everytick.domain.statuses import FINISHED, OccurrenceStatus
from everytick.stores.base import JobRecord
from everytick.web.asking import Tick, needs
from everytick.web.framing import viewer_of
from everytick.web.kept_pages import kept_for_a_moment
from everytick.web.known_jobs import known_jobs
from everytick.web.paths import link
from everytick.web.pictures.year import STEPS, YearDay, months_of, year_days, year_grid, year_words
from everytick.web.rendering import page
from everytick.web.words import count, length

router = APIRouter(include_in_schema=False)

CHOICES = 24
OFFERED = 500
"""Names that the field of the chooser offers while people type."""

FIRST_YEAR, LAST_YEAR = 1970, 9998
_S = OccurrenceStatus
_WRONG = (_S.FAILED, _S.FAILED_STALE)


@router.get("/year", dependencies=[needs(Role.VIEWER)])
@kept_for_a_moment
async def year_page(
    request: Request,
    tick: Tick,
    job: str = "",
    year: Annotated[int | None, Query(ge=FIRST_YEAR, le=LAST_YEAR)] = None,
    as_: Annotated[str, Query(alias="as")] = "",
) -> HTMLResponse:
    """Show a year of a job; without a job, which ones there are."""
    now = await tick.now()
    viewer = viewer_of(request, now)
    wanted = now.year if year is None else year
    if not job:
        records = await known_jobs(request).records()
        return await page(request, "year_choice.html", viewer=viewer, **_choice(records), year=wanted)
    found = await tick._year(job, wanted)
    values = _values(request, found, wanted, is_table=as_ == "table")
    return await page(request, "year.html", viewer=viewer, **values)


def _choice(records: Sequence[JobRecord]) -> dict[str, Any]:
    """Return the jobs to choose from: those that failed last come first."""
    by_failure = sorted(records, key=lambda record: record.job.name)
    by_failure.sort(key=_failed_at, reverse=True)
    return {
        "jobs": by_failure[:CHOICES],
        "total": len(records),
        "names": [record.job.name for record in records[:OFFERED]],
    }


def _failed_at(record: JobRecord) -> float:
    return 0.0 if record.last_failure_at is None else record.last_failure_at.timestamp()


def _values(request: Request, found: JobYear, year: int, *, is_table: bool) -> dict[str, Any]:
    job, today = found.record.job, found.now.date()
    days = year_days(year, _days(request, found))
    ran = [day for day in days if day.counts]
    return {
        "job": job,
        "year": year,
        "this_year": today.year,
        "said": _said(job.name, year, days, is_over=year < today.year),
        "words": year_words(days),
        "days": ran,
        "months": months_of(days),
        "planned": sum(day.planned for day in days),
        "outcome": year_grid(days, today, length, f"{job.name} in {year} by outcome: {year_words(days)}."),
        "by_length": year_grid(days, today, length, f"{job.name} in {year} by length.", by_length=True)
        if any(day.took for day in days)
        else None,
        "tones": [said for _, said in STEPS],
        "is_table": is_table,
        "statuses": [status for status in OccurrenceStatus if any(day.of(status) for day in days)],
    }


def _days(request: Request, found: JobYear) -> list[YearDay]:
    """Return the days that have an end or a plan; each that has an end leads to its history."""
    to = partial(link, request.scope.get("root_path", ""))
    ended = {past_day.day: past_day for past_day in found.days}
    days = []
    for day in sorted({*ended, *found.unrun, *found.planned}):
        tally, unrun = ended.get(day), found.unrun.get(day, {})
        counts = tally_of([*(() if tally is None else tally.tally.counts), *unrun.items()]).counts
        ends = {"from": f"{day}T00:00:00+00:00", "to": f"{day}T23:59:59+00:00"}
        href = to("/history", job=found.record.job.name, **ends) if counts else None
        days.append(YearDay(day, counts, None if tally is None else tally.took, day in found.planned, href))
    return days


def _said(name: str, year: int, days: Sequence[YearDay], *, is_over: bool) -> str:
    """Return the heading: how many days went wrong."""
    ran = [day for day in days if day.of(*FINISHED)]
    if not ran:
        return f"{name} did not run in {year}."
    bad = sum(bool(day.of(*_WRONG)) for day in ran)
    so_far = "" if is_over else " so far"
    if not bad:
        return f"No day of {name} failed in {year}{so_far}."
    return f"{name} failed on {count(bad, 'day')} of {len(ran)} in {year}{so_far}."
