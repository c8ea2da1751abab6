"""The page of one occurrence: what went wrong, and why? And of an instant that has no occurrence."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response

from everytick.access.people import Person, Role, tags_of
from everytick.app import Everytick
from everytick.app.occurrence_overviews import OccurrenceOverview
from everytick.app.text_reading import moment_of
from everytick.domain.durations import MICROSECOND
from everytick.domain.statuses import ACTIVE, ENDED, RunStatus
from everytick.domain.trace_ids import trace_id
from everytick.errors import EverytickError, NotFound
from everytick.stores.base import Whole
from everytick.web.asking import Tick, Who, needs
from everytick.web.framing import frame_of, live_frame, viewer_of
from everytick.web.kept_pages import kept_for_a_moment
from everytick.web.occurrence_words import (
    MOST_LINES,
    chosen_attempt,
    error_lines,
    error_said,
    instant_mark,
    instant_trail,
    occurrence_said,
    output_lines,
    output_tabs,
    task_rows,
    when_said,
    with_all_runs,
)
from everytick.web.parked_reasons import without_why_parked
from everytick.web.paths import link, path_of
from everytick.web.pictures.gantt import gantt, shortened
from everytick.web.pictures.trail import localized, trail
from everytick.web.problems import Problem
from everytick.web.rendering import page
from everytick.web.words import Viewer, length

router = APIRouter(include_in_schema=False)

RUNNING_REFRESH = 5
"""How often a page without script asks again while the occurrence runs."""

MOST_VALUE = 20_000
"""Characters of a payload or result that are shown."""

_ID = re.compile(r"(?:occ_)?[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
_BEGINNING = re.compile(r"(?:occ_)?([0-9a-f]{6}[0-9a-f-]{0,29})")


@router.get("/occurrences/{id}", dependencies=[needs(Role.VIEWER)])
@kept_for_a_moment
async def occurrence_page(
    request: Request,
    tick: Tick,
    who: Who,
    id: str,
    task: str = "",
    attempt: int = 0,
    from_: Annotated[int | None, Query(alias="from", ge=0)] = None,
    as_: Annotated[str, Query(alias="as")] = "",
    rows: str = "",
    lines: str = "",
) -> Response:
    """Show one occurrence. A short id leads to the whole one."""
    whole_id = await _whole_id(tick, id)
    if whole_id != id:
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(link(request.scope.get("root_path", ""), "/occurrences/{}", whole_id) + query, 303)
    seen = await tick._occurrence_overview(id)
    seen = replace(seen, whole=with_all_runs(seen.whole, seen.job))
    viewer = viewer_of(request, seen.now)
    is_active = seen.whole.occurrence.status in ACTIVE
    frame = frame_of(request, path_of(request.scope), viewer)
    if is_active:
        frame = live_frame(request, viewer, seen.record.job.name, RUNNING_REFRESH)
    sees = who.sees_payloads(tags_of(seen.record.job.name, seen.record.job.settings.tags))
    values = _values(request, seen, viewer, who, sees=sees, is_table=as_ == "table", all_rows=rows == "all")
    if sees:
        values |= await _output_values(tick, seen, task, attempt, from_, only_errors=lines == "errors")
    else:
        values |= _NO_OUTPUT
    return await page(request, "occurrence.html", viewer=viewer, frame=frame, who=who, **values)


async def _whole_id(tick: Everytick, text: str) -> str:
    """Return the id that a text is or begins. Raise NotFound, or a conflict if two ids begin so."""
    typed = text.strip().lower()
    if _ID.fullmatch(typed):
        return typed if typed.startswith("occ_") else f"occ_{typed}"
    beginning = _BEGINNING.fullmatch(typed)
    if beginning is None:
        raise NotFound("occurrence", text)
    found = await tick._whole_ids(beginning[1])
    if not found:
        raise NotFound("occurrence", text)
    if len(found) > 1:
        raise Problem(409, "ambiguous_id", f"more than one id begins with {beginning[1]}: {' and '.join(found)}")
    return found[0]


def _values(
    request: Request,
    seen: OccurrenceOverview,
    viewer: Viewer,
    who: Person,
    *,
    sees: bool,
    is_table: bool,
    all_rows: bool,
) -> dict[str, Any]:
    own, job = seen.whole.occurrence, seen.job
    to = partial(link, request.scope.get("root_path", ""))
    tags = tags_of(seen.record.job.name, seen.record.job.settings.tags)
    may_operate = who.may(Role.OPERATOR, tags) and seen.record.removed_at is None
    steps = trail(seen.explanation, seen.whole, job, viewer, next_run=seen.next_run)
    if not sees:
        steps = [replace(step, evidence="") if step.mark in _TELLS_ERRORS else step for step in steps]
    return {
        "seen": seen,
        "own": own,
        "job": seen.record.job,
        "said": occurrence_said(seen, viewer, with_errors=sees),
        "when_said": when_said(seen),
        "error": error_said(seen.whole) if sees else None,
        "sees": sees,
        "may_operate": may_operate,
        "deeds": _deeds(seen.whole, to) if may_operate else [],
        "is_active": own.status in ACTIVE,
        "is_table": is_table,
        "gantt": None if is_table else _gantt(seen, viewer, all_rows=all_rows),
        "attempts": seen.whole.attempts,
        "trail": steps,
        "facts": _facts(seen, viewer),
        "payload": _value_text(own.payload_under(job)) if sees else None,
        "results": _results(seen.whole) if sees else [],
        "reason": "" if own.reason == "on time" else localized(own.reason or "", viewer),
    }


_TELLS_ERRORS = frozenset({"failed", "awaiting_retry", "failed_stale", "timeout", "completed_with_errors"})
"""The marks of steps whose evidence may hold what an error said."""


def _deeds(whole: Whole, to: Callable[..., str]) -> list[tuple[str, str, bool]]:
    """Return the deeds for an occurrence as it is: words, address, and whether it is the first to think of."""
    own = whole.occurrence
    if own.status not in ENDED:
        return [("Cancel…", to("/occurrences/{}/do/cancel", own.id), False)]
    if own.created_at is None:
        return []
    wrong = [run.task for run in whole.runs if run.status in (RunStatus.FAILED, RunStatus.TIMEOUT)]
    again = to("/occurrences/{}/do/replay", own.id)
    if wrong and len(whole.runs) > 1:
        first = (f"Replay from {wrong[0]}…", to("/occurrences/{}/do/replay", own.id, from_task=wrong[0]), True)
        return [first, ("Replay all…", again, False)]
    return [("Replay…", again, bool(wrong))]


def _gantt(seen: OccurrenceOverview, viewer: Viewer, *, all_rows: bool) -> dict[str, Any] | None:
    """Return the Gantt of the tasks; None if none has begun."""
    own = seen.whole.occurrence
    rows = task_rows(seen.whole, seen.job, viewer)
    if not any(row.bars for row in rows):
        return None
    shown, hidden = (rows, 0) if all_rows else shortened(rows)
    usual_end = rare_end = None
    if own.started_at is not None and seen.lengths is not None:
        usual_end, rare_end = own.started_at + seen.lengths.p50, own.started_at + seen.lengths.p95
    ready = max(own.ready_at or own.scheduled_for, own.scheduled_for)
    begun = own.started_at or ready
    drawn = gantt(
        shown,
        ready=min(ready, begun) if own.cause == "schedule" else begun,
        now=viewer.now,
        words=length,
        clock=lambda at: viewer.clock(at, seconds=at.second > 0),
        usual_end=usual_end,
        rare_end=rare_end,
    )
    return {"axis": drawn.axis, "rows": drawn.rows, "hidden": hidden, "has_all": all_rows}


def _facts(seen: OccurrenceOverview, viewer: Viewer) -> list[tuple[str, str, str]]:
    """Return the facts: name, value, and a note in small letters."""
    own = seen.whole.occurrence
    found = [("Scheduled for", viewer.full(own.scheduled_for), utc_note(own.scheduled_for, viewer))]
    if own.started_at is not None:
        delay = own.started_at - (own.line_at or own.scheduled_for)
        found.append(("Started", viewer.when(own.started_at, seconds=True), f"+{length(max(delay, timedelta(0)))}"))
    if own.ended_at is not None:
        took = "" if own.started_at is None else f"after {length(own.ended_at - own.started_at)}"
        found.append(("Ended", viewer.when(own.ended_at, seconds=True), took))
    found.append(("Cause", str(own.cause), "late" if own.late else ""))
    if own.covers_after is not None and own.covers_through is not None:
        found.append(("Covers", viewer.stretch(own.covers_after, own.covers_through), ""))
    node = own.owner or own.node
    if node is not None:
        found.append(("Node", node, f"fence {own.fence:,}" if own.fence else ""))
    found.append(("Version", str(own.version), "of the job"))
    if own.started_at is not None:
        found.append(("Trace", trace_id(own.id), ""))
    return found


def utc_note(moment: datetime, viewer: Viewer) -> str:
    """Return the time of day in UTC, which a reader whose clock shows UTC has read already."""
    return f"{moment:%H:%M:%S} UTC" if viewer.local(moment).utcoffset() else ""


def _results(whole: Whole) -> list[tuple[str, str]]:
    return [(task, _value_text(result)) for task, result in whole.results.items() if result is not None]


def _value_text(given: object) -> str:
    """Return a payload or result as JSON, as much of it as a page shows."""
    if given is None:
        return ""
    text = json.dumps(given, indent=2, ensure_ascii=False)
    return text if len(text) <= MOST_VALUE else f"{text[:MOST_VALUE]}\n… {len(text):,} characters in all"


# ------------------------------------------------------------------------------------------------------------- output

_NO_OUTPUT: dict[str, Any] = {"tabs": [], "output": None, "lines": [], "chosen": None, "is_followed": False}


async def _output_values(
    tick: Everytick, seen: OccurrenceOverview, task: str, attempt: int, start: int | None, *, only_errors: bool
) -> dict[str, Any]:
    whole = seen.whole
    chosen = chosen_attempt(whole, task, attempt)
    if chosen is None:
        return _NO_OUTPUT
    part = await tick._output(whole, *chosen, start, MOST_LINES)
    lines = output_lines(part.text)
    is_running = any(
        name == chosen[0] and tried.number == chosen[1] and tried.ended_at is None for name, tried in whole.attempts
    )
    return {
        "tabs": output_tabs(whole, *chosen),
        "output": part,
        "lines": error_lines(lines) if only_errors else lines,
        "errors": sum(line.level == "error" for line in lines),
        "only_errors": only_errors,
        "chosen": chosen,
        "is_followed": is_running and start is None and not only_errors,
    }


@router.get("/occurrences/{id}/output", dependencies=[needs(Role.VIEWER)])
async def output(
    request: Request,
    tick: Tick,
    who: Who,
    id: str,
    task: str,
    attempt: Annotated[int, Query(ge=1)],
    from_: Annotated[int, Query(alias="from", ge=0)] = 0,
    as_: Annotated[str, Query(alias="as")] = "text",
) -> Response:
    """Return the output of an attempt: a part of it as lines, or all of it as text."""
    whole = await tick.occurrence(id)
    record = await tick.job_of(whole.occurrence.job_id)
    if not who.sees_payloads(tags_of(record.job.name, record.job.settings.tags)):
        raise Problem(403, "not_allowed", f"output is for operators: {who.name} is {who.role}")
    found = next((tried for name, tried in whole.attempts if name == task and tried.number == attempt), None)
    if found is None:
        raise Problem(404, "not_found", "there is no such attempt")
    if as_ == "json":
        part = await tick._output(whole, task, attempt, from_)
        told = [[line.text, line.clock, line.level] for line in output_lines(part.text)]
        is_over = found.ended_at is not None and part.end >= part.size
        return JSONResponse({"lines": told, "next": part.end, "size": part.size, "is_over": is_over})
    path = None if found.log is None else await tick._output_file(found.log)
    if path is None:
        return PlainTextResponse("")
    name = f"{task}-{attempt}.txt" if as_ == "download" else None
    return FileResponse(path, media_type="text/plain; charset=utf-8", filename=name)


# ------------------------------------------------------------------------------------------- an instant without one


@router.get("/jobs/{job:name}/at", dependencies=[needs(Role.VIEWER)])
async def instant_page(request: Request, tick: Tick, who: Who, job: str, at: str = "") -> HTMLResponse:
    """Explain one instant of a job: what became of it, or will, and why."""
    try:
        moment = moment_of(at.replace(" ", "+"))
    except EverytickError as error:
        raise Problem(422, error.code, f"at: {error}") from None
    found = await tick.explain(job, moment)
    now = await tick.now()
    viewer = viewer_of(request, now)
    newest = (await tick.versions(job, 1))[0].job
    has_run = found.occurrence is not None and found.occurrence.created_at is not None
    tags = tags_of(newest.name, newest.settings.tags)
    may_operate = who.may(Role.OPERATOR, tags)
    if not who.sees_payloads(tags):
        found = replace(found, text=without_why_parked(found.text))
    steps = instant_trail(found, viewer)
    if found.occurrence is not None and found.occurrence.error is not None and not who.sees_payloads(tags):
        # What is said of it quotes its error.
        steps = [replace(step, evidence="") if step.mark == instant_mark(found) else step for step in steps]
    values: dict[str, Any] = {
        "job": newest,
        "found": found,
        "mark": instant_mark(found),
        "trail": steps,
        "occurrence": found.occurrence if has_run else None,
        "may_fill": may_operate and moment <= now and not has_run,
        "may_adjust": may_operate and moment > now and str(found.verdict) == "will run",
        "after": (moment - MICROSECOND).isoformat(),
        "at": moment,
    }
    return await page(request, "instant.html", viewer=viewer, who=who, **values)
