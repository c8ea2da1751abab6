"""The list of all jobs: those that need a look first. Filters stand in the address."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response

from everytick.access.people import Person, Role, tags_of
from everytick.app import Everytick
from everytick.domain.occurrence import Occurrence
from everytick.domain.questions import Glance, JobLengths
from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.domain.values import value
from everytick.stores.base import JobRecord
from everytick.web import words
from everytick.web.asking import Tick, Who, needs
from everytick.web.framing import live_frame, viewer_of
from everytick.web.job_list import JobFilter, JobList, JobState, ListedJob, job_list
from everytick.web.job_standing import late_by
from everytick.web.kept_pages import kept_for_a_moment
from everytick.web.known_jobs import known_jobs
from everytick.web.now_board import board_of
from everytick.web.parked_reasons import why_parked
from everytick.web.pictures.small_strip import small_strip, went_well
from everytick.web.pictures.strip import PAUSED, PLANNED, Square
from everytick.web.rendering import page
from everytick.web.saved_views import views_of
from everytick.web.words import Viewer

router = APIRouter(include_in_schema=False)

PAGE_ROWS = 40
"""Rows of one page: forty strips are 40 KB."""

_NOT_RUN = frozenset({OccurrenceStatus.SKIPPED, OccurrenceStatus.MISSED, OccurrenceStatus.SUPERSEDED})
_MARKS = {
    JobState.PROMISE_BROKEN: "promise",
    JobState.OVERRUNNING: "late",
    JobState.PARKED: "failed_stale",
    JobState.DISABLED: "canceled",
    JobState.NEVER_RAN: "planned",
}
_CHIPS = tuple(state for state in JobState if state is not JobState.FINE)


@value(frozen=True)
class JobLine:
    """One row of the table."""

    listed: ListedJob
    mark: str
    said: str
    strip: Any
    usual: str
    good: str
    may: bool = False


@router.get("/jobs", dependencies=[needs(Role.VIEWER)])
@kept_for_a_moment
async def jobs(request: Request, tick: Tick, who: Who, after: str = "") -> Response:
    """Show the jobs that the address means."""
    fleet, known = await board_of(request).fleet(), known_jobs(request)
    viewer = viewer_of(request, fleet.now)
    wanted = JobFilter.read(request.query_params)
    found = await job_list(tick, fleet, wanted)
    shown, first, has_more = found.page(after, PAGE_ROWS)
    rows = await _rows(tick, who, viewer, shown)
    values: dict[str, Any] = {
        "found": found,
        "said": _said(found, wanted),
        "rows": rows,
        "first": first,
        "wanted": wanted,
        "here": urlencode(wanted.query),
        "chips": [
            (state, found.counts.get(state, 0), _MARKS.get(state, str(state)))
            for state in _CHIPS
            if found.counts.get(state) or state == wanted.state
        ],
        "marks_of": _MARKS,
        "empty_said": _none_said(wanted),
        "following": shown[-1].name if has_more else "",
        "may_change": who.may_somewhere(Role.OPERATOR),
        "proposals": await known.proposals() if who.may(Role.OPERATOR) else [],
        "views": views_of(request, "jobs"),
    }
    return await page(request, "jobs.html", viewer=viewer, frame=live_frame(request, viewer, refresh=0), **values)


def _said(found: JobList, wanted: JobFilter) -> str:
    """Return the heading: how many jobs, how many need a look, how many are paused."""
    if not found.total:
        return "No job is meant by this filter." if wanted.query else "No job yet."
    parts = [] if found.has_node else ["no node is live"]
    if found.need_look:
        parts.append(f"{words.number(found.need_look)} {'needs' if found.need_look == 1 else 'need'} a look")
    held = {state: found.counts.get(state, 0) for state in (JobState.PAUSED, JobState.DISABLED)}
    parts += [f"{words.number(many)} {'is' if many == 1 else 'are'} {state}" for state, many in held.items() if many]
    return f"{words.count(found.total, 'job')}{'; ' if parts else ''}{', '.join(parts)}."


_NONE = {
    JobState.FAILED: "No job failed last",
    JobState.PROMISE_BROKEN: "No job has broken a promise that it has not kept since",
    JobState.LATE: "No job is late",
    JobState.OVERRUNNING: "No run takes far longer than usual",
    JobState.PARKED: "Every job can be run",
    JobState.COMPLETED_WITH_ERRORS: "No job completed with errors last",
    JobState.MISSED: "No job has missed an instant in the last 12 hours that a good run has not made up for",
    JobState.AWAITING_RETRY: "No job waits for a retry",
    JobState.RUNNING: "No job is running",
    JobState.PAUSED: "No job is paused",
    JobState.DISABLED: "No job is disabled",
    JobState.NEVER_RAN: "Every job has run",
    JobState.FINE: "No job is without something that stands out",
}
"""What is said where a filter names a state in which no job is."""


def _none_said(wanted: JobFilter) -> str:
    """Return the sentence for a filter that means no job."""
    if not wanted.state:
        return "No job has such a name, owner or tag." if wanted.query else ""
    return f"{_NONE[JobState(wanted.state)]}{'' if wanted.is_of_all else ' among those that the filter means'}."


async def _rows(tick: Everytick, who: Person, viewer: Viewer, shown: Sequence[ListedJob]) -> list[JobLine]:
    """Return the rows of some jobs: two questions, whatever their number."""
    if not shown:
        return []
    ids = [listed.record.job.id for listed in shown]
    last, lengths = await tick.last_runs(ids, 30), await tick.lengths(ids)
    return [_row(listed, who, viewer, last.get(id_, ()), lengths) for listed, id_ in zip(shown, ids, strict=True)]


def _row(
    listed: ListedJob, who: Person, viewer: Viewer, last: Sequence[Glance], lengths: Mapping[str, JobLengths]
) -> JobLine:
    job = listed.record.job
    sees_errors = who.sees_payloads(tags_of(job.name, job.settings.tags))
    usual = lengths.get(job.id)
    past = [_square(glance, viewer, sees_errors) for glance in reversed(last)]
    return JobLine(
        listed,
        _mark(listed),
        state_said(listed, viewer, last[0] if last else None, usual, with_errors=sees_errors),
        small_strip(past, _planned(listed, viewer)),
        "" if usual is None else words.length(usual.p50),
        _good(last),
        sees_errors,
    )


def _square(glance: Glance, viewer: Viewer, sees_errors: bool) -> Square:
    plain = Square(glance.status)
    if went_well(plain):
        return plain  # its title would not be read
    why = f": {glance.why}" if glance.why and sees_errors else ""
    return Square(glance.status, words.cut(f"{viewer.when(glance.scheduled_for)} {glance.status}{why}"))


def _planned(listed: ListedJob, viewer: Viewer) -> list[Square]:
    """Return the next two runs, as far as the list knows them: the first from the store, the second by the schedule."""
    first, job = listed.record.next_run, listed.record.job
    if first is None:
        return []
    second = job.bound(None).next_after(max(first, viewer.now))
    kind = PAUSED if listed.record.pause is not None else PLANNED
    return [Square(kind) for at in (first, second) if at is not None]


def _mark(listed: ListedJob) -> str:
    """Return the glyph of a job."""
    return _MARKS.get(listed.state, str(listed.state))


def _good(last: Sequence[Glance]) -> str:
    """Return the share of the last occurrences that completed without errors, of those that ran and ended."""
    ended = [glance for glance in last if glance.status in ENDED and glance.status not in _NOT_RUN]
    if not ended:
        return ""
    share = 100 * sum(glance.status is OccurrenceStatus.COMPLETED for glance in ended) / len(ended)
    return f"{share:.1f} %".replace(".0 %", " %")


def state_said(
    listed: ListedJob, viewer: Viewer, last: Glance | None, usual: JobLengths | None, *, with_errors: bool
) -> str:
    """Return the state in words, with its time."""
    record, active = listed.record, listed.active
    match listed.state:
        case JobState.AWAITING_RETRY if active is not None and active.ready_at is not None:
            return f"{active.status}, again {viewer.ago(active.ready_at)}"
        case JobState.RUNNING | JobState.AWAITING_RETRY if active is not None:
            return _takes(active, viewer)
        case JobState.OVERRUNNING if listed.run is not None:
            took = _takes(listed.run, viewer)
            return took if usual is None else f"{took}, {words.usually(usual.p50)}"
        case JobState.LATE:
            return _late_said(record, listed.run, viewer)
        case JobState.PROMISE_BROKEN if listed.breach is not None:
            return f"broke {listed.breach.kind} {viewer.ago(listed.breach.due_at)}"
        case JobState.PAUSED if record.pause is not None:
            return f"paused since {viewer.when(record.pause.since)}"
        case JobState.PARKED:
            is_private = listed.record.parked_reason is not None
            why = why_parked(listed.why, with_errors=with_errors or not is_private)
            return words.cut(f"parked: {why}", 60)
        case JobState.DISABLED:
            return "disabled"
        case JobState.MISSED if listed.missed is not None:
            more = " or more" if listed.missed.is_more else ""
            many = words.count(listed.missed.count, "instant")
            return f"missed {many}{more}, last {viewer.ago(listed.missed.last_at)}"
    if last is None or record.last_end is None:
        return "never ran"
    is_told = listed.state in (JobState.FAILED, JobState.COMPLETED_WITH_ERRORS)
    status = str(listed.state) if is_told else str(last.status)
    return f"{status} {viewer.ago(record.last_end.ended_at)}"


def _takes(run: Glance | Occurrence, viewer: Viewer) -> str:
    since = run.started_at or run.scheduled_for
    return f"{run.status} {words.length(_whole(viewer.now - since))}"


def _late_said(record: JobRecord, run: Glance | None, viewer: Viewer) -> str:
    if run is not None:
        started = " started" if run.started_at is not None else ""
        return f"{run.status},{started} {words.length(late_by(run, viewer.now))} late"
    if record.next_run is None:
        return "late"
    return f"due, not planned, {words.length(_whole(viewer.now - record.next_run))} late"


def _whole(length: timedelta) -> timedelta:
    """Return a length in whole seconds: it grows while it is read."""
    return timedelta(seconds=max(int(length.total_seconds()), 0))
