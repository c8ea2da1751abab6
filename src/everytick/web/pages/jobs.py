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
from everytick.web.framing import viewer_of
from everytick.web.job_list import JobFilter, JobList, JobState, ListedJob, job_list
from everytick.web.kept_pages import kept_for_a_moment
from everytick.web.known_jobs import known_jobs
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
    viewer, known = viewer_of(request, await tick.now()), known_jobs(request)
    wanted = JobFilter.read(request.query_params)
    found = await job_list(tick, await known.records(), wanted, viewer.now)
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
            (state, found.counts[state], _MARKS.get(state, str(state))) for state in _CHIPS if found.counts.get(state)
        ],
        "following": shown[-1].name if has_more else "",
        "may_change": who.may_somewhere(Role.OPERATOR),
        "proposals": await known.proposals() if who.may(Role.OPERATOR) else [],
        "views": views_of(request, "jobs"),
    }
    return await page(request, "jobs.html", viewer=viewer, **values)


def _said(found: JobList, wanted: JobFilter) -> str:
    """Return the heading: how many jobs, how many need a look, how many are paused."""
    if not found.total:
        return "No job is meant by this filter." if wanted.query else "No job yet."
    paused = found.counts.get(JobState.PAUSED, 0)
    parts = []
    if found.need_look:
        parts.append(f"{words.number(found.need_look)} {'needs' if found.need_look == 1 else 'need'} a look")
    if paused:
        parts.append(f"{words.number(paused)} {'is' if paused == 1 else 'are'} paused")
    return f"{words.count(found.total, 'job')}{'; ' if parts else ''}{', '.join(parts)}."


async def _rows(tick: Everytick, who: Person, viewer: Viewer, shown: Sequence[ListedJob]) -> list[JobLine]:
    """Return the rows of some jobs: two questions, whatever their number."""
    if not shown:
        return []
    ids = [each.record.job.id for each in shown]
    last, lengths = await tick.last_runs(ids, 30), await tick.lengths(ids)
    return [_row(each, who, viewer, last.get(id_, ()), lengths) for each, id_ in zip(shown, ids, strict=True)]


def _row(
    each: ListedJob, who: Person, viewer: Viewer, last: Sequence[Glance], lengths: Mapping[str, JobLengths]
) -> JobLine:
    job = each.record.job
    sees_errors = who.sees_payloads(tags_of(job.name, job.settings.tags))
    usual = lengths.get(job.id)
    past = [_square(glance, viewer, sees_errors) for glance in reversed(last)]
    return JobLine(
        each,
        _mark(each, last),
        state_said(each, viewer, last[0] if last else None, usual),
        small_strip(past, _planned(each, viewer)),
        "" if usual is None else words.length(usual.p50),
        _good(last),
        sees_errors,
    )


def _square(glance: Glance, viewer: Viewer, sees_errors: bool) -> Square:
    plain = Square(glance.status)
    if went_well(plain):
        return plain  # nobody would read its title
    why = f": {glance.why}" if glance.why and sees_errors else ""
    return Square(glance.status, words.cut(f"{viewer.when(glance.scheduled_for)} {glance.status}{why}"))


def _planned(each: ListedJob, viewer: Viewer) -> list[Square]:
    """Return the next two runs, as far as the list knows them: the first from the store, the second by the schedule."""
    first, job = each.record.next_run, each.record.job
    if first is None:
        return []
    second = job.bound(None).next_after(max(first, viewer.now))
    kind = PAUSED if each.record.pause is not None else PLANNED
    return [Square(kind) for at in (first, second) if at is not None]


def _mark(each: ListedJob, last: Sequence[Glance]) -> str:
    """Return the glyph of a job. One whose last run had errors is not marked as fine, nor does it need a look."""
    with_errors = OccurrenceStatus.COMPLETED_WITH_ERRORS
    if each.state is JobState.FINE and last and last[0].status is with_errors:
        return str(with_errors)
    return _MARKS.get(each.state, str(each.state))


def _good(last: Sequence[Glance]) -> str:
    """Return the share of the last occurrences that completed without errors, of those that ran and ended."""
    ended = [glance for glance in last if glance.status in ENDED and glance.status not in _NOT_RUN]
    if not ended:
        return ""
    share = 100 * sum(glance.status is OccurrenceStatus.COMPLETED for glance in ended) / len(ended)
    return f"{share:.1f} %".replace(".0 %", " %")


def state_said(each: ListedJob, viewer: Viewer, last: Glance | None, usual: JobLengths | None = None) -> str:
    """Return the state in words, with its time."""
    record, active = each.record, each.active
    match each.state:
        case JobState.AWAITING_RETRY if active is not None and active.ready_at is not None:
            return f"{active.status}, again {viewer.ago(active.ready_at)}"
        case JobState.RUNNING | JobState.OVERRUNNING | JobState.AWAITING_RETRY if active is not None:
            since = active.started_at or active.scheduled_for
            took = f"{active.status} {words.length(_whole(viewer.now - since))}"
            is_long = each.state is JobState.OVERRUNNING and usual is not None
            return f"{took}, {words.usually(usual.p50)}" if is_long and usual is not None else took
        case JobState.LATE:
            return _late_said(record, active, viewer)
        case JobState.PROMISE_BROKEN if each.breach is not None:
            return f"broke {each.breach.kind} {viewer.ago(each.breach.due_at)}"
        case JobState.PAUSED if record.pause is not None:
            return f"paused since {viewer.when(record.pause.since)}"
        case JobState.PARKED:
            return words.cut(f"parked: {record.parked_reason}", 60)
        case JobState.DISABLED:
            return "disabled"
    if last is None or record.last_end is None:
        return "never ran"
    status = "failed" if each.state is JobState.FAILED else str(last.status)
    return f"{status} {viewer.ago(record.last_end.ended_at)}"


def _late_said(record: JobRecord, active: Occurrence | None, viewer: Viewer) -> str:
    due = record.next_run if active is None else active.line_at or active.scheduled_for
    if due is None:
        return "late"
    began = viewer.now if active is None or active.started_at is None else active.started_at
    started = " started" if began < viewer.now else ""
    return f"{active.status if active else 'due'},{started} {words.length(_whole(began - due))} late"


def _whole(length: timedelta) -> timedelta:
    """Return a length in whole seconds: it grows while it is read."""
    return timedelta(seconds=max(int(length.total_seconds()), 0))
