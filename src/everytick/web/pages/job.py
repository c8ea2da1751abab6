"""The page of one job: is it well, and when does it run next? Its versions and its coverage have pages of their own."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from everytick.access.people import Person, Role, tags_of
from everytick.app import Everytick
from everytick.app.coverage import CoverageState
from everytick.app.job_overviews import JobOverview
from everytick.app.store_access import open_store
from everytick.app.text_reading import moment_of
from everytick.domain.job import Job
from everytick.errors import EverytickError, InvalidInstant
from everytick.web.asking import Tick, Who, needs
from everytick.web.framing import live_frame, viewer_of
from everytick.web.job_parts import coming_rows, task_lines
from everytick.web.job_past import (
    PastEntry,
    coming_squares,
    entry_title,
    lengths_taken,
    past_entries,
    past_squares,
)
from everytick.web.job_words import (
    definer_of,
    holds_of,
    job_numbers,
    job_said,
    promise_lines,
    rounded_length,
    schedule_said,
)
from everytick.web.kept_pages import kept_for_a_moment
from everytick.web.paths import link
from everytick.web.pictures.coverage import coverage_bar, coverage_words
from everytick.web.pictures.strip import columns_of, strip
from everytick.web.pictures.trail import localized
from everytick.web.pictures.trend import dates, trend
from everytick.web.pictures.usual import FEWEST_RUNS
from everytick.web.policy_words import policy_lines
from everytick.web.problems import Problem
from everytick.web.rendering import page
from everytick.web.words import Viewer

router = APIRouter(include_in_schema=False)

RECENT_RUNS = 10
TABLE_ROWS = 60
GAPS_SHOWN = 5
TASKS_SHOWN = 40
VERSIONS_SHOWN = 50
COVERED = timedelta(days=30)
"""The coverage of the last 30 days is shown unless another time is asked for."""

OPERATOR_DEEDS = (("trigger", "Trigger…", "t"), ("pause", "Pause…", "p"), ("backfill", "Backfill…", ""))
"""The deeds in the head of the page. What is rare, such as to disable or remove the job, stands under More."""


@router.get("/jobs/{job:name}", dependencies=[needs(Role.VIEWER)])
@kept_for_a_moment
async def job_page(
    request: Request, tick: Tick, who: Who, job: str, as_: Annotated[str, Query(alias="as")] = ""
) -> HTMLResponse:
    """Show one job."""
    seen = await tick._overview(job)
    viewer = viewer_of(request, seen.now)
    frame = live_frame(request, viewer, seen.record.job.name)
    values = _values(request, tick, seen, viewer, who)
    return await page(request, "job.html", viewer=viewer, frame=frame, who=who, is_table=as_ == "table", **values)


def _values(request: Request, tick: Everytick, seen: JobOverview, viewer: Viewer, who: Person) -> dict[str, Any]:
    to = partial(link, request.scope.get("root_path", ""))
    job, tags = seen.record.job, grant_tags(seen.record.job)
    entries, sees = past_entries(seen), who.sees_payloads(tags)
    is_gone = seen.record.removed_at is not None
    may_operate = who.may(Role.OPERATOR, tags) and not is_gone
    shown, others = policy_lines(job, viewer, with_payloads=sees)
    return {
        "seen": seen,
        "job": job,
        "said": job_said(seen, entries, viewer),
        "schedule_said": schedule_said(job),
        "holds": holds_of(seen, viewer, with_errors=sees),
        "numbers": job_numbers(seen, entries, viewer),
        "deeds": _deeds(seen, who),
        "may_operate": may_operate,
        "may_look_only": not is_gone and not who.may(Role.OPERATOR, tags),
        "picture": _picture(seen, entries, viewer, to, with_errors=sees),
        "rows": [_row(entry, job, viewer, to, with_errors=sees) for entry in entries[:TABLE_ROWS]],
        "recent": RECENT_RUNS,
        "tasks": task_lines(seen, with_targets=sees)[:TASKS_SHOWN],
        "coming": coming_rows(seen, viewer, to, may_change=may_operate),
        "policies": shown,
        "other_policies": others,
        "promises": promise_lines(seen, viewer),
        "upstreams": _upstreams(seen),
        "defined_by": definer_of(job, tick) or "a command, a page or the API",
        "defined_in": tick._place_in_files(job.name),
        "coverage_said": coverage_words(seen.ledger),
        "coverage": coverage_bar(seen.ledger, viewer.when),
        "gaps": seen.ledger.missing[-GAPS_SHOWN:],
    }


def grant_tags(job: Job) -> tuple[str, ...]:
    """Return the tags by which grants name a job."""
    return tags_of(job.name, job.settings.tags)


def _deeds(seen: JobOverview, who: Person) -> list[tuple[str, str, str]]:
    """Return the deeds that the person may do to the job as it is: the name, the words on it and its key."""
    tags, record = grant_tags(seen.record.job), seen.record
    if record.removed_at is not None:
        return []
    found: list[tuple[str, str, str]] = []
    if who.may(Role.OPERATOR, tags):
        found += OPERATOR_DEEDS
        if record.pause is not None:
            found[1] = ("resume", "Resume…", "p")
    if who.may(Role.ADMIN, tags) and not record.job.enabled:
        found.append(("enable", "Enable…", ""))
    return found


def _picture(
    seen: JobOverview, entries: Sequence[PastEntry], viewer: Viewer, to: Callable[..., str], *, with_errors: bool
) -> dict[str, Any] | None:
    """Return strip, trend and dates over the same columns; None of a job without past and future."""
    if not entries and not seen.coming:
        return None
    href = partial(_entry_link, seen.record.job, to)
    columns = columns_of(
        past_squares(entries, viewer, href, with_errors=with_errors), coming_squares(seen.coming, viewer)
    )
    took = lengths_taken(entries, viewer)
    return {
        "strip": strip(columns),
        "trend": trend(columns, took, rounded_length),
        "dates": dates(columns, took),
        "past": len(columns.past),
        "planned": len(columns.planned),
        "has_lengths": sum(run.length is not None for run in took) >= FEWEST_RUNS,
    }


def _entry_link(job: Job, to: Callable[..., str], entry: PastEntry) -> str:
    if entry.run is not None:
        return to("/occurrences/{}", entry.run.id)
    return to("/jobs/{}/at", job.name, at=entry.at.isoformat())


def _row(entry: PastEntry, job: Job, viewer: Viewer, to: Callable[..., str], *, with_errors: bool) -> dict[str, Any]:
    """Return one row of the table of occurrences."""
    run = entry.run
    is_error = run is not None and run.error is not None
    why = entry.why if with_errors or not is_error else ""
    delay = None if run is None or run.started_at is None else run.started_at - (run.line_at or run.scheduled_for)
    return {
        "entry": entry,
        "href": _entry_link(job, to, entry),
        "title": entry_title(entry, viewer, with_errors=with_errors),
        "why": localized(why, viewer),
        "cause": "schedule" if run is None else str(run.cause),
        "node": "" if run is None else run.node or run.owner or "",
        "late": run is not None and run.late,
        "delay": None if delay is None else max(delay, timedelta(0)),
    }


def _upstreams(seen: JobOverview) -> list[dict[str, Any]]:
    """Return the jobs for which this one waits, each with how it stands."""
    dependence = seen.snapshot.dependence
    known = {} if dependence is None else {upstream.name: upstream for upstream in dependence.upstreams}
    found = []
    for dependency in seen.record.job.settings.depends_on:
        upstream = known.get(dependency.job)
        found.append(
            {
                "name": dependency.job if upstream is None else upstream.called or dependency.job,
                "rule": dependency.describe().removeprefix(f"{dependency.job} "),
                "state": "" if upstream is None else upstream.state,
                "success": None if upstream is None else upstream.last_success,
            }
        )
    return found


# ----------------------------------------------------------------------------------------------------------- versions


@router.get("/jobs/{job:name}/versions", dependencies=[needs(Role.VIEWER)])
async def versions_page(
    request: Request, tick: Tick, who: Who, job: str, a: int | None = None, b: int | None = None
) -> HTMLResponse:
    """List the versions of a job, and compare two of them side by side."""
    found = await tick.versions(job, VERSIONS_SHOWN)
    newest = found[0].job
    diff = await tick.compare(job, a, b) if a is not None and b is not None else None
    values: dict[str, Any] = {
        "job": newest,
        "versions": found,
        "diff": diff,
        "a": a,
        "b": b,
        "sees": who.sees_payloads(grant_tags(newest)),
        "may_roll_back": who.may(Role.ADMIN, grant_tags(newest)),
        "is_cut": len(found) == VERSIONS_SHOWN,
    }
    return await page(request, "job_versions.html", who=who, **values)


# ----------------------------------------------------------------------------------------------------------- coverage


@router.get("/jobs/{job:name}/coverage", dependencies=[needs(Role.VIEWER)])
async def coverage_page(
    request: Request, tick: Tick, who: Who, job: str, after: str = "", through: str = ""
) -> HTMLResponse:
    """Show which instants of a job are done, missing, under way or done twice."""
    now = await (await open_store(tick)).now()
    newest = (await tick.versions(job, 1))[0].job
    end = _moment("through", through) or now
    # A job misses nothing of the time before it was there, unless people ask for that time.
    begin = _moment("after", after) or max(end - COVERED, min(newest.created_at or end, end - timedelta(hours=1)))
    if begin >= end:
        raise Problem(422, "invalid_instant", "after must be earlier than through")
    ledger = await tick.coverage(job, begin, end)
    viewer = viewer_of(request, now)
    values: dict[str, Any] = {
        "job": newest,
        "ledger": ledger,
        "said": coverage_words(ledger),
        "picture": coverage_bar(ledger, viewer.when),
        "missing": ledger.count(CoverageState.MISSING),
        "is_unknown": bool(ledger.spans) and {span.state for span in ledger.spans} == {CoverageState.UNKNOWN},
        "spans": list(reversed(ledger.spans))[:200],
        "length_of": ledger.through - ledger.after,
        "may_operate": who.may(Role.OPERATOR, grant_tags(newest)),
    }
    return await page(request, "job_coverage.html", viewer=viewer, who=who, **values)


def _moment(what: str, text: str) -> datetime | None:
    """Return the moment that a query value names, None if it is empty. What cannot be read is a problem of 422."""
    if not text:
        return None
    try:
        return moment_of(text.replace(" ", "+"))
    except InvalidInstant as error:
        raise Problem(422, error.code, f"{what}: {error}") from None
    except EverytickError as error:
        raise Problem(422, error.code, str(error)) from None
