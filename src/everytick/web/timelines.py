"""The timeline of one reader: its axis, its lanes and its bands, ready for the template."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from everytick.domain.values import value
from everytick.web import words
from everytick.web.lane_rows import LaneContext, LaneRow, band_counts, band_row, lane_row, planned_counts
from everytick.web.needs_a_look import needing
from everytick.web.pictures.axis import NOW_AT, Axis, labels, over, under
from everytick.web.pictures.elements import NOTHING, element, joined
from everytick.web.pictures.marks import percent
from everytick.web.pictures.timeline import OTHERS, folded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

    from everytick.stores.base import JobRecord
    from everytick.web.now_board import FleetState
    from everytick.web.now_view import NowAsked, View

_LENS_BACK, _LENS_AHEAD = timedelta(minutes=10), timedelta(minutes=5)
"""What the lens shows: the minutes around now, which are some pixels in fifteen hours."""

_LENS_FROM = timedelta(hours=10)
"""In a shorter window every run is wide enough without the lens."""

_LEAST_GAP = timedelta(minutes=1)
"""A shorter time without a node is a restart, and no gap."""

_MANY_MARKS = 300


@value(frozen=True)
class Timeline:
    """The timeline as the template shows it."""

    asked: NowAsked
    axis: Axis
    note: str
    labels: Markup
    below: Markup
    above: Markup
    lanes: Sequence[LaneRow]
    bands: Sequence[LaneRow]
    split: str = ""
    lens_labels: Markup = NOTHING
    has_lens: bool = False


def lens_of(axis: Axis) -> Axis | None:
    """Return the axis of the lens; None where the picture is near enough itself, or does not show now."""
    if axis.length < _LENS_FROM or not axis.shows_now:
        return None
    # Around where now stood when the page was made: a lane that is drawn again later fits into the same picture.
    middle = axis.after + axis.length * NOW_AT
    return Axis(middle - _LENS_BACK, middle + _LENS_AHEAD, axis.now)


def timeline_of(
    view: View,
    with_: LaneContext,
    others: Mapping[str, Sequence[JobRecord]],
    planned: Mapping[str, Mapping[datetime, int]],
) -> Timeline:
    """Return the timeline. `others` are the jobs of each band, `planned` counts its runs to come, by step."""
    fleet, axis, needs = view.fleet, view.axis, needing(view.looks)
    with_ = replace(with_, is_dense=_is_dense(view))
    lanes = [
        lane_row(fleet, view.sight, id_, with_, is_look=id_ in needs) for id_ in view.job_ids if id_ in fleet.records
    ]
    bands = _bands(view, with_, others, planned) if others else []
    return Timeline(
        asked=view.asked,
        axis=axis,
        note=_note(view, len(lanes)),
        labels=labels(axis, with_.viewer),
        below=under(axis, with_.viewer, up_gaps(fleet)),
        above=over(axis),
        lanes=lanes,
        bands=bands,
        split=_split(view, others, lanes),
        lens_labels=NOTHING if with_.lens is None else lens_labels(with_.lens),
        has_lens=with_.lens is not None and bool(lanes),
    )


def _is_dense(view: View) -> bool:
    """Whether the lanes have so many runs that words for each would make the page too large."""
    begin = view.axis.after
    return sum(run.scheduled_for > begin for runs in view.sight.runs.values() for run in runs) > _MANY_MARKS


def other_bands(view: View) -> dict[str, list[JobRecord]]:
    """Return the jobs without a lane by their band; within an open band nothing else is shown."""
    return folded(_others(view))


def _others(view: View) -> dict[str, Sequence[JobRecord]]:
    """Return the jobs without a lane by the band that each has, before small bands are put together."""
    shown, bands = set(view.job_ids), view.fleet.bands
    groups = {band: jobs for band, jobs in view.fleet.groups.items() if not view.asked.open or band == view.asked.open}
    # Only the bands of lanes are gone through: a band may have ten thousand jobs.
    for band in {bands[id_] for id_ in shown if id_ in bands} & groups.keys():
        groups[band] = [record for record in groups[band] if record.job.id not in shown]
    return {band: jobs for band, jobs in groups.items() if jobs}


def _needing_others(view: View) -> list[tuple[str, str]]:
    """Return the band and the mark of each job without a lane that needs a look, in the order of the causes."""
    shown, bands = set(view.job_ids), view.fleet.bands
    marks: dict[str, str] = {}
    for look in view.looks:
        for id_ in look.jobs:
            if id_ not in shown:
                marks.setdefault(id_, look.mark)
    found = [(bands[id_], mark) for id_, mark in marks.items() if id_ in bands]
    return [(band, mark) for band, mark in found if not view.asked.open or band == view.asked.open]


def _bands(
    view: View,
    with_: LaneContext,
    others: Mapping[str, Sequence[JobRecord]],
    planned: Mapping[str, Mapping[datetime, int]],
) -> list[LaneRow]:
    records, sight = view.fleet.records, view.sight
    bands = view.fleet.bands
    rows = {band: band if band in others else OTHERS for band in _others(view)}
    states: dict[str, str] = {}
    for band, mark in _needing_others(view):
        states.setdefault(rows[band], mark)
    of_lanes = [(bands[id_], run) for id_, runs in sight.runs.items() if id_ in records for run in runs]
    counts = band_counts(sight.buckets, rows, view.axis, of_lanes)
    return [
        band_row(
            name,
            jobs,
            counts.get(name, {}),
            planned.get(name, {}),
            with_,
            sight.step,
            state=states.get(name, "fine"),
            href=_band_href(view.asked, name, with_),
        )
        for name, jobs in others.items()
    ]


def _band_href(asked: NowAsked, name: str, with_: LaneContext) -> str:
    """A band opens; the rest of all bands, and what is left in an open one, is a list of jobs."""
    if name == OTHERS or asked.open:
        return with_.link("/jobs", tag=asked.open or None)
    return with_.link("/", **asked.query(open=name))


def planned_by_band(
    others: Mapping[str, Sequence[JobRecord]], axis: Axis, step: timedelta
) -> dict[str, dict[datetime, int]]:
    """Return how many runs of each band are planned, by step. It asks many schedules: call it in a thread."""
    if axis.through <= axis.now:
        return {}
    return {name: planned_counts(jobs, axis, step) for name, jobs in others.items()}


def _note(view: View, lanes: int) -> str:
    total = len(view.fleet.records)
    if view.asked.open:
        jobs = sum(band == view.asked.open for band in view.fleet.bands.values())
        return f"{view.asked.open}: {words.number(lanes)} of {words.count(jobs, 'job')}"
    if not lanes:
        why = "a run is less than a pixel wide here" if view.asked.w == "3d" else "none runs or needs you now"
        return f"{words.count(total, 'job')} in bands: {why}"
    if lanes == total:
        return words.count(total, "job")
    said = f"{words.number(lanes)} of {words.count(total, 'job')} have a lane of their own: "
    return said + ("what needs you, what runs, what is long" if total <= 1000 else "open a band to see its own")


def _split(view: View, others: Mapping[str, Sequence[JobRecord]], lanes: Sequence[LaneRow]) -> str:
    """Return the words between the lanes and the bands."""
    count = sum(map(len, others.values()))
    if not count:
        return ""
    many = len(_needing_others(view))
    needs = f"{words.count(many, 'job')} of them need{'s' * (many == 1)} a look" if many else "none of them needs you"
    rest = "The other " if lanes else ""
    step = words.length(view.sight.step)
    jobs = f"{rest}{words.count(count, 'job')} by tag, owner or queue"
    return f"{jobs}: starts in {step}, each band to its own height, {needs}"


def up_gaps(fleet: FleetState) -> list[tuple[datetime, datetime]]:
    """Return when no node was up, as far as the nodes that are remembered tell."""
    spans = sorted(
        (node.facts.started_at, fleet.now if node in fleet.living else node.beat_at)
        for node in fleet.nodes
        if node.facts is not None
    )
    gaps: list[tuple[datetime, datetime]] = []
    until: datetime | None = None
    for begin, end in spans:
        if until is not None and begin - until > _LEAST_GAP:
            gaps.append((until, begin))
        until = end if until is None else max(until, end)
    if until is not None and fleet.now - until > _LEAST_GAP:
        gaps.append((until, fleet.now))
    return gaps


def lens_labels(lens: Axis) -> Markup:
    """Return the row above the lens: how many minutes ago, and ahead."""
    middle = lens.after + _LENS_BACK
    parts = [
        element("text", said, class_="m", x=percent(lens.at(middle + timedelta(minutes=minutes))), y=17)
        for minutes, said in ((-8, "−8 min"), (0, "now"), (4, "+4"))
    ]
    return element("svg", joined(parts), aria_hidden="true")
