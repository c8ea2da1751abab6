"""The rows of the timeline: what a lane or a band shows, says and links to, from what the board knows."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from everytick.access.people import tags_of
from everytick.domain.agenda import alike
from everytick.domain.decisions import Why
from everytick.domain.questions import step_of
from everytick.domain.statuses import FAILURES, OccurrenceStatus
from everytick.domain.upcoming import coming_runs, pause_at, skipped_by_hand
from everytick.domain.values import value
from everytick.web import words
from everytick.web.job_standing import late_by, overruns, state_of
from everytick.web.pictures.bands import BandCounts, band_picture, steps_of
from everytick.web.pictures.elements import NOTHING, element, joined
from everytick.web.pictures.lanes import (
    MOST_MARKS,
    LaneRun,
    LaneUsual,
    PlannedRun,
    lane_picture,
    marks_of,
)
from everytick.web.pictures.marks import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from markupsafe import Markup

    from everytick.access.people import Person
    from everytick.domain.decisions import Span
    from everytick.domain.questions import Bucket, Glance, JobLengths
    from everytick.domain.snapshots import JobSnapshot
    from everytick.stores.base import JobRecord
    from everytick.web.now_board import FleetState, Sight
    from everytick.web.pictures.axis import Axis
    from everytick.web.words import Viewer

_MOST_UNRUN = 200
"""Most instants of one span that are drawn one by one."""

_S = OccurrenceStatus
_WITH_ERRORS = FAILURES | {_S.AWAITING_RETRY}
BAND_PARTS = 48
"""About how many steps before now a busy lane has, which is drawn as a band."""


@value(frozen=True)
class LaneRow:
    """One row of the timeline, as the template shows it."""

    name: str
    href: str
    state: str
    said: str
    picture: Markup
    lens: Markup = NOTHING
    note: str = ""
    is_look: bool = False
    is_band: bool = False
    next_at: datetime | None = None
    next_said: str = ""
    rev: int = 0


@value(frozen=True)
class LaneContext:
    """What all rows of one page share: the axes, the zone, the address of the glyphs, and how links are made."""

    axis: Axis
    lens: Axis | None
    viewer: Viewer
    shapes: str
    link: Callable[..., str]
    reader: Person
    rev: int = 0
    is_dense: bool = False

    def shows(self, record: JobRecord, run: Glance) -> bool:
        """Whether the reader may see why a run ended: an error may hold what only operators see."""
        return run.status not in _WITH_ERRORS or self.reader.sees_payloads(
            tags_of(record.job.name, record.job.settings.tags)
        )


def lane_row(fleet: FleetState, sight: Sight, job_id: str, with_: LaneContext, *, is_look: bool = False) -> LaneRow:
    """Return the lane of one job."""
    record, snapshot = fleet.records[job_id], sight.snapshots.get(job_id)
    runs = list(sight.runs.get(job_id, ()))
    active = [run for run in runs if run.ended_at is None and run.status in _UNDER_WAY]
    length = fleet.lengths.get(job_id)
    usual = None if length is None else LaneUsual(length.p50, length.p95)
    drawn = [_lane_run(record, run, length, fleet.now, with_) for run in runs] + unrun(
        sight.spans.get(job_id, ()), snapshot, with_.axis, with_
    )
    planned = [] if snapshot is None else planned_runs(snapshot, record, with_.axis, with_)
    state = state_of(record, active, fleet.now, trouble=fleet.troubles.get(job_id))
    if state == "fine" and any(breach.job_id == job_id for breach in fleet.breaches):
        state = "promise"
    next_at = _next(record, planned, fleet.now)
    return LaneRow(
        record.job.name,
        with_.link("/jobs/{}", record.job.name),
        state,
        _said(record, state, next_at, drawn, with_.viewer),
        _picture(drawn, planned, with_.axis, usual, with_),
        NOTHING if with_.lens is None else _lens(drawn, planned, with_.lens, usual, with_),
        _note(record, active, length, fleet.now, with_.viewer),
        is_look or any(late_by(run, fleet.now) or overruns(run, length, fleet.now) for run in active),
        next_at=next_at,
        next_said=_no_next(record, fleet.now),
        rev=with_.rev,
    )


_UNDER_WAY = frozenset({_S.PENDING, _S.QUEUED, _S.RUNNING, _S.AWAITING_RETRY})


def _picture(
    runs: Sequence[LaneRun], planned: Sequence[PlannedRun], axis: Axis, usual: LaneUsual | None, with_: LaneContext
) -> Markup:
    """Return the marks of a lane; of a busy one the band of its starts."""
    marks = marks_of(runs, axis)
    ahead = [run for run in planned if axis.now < run.at <= axis.through]
    shown = [run for run in ahead if run.at > axis.after]
    if len(marks) + len(ahead) <= MOST_MARKS:
        return lane_picture(marks, shown, axis, usual, with_.shapes, is_dense=with_.is_dense)
    step = axis.length / BAND_PARTS / 2
    begun = [(run.begin, run.status in FAILURES) for run in runs if axis.after < run.begin <= axis.now]
    coming = steps_of(((run.at, False) for run in shown), axis, step)
    counts = {at: counted.starts for at, counted in coming.items()}
    return band_picture(steps_of(begun, axis, step), _going_on(counts, ahead, axis, step), axis, step)


def _lens(
    runs: Sequence[LaneRun], planned: Sequence[PlannedRun], axis: Axis, usual: LaneUsual | None, with_: LaneContext
) -> Markup:
    """Return the minutes around now, without words and links: the lane beside it has those."""
    near = [replace(run, title="", href=None) for run in runs if (run.ended or run.begin) > axis.after or run.is_active]
    ahead = [replace(run, title="") for run in planned if run.at <= axis.through]
    x = percent(axis.at(axis.now))
    line = element("line", class_="nowline", x1=x, x2=x, y1=0, y2=26)
    return joined((_picture(near, ahead, axis, usual, with_), line))


def _going_on(
    counts: dict[datetime, int], ahead: Sequence[PlannedRun], axis: Axis, step: timedelta
) -> dict[datetime, int]:
    """Return the counts with the same pace to the end of the picture: of a busy job only the next runs are known."""
    if len(ahead) <= MOST_MARKS:
        return counts
    pace = (len(ahead) - 1) / max((ahead[-1].at - ahead[0].at) / step, 0.001)
    # From the picture's beginning: the next runs may lie years before it.
    at = max(counts, default=axis.after)
    while at + step / 2 < axis.through:
        counts[at] = round(pace)
        at += step
    return counts


# ------------------------------------------------------------------------------------------------------- one run


def _lane_run(record: JobRecord, run: Glance, usual: JobLengths | None, now: datetime, with_: LaneContext) -> LaneRun:
    late = late_by(run, now)
    why = words.cut(run.why) if with_.shows(record, run) and run.why != Why.ON_TIME else ""
    return LaneRun(
        run.scheduled_for,
        run.status,
        run.started_at,
        run.ended_at,
        bool(late),
        run_title(run, why, usual, now, with_.viewer),
        with_.link("/occurrences/{}", run.id),
    )


def run_title(run: Glance, why: str, usual: JobLengths | None, now: datetime, viewer: Viewer) -> str:
    """Return a run in words: when, what became of it, how long it took, and why."""
    late = late_by(run, now)
    parts = [f"{viewer.when(run.scheduled_for)} {run.status}"]
    if run.started_at is not None:
        taken = (run.ended_at or now) - run.started_at
        parts.append(f"took {words.length(taken)}" if run.ended_at else f"for {words.length(taken)}")
    if late:
        parts.append(f"{words.length(late)} late")
    if run.ended_at is None and usual is not None:
        parts.append(words.usually(usual.p50, usual.p95))
    told = ", ".join(parts)
    return f"{told}: {why}" if why else told


def unrun(spans: Iterable[Span], snapshot: JobSnapshot | None, axis: Axis, with_: LaneContext) -> list[LaneRun]:
    """Return the instants of spans that did not run, one by one as far as their schedule is known."""
    known = {} if snapshot is None else {edition.job.version: edition.job for edition in snapshot.editions}
    found: list[LaneRun] = []
    for span in spans:
        why = f"{span.why}, {span.detail}" if span.detail else str(span.why)
        after, through = max(span.after, axis.after), min(span.through, axis.through)
        if after >= through:
            continue
        job = known.get(span.version)
        instants: Sequence[datetime] = ()
        if job is not None:
            instants = job.bound(None).instants(after, through, _MOST_UNRUN)
        if len(instants) in (0, _MOST_UNRUN):
            count = span.count or 10_000
            title = f"{words.number(count)} {span.status} until {with_.viewer.when(span.through)}: {why}"
            found.append(LaneRun(max(after, span.after), span.status, ended=through, title=title, count=count))
            continue
        found += [LaneRun(at, span.status, title=f"{with_.viewer.when(at)} {span.status}: {why}") for at in instants]
    return found


def planned_runs(snapshot: JobSnapshot, record: JobRecord, axis: Axis, with_: LaneContext) -> list[PlannedRun]:
    """Return the runs to come, up to some more than a lane shows, and those that are held by a pause or a person."""
    if axis.through <= axis.now:
        return []
    viewer = with_.viewer
    coming = coming_runs(snapshot, axis.now, MOST_MARKS + 1)
    found = [
        PlannedRun(run.at, f"planned {viewer.when(run.at)}" + (f", {run.mark} {run.detail}" if run.mark else ""))
        for run in coming
        if run.at <= axis.through
    ]
    if snapshot.next_request_at is not None and axis.now < snapshot.next_request_at <= axis.through:
        found.append(PlannedRun(snapshot.next_request_at, f"asked for at {viewer.when(snapshot.next_request_at)}"))
    found += [
        PlannedRun(run.at, f"{viewer.when(run.at)} is skipped {run.detail}", is_held=True)
        for run in skipped_by_hand(snapshot, axis.now)
        if run.at <= axis.through
    ]
    return sorted(found + _held(snapshot, record, axis, viewer), key=lambda run: run.at)


def _held(snapshot: JobSnapshot, record: JobRecord, axis: Axis, viewer: Viewer) -> list[PlannedRun]:
    """Return the instants to come that a pause holds back."""
    if not any(pause.holds(axis.now) for pause in snapshot.pauses) or not record.job.enabled:
        return []
    found = []
    for at in record.job.bound(None).instants(axis.now, axis.through, MOST_MARKS):
        pause = pause_at(snapshot, at)
        if pause is not None:
            becomes = "will be skipped" if str(pause.missed) == "skip" else "is made up for later"
            title = f"{viewer.when(at)} {becomes}: paused {pause.detail}".rstrip()
            found.append(PlannedRun(at, title, is_held=True))
    return found


# ------------------------------------------------------------------------------------------------- words of a lane


def _next(record: JobRecord, planned: Sequence[PlannedRun], now: datetime) -> datetime | None:
    for run in planned:
        if run.at > now and not run.is_held:
            return run.at
    return record.next_run if record.next_run is not None and record.next_run > now and record.pause is None else None


def _no_next(record: JobRecord, now: datetime) -> str:
    if record.pause is not None and record.pause.holds(now):
        return "paused"
    return "disabled" if not record.job.enabled else "due now" if record.next_run else "–"


def _note(record: JobRecord, active: Sequence[Glance], usual: JobLengths | None, now: datetime, viewer: Viewer) -> str:
    """Return the words beside the name: how long, how late, since when."""
    if record.pause is not None and record.pause.holds(now):
        return f"since {viewer.day_or_clock(record.pause.since)}"
    for run in active:
        if overruns(run, usual, now) and run.started_at is not None:
            return words.length(now - run.started_at)
        if late := late_by(run, now):
            return f"+{words.length(late)}"
        if run.status is _S.AWAITING_RETRY:
            return "retries"
    return f"{len(active)} at once" if len(active) > 1 else ""


def _said(record: JobRecord, state: str, next_at: datetime | None, runs: Sequence[LaneRun], viewer: Viewer) -> str:
    """Return a lane as one sentence, which is read aloud instead of the picture."""
    counts: dict[str, int] = {}
    for run in runs:
        counts[str(run.status)] = counts.get(str(run.status), 0) + run.count
    told = ", ".join(f"{words.number(count)} {status}" for status, count in counts.items())
    coming = f"next {viewer.planned(next_at)}" if next_at is not None else "no next run"
    stands = "its last run was good" if state == "fine" else state
    return f"{record.job.name}: {stands}, {coming}" + (f"; in this picture {told}" if told else "")


# ---------------------------------------------------------------------------------------------------------- bands


def band_row(
    name: str,
    jobs: Sequence[JobRecord],
    counts: Mapping[datetime, BandCounts],
    planned: Mapping[datetime, int],
    with_: LaneContext,
    step: timedelta,
    *,
    state: str,
    href: str,
) -> LaneRow:
    """Return the band of several jobs: how many of them begin in each step of time."""
    starts = sum(counted.starts for counted in counts.values())
    failed = sum(counted.failed for counted in counts.values())
    hours = (min(with_.axis.through, with_.axis.now) - with_.axis.after) / timedelta(hours=1)
    rate = words.rate(starts / hours) if hours > 0 else "–"
    bad = f", {words.number(failed)} of them failed" if failed else ""
    said = f"{name}, {words.count(len(jobs), 'job')}: {words.count(starts, 'start')} in this picture{bad}"
    picture = band_picture(counts, planned, with_.axis, step)
    note = words.count(len(jobs), "job")
    return LaneRow(name, href, state, said, picture, note=note, is_band=True, next_said=rate, rev=with_.rev)


def band_counts(
    buckets: Iterable[Bucket], groups: Mapping[str, str], axis: Axis, lanes: Iterable[tuple[str, Glance]]
) -> dict[str, dict[datetime, BandCounts]]:
    """Return the starts of each band by step, without those of jobs that have a lane of their own.

    `groups` names the row of each band: some bands share one. `lanes` are the runs of the lanes, each with its band.
    """
    found: dict[str, dict[datetime, BandCounts]] = {}
    cells: dict[tuple[str, datetime], BandCounts] = {}
    buckets = [bucket for bucket in buckets if axis.after < bucket.at < axis.through]
    for bucket in buckets:
        failed = bucket.tally.of(*FAILURES)
        cells[bucket.group, bucket.at] = BandCounts(bucket.tally.total, failed)
    steps = sorted({bucket.at for bucket in buckets})
    for band, run in lanes:
        at = _step_with(steps, run.scheduled_for)
        if at is not None and (band, at) in cells:
            old = cells[band, at]
            failed = old.failed - (run.status in FAILURES)
            cells[band, at] = BandCounts(max(old.starts - 1, 0), max(failed, 0))
    for (band, at), counts in cells.items():
        row = groups.get(band)
        if row is not None and counts.starts:
            own = found.setdefault(row, {})
            own[at] = own.get(at, BandCounts()) + counts
    return found


def _step_with(steps: Sequence[datetime], moment: datetime) -> datetime | None:
    from bisect import bisect_right

    place = bisect_right(steps, moment) - 1
    return steps[place] if place >= 0 else None


def planned_counts(
    records: Sequence[JobRecord], axis: Axis, step: timedelta, *, most_jobs: int = 150, most_runs: int = 400
) -> dict[datetime, int]:
    """Return how many runs of these jobs are planned in each step after now.

    Of many jobs some are asked, evenly chosen, and the counts are scaled up.
    """
    running = [
        record for record in records if record.job.enabled and record.pause is None and record.next_run is not None
    ]
    running = [record for record in running if record.next_run is not None and record.next_run <= axis.through]
    share = max(len(running) / most_jobs, 1.0)
    some = [running[int(place * share)] for place in range(min(len(running), most_jobs))]
    found: dict[datetime, float] = {}
    for same in alike((record.job, _last_end(record), record) for record in some):
        first = same[0]
        for at in first.job.bound(_last_end(first)).instants(axis.now, axis.through, most_runs):
            place = step_of(at, step)
            found[place] = found.get(place, 0.0) + share * len(same)
    return {at: round(count) for at, count in sorted(found.items())}


def _last_end(record: JobRecord) -> datetime | None:
    return None if record.last_end is None else record.last_end.ended_at
