"""A lane of the timeline: the runs of one job as bars, what is planned as hollow ones, and what did not run as marks.

Runs that are alike and nearer than some pixels become one bar. Nothing is merged across now, and nothing that needs a
look with what does not.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from everytick.domain.statuses import ACTIVE, OccurrenceStatus
from everytick.domain.values import value
from everytick.web.pictures.axis import WIDTH, Axis
from everytick.web.pictures.elements import NOTHING, element, joined, linked
from everytick.web.pictures.marks import cap, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta

    from markupsafe import Markup

NEAR = 3 / WIDTH
"""Runs nearer than this are one bar if they are alike."""

MOST_MARKS = 120
"""A lane with more marks is drawn as a band."""

_PIXEL = 1 / WIDTH
_TAIL = 6 * _PIXEL
"""A tail shorter than this is noise."""

_TICK = 10 * _PIXEL
"""The width of a planned run of which no length is known."""

_THIN = 5 * _PIXEL
"""A run shorter than this is drawn without words of its own where marks are very many."""

_COUNTED = 26 * _PIXEL
"""A merged bar at least so wide has its count written in it."""

_S = OccurrenceStatus
_SPOTS = frozenset({_S.SKIPPED, _S.MISSED})
"""What has no length: a mark at its instant."""

_CAPPED = frozenset({_S.FAILED, _S.FAILED_STALE, *_SPOTS})
_CAPPED_NEAR = 12 * _PIXEL
"""Runs with a cap are one mark if their caps would cover each other."""

_MOST_APART = 12
"""Most merged failures that have a bar each. More of them have one cap."""

_BARS = {
    _S.COMPLETED: "m-done",
    _S.COMPLETED_WITH_ERRORS: "m-look",
    _S.FAILED: "m-wrong",
    _S.FAILED_STALE: "o-wrong",
    _S.CANCELED: "m-rest",
    _S.SUPERSEDED: "m-tail",
}


@value(frozen=True)
class LaneRun:
    """An occurrence in a lane. `count` is more than one where it stands for several instants that did not run."""

    at: datetime
    status: OccurrenceStatus
    started: datetime | None = None
    ended: datetime | None = None
    is_late: bool = False
    title: str = ""
    href: str | None = None
    count: int = 1

    @property
    def begin(self) -> datetime:
        """Where its bar begins."""
        return self.at if self.started is None else self.started

    @property
    def is_active(self) -> bool:
        """Whether it has not ended."""
        return self.status in ACTIVE


@value(frozen=True)
class PlannedRun:
    """A run to come. `is_held` says that it will not run: the job is paused, or a person has skipped it."""

    at: datetime
    title: str = ""
    is_held: bool = False


@value(frozen=True)
class LaneUsual:
    """How long the runs of a job take: half of them at most `p50`, nearly all at most `p95`."""

    p50: timedelta
    p95: timedelta


@value(frozen=True)
class LaneMark:
    """One mark of a lane: the runs it stands for, and where it and each of them begin and end, as shares."""

    runs: tuple[LaneRun, ...]
    begin: float
    end: float
    places: tuple[tuple[float, float], ...] = ()

    @property
    def first(self) -> LaneRun:
        """The oldest run of it."""
        return self.runs[0]

    @property
    def count(self) -> int:
        """How many instants it stands for."""
        return sum(run.count for run in self.runs)


def marks_of(runs: Iterable[LaneRun], axis: Axis) -> list[LaneMark]:
    """Return the marks of a lane: each run that is in the picture belongs to exactly one of them."""
    found: list[LaneMark] = []
    open_marks: dict[object, int] = {}
    for run in sorted(runs, key=lambda lane_run: (lane_run.begin, lane_run.at)):
        mark = _mark(run, axis)
        if mark is None:
            continue
        kind = _kind(run)
        last = open_marks.get(kind)
        near = _CAPPED_NEAR if run.status in _CAPPED else NEAR
        if kind is not None and last is not None and mark.begin - found[last].end < near:
            before = found[last]
            places = (*before.places, *mark.places)
            found[last] = LaneMark((*before.runs, run), before.begin, max(before.end, mark.end), places)
        else:
            open_marks[kind] = len(found)
            found.append(mark)
    return found


def _mark(run: LaneRun, axis: Axis) -> LaneMark | None:
    """Return the mark of one run, None if it lies outside of the picture."""
    end = run.ended or (axis.now if run.is_active else run.begin)
    if end <= axis.after or run.at > axis.through:
        return None
    begin, stop = axis.at(min(run.begin, end)), axis.at(end)
    return LaneMark((run,), begin, stop, ((begin, stop),))


def _kind(run: LaneRun) -> object:
    """Return what runs must share to be one bar; None if a run always stands alone."""
    return None if run.is_active else (run.status, run.is_late)


# ---------------------------------------------------------------------------------------------------------- drawing


def lane_picture(
    marks: Sequence[LaneMark],
    planned: Sequence[PlannedRun],
    axis: Axis,
    usual: LaneUsual | None,
    shapes: str,
    *,
    is_dense: bool = False,
) -> Markup:
    """Return the inside of a lane's svg. `shapes` is the address of the glyphs.

    Where the page has very many marks it is dense: short runs that went well, and short planned ones, are one path,
    without words and links of their own. The table has those.
    """
    ahead = [run for run in planned if axis.now < run.at <= axis.through]
    bars = [mark for mark in marks if mark.first.status not in _SPOTS]
    spots = [mark for mark in marks if mark.first.status in _SPOTS]
    parts: list[Markup] = []
    tick = _tick_of(ahead, axis)
    if is_dense:
        thin = [mark for mark in bars if _is_thin(mark)]
        bars = [mark for mark in bars if not _is_thin(mark)]
        parts.append(_packed("p-done", [(mark.begin, mark.end) for mark in thin]))
        if usual is None or usual.p50 < _THIN * axis.length:
            wide = tick if usual is None else 3 * _PIXEL
            parts.append(
                _packed("p-ghost", [(axis.at(run.at), axis.at(run.at) + wide) for run in ahead if not run.is_held])
            )
            ahead = [run for run in ahead if run.is_held]
    parts += [_planned(run, axis, usual, tick) for run in ahead]
    parts += [_drawn(mark, axis, usual, shapes) for mark in bars]
    parts += [_spot(mark, shapes) for mark in spots]
    return joined(parts)


def _is_thin(mark: LaneMark) -> bool:
    return mark.first.status is _S.COMPLETED and not mark.first.is_late and mark.end - mark.begin < _THIN


def _packed(kind: str, bars: Sequence[tuple[float, float]]) -> Markup:
    """Draw many short bars as one path that is stretched over the lane."""
    if not bars:
        return NOTHING
    path = "".join(
        f"M{left * WIDTH:.1f} 7.5h{max((right - left) * WIDTH, 1):.1f}v11h-{max((right - left) * WIDTH, 1):.1f}z"
        for left, right in bars
    )
    box = f"0 0 {WIDTH} 26"
    return element(
        "svg", element("path", class_=kind, d=path), width="100%", height=26, viewBox=box, preserveAspectRatio="none"
    )


def _drawn(mark: LaneMark, axis: Axis, usual: LaneUsual | None, shapes: str) -> Markup:
    run = mark.first
    match run.status:
        case _S.PENDING | _S.QUEUED:
            return _due(run, axis)
        case _S.RUNNING:
            return _running(run, axis, usual)
        case _S.AWAITING_RETRY:
            return _retrying(run, axis)
        case _:
            return joined((_whisker(run, axis) if len(mark.runs) == 1 else NOTHING, _ended(mark, shapes)))


def _ended(mark: LaneMark, shapes: str) -> Markup:
    """Draw runs that have ended: a bar, and the cap of their status at its end."""
    run = mark.first
    title = _title(_merged_title(mark))
    if run.status is _S.CANCELED:
        bar = _bar("m-rest", mark, title, y=10, high=6)
        return linked(joined((bar, _stroke("m-rest", percent(mark.end), 6, 20))), run.href)
    if run.status is _S.SUPERSEDED:
        x1, x2 = percent(mark.begin), percent(mark.end)
        return linked(element("line", title, class_="m-tail", x1=x1, x2=x2, y1=13, y2=13), run.href)
    parts = _bars(mark, title)
    if run.status is _S.COMPLETED_WITH_ERRORS:
        parts.append(element("svg", element("path", class_="halo", d="M1.5 4v9.5h-9z"), x=percent(mark.end), y=7))
    elif run.status is _S.FAILED:
        parts.append(cap("failed", percent(mark.end), shapes, size=14))
    elif run.status is _S.FAILED_STALE:
        parts.append(cap("failed_stale", percent(mark.end), shapes, size=14))
    elif len(mark.runs) > 1 and mark.end - mark.begin >= _COUNTED:
        middle = percent((mark.begin + mark.end) / 2)
        parts.append(element("text", f"×{mark.count:,}", class_="m on", x=middle, y=17))
    return linked(joined(parts), run.href if len(mark.runs) == 1 else None)


def _bars(mark: LaneMark, title: Markup) -> list[Markup]:
    """Draw the bar of a mark; of some failures that share a cap, a bar each."""
    kind = _BARS.get(mark.first.status, "m-done")
    if mark.first.status not in _CAPPED or not 1 < len(mark.runs) <= _MOST_APART or not mark.places:
        return [_bar(kind, mark, title)]
    return [_box(kind, left, right, title) for left, right in mark.places]


def _title(text: str) -> Markup:
    return element("title", text) if text else NOTHING


def _merged_title(mark: LaneMark) -> str:
    if len(mark.runs) == 1 or not mark.first.title:
        return mark.first.title
    return f"{mark.count:,} {mark.first.status}; the first: {mark.first.title}; the last: {mark.runs[-1].title}"


def _bar(kind: str, mark: LaneMark, title: Markup, *, y: float = 7, high: float = 12) -> Markup:
    return _box(kind, mark.begin, mark.end, title, y=y, high=high)


def _whisker(run: LaneRun, axis: Axis) -> Markup:
    """Draw the wait from the instant to the start: grey in a line, amber if it was late."""
    if run.started is None or run.started - run.at <= axis.pixel or run.started <= axis.after:
        return NOTHING
    kind = "m-wait" if run.is_late else "m-lag"
    return joined((_line(kind, axis.x(run.at), axis.x(run.started)), _stroke(kind, axis.x(run.at), 9, 17)))


def _due(run: LaneRun, axis: Axis) -> Markup:
    """Draw what is due and has not begun: a whisker that grows until now. Late ones are amber."""
    kind = "m-wait" if run.is_late else "m-lag"
    title = _title(run.title)
    box = element("rect", title, class_="o-present", x=axis.x(run.at), y=9, width=3, height=8, rx=1)
    start = element("rect", title, class_=kind, x=axis.x(run.at), y=8, width=1, height=10)
    first = box if run.status is _S.PENDING and not run.is_late else start
    return linked(joined((_line(kind, axis.x(run.at), axis.x(axis.now)), first)), run.href)


def _running(run: LaneRun, axis: Axis, usual: LaneUsual | None) -> Markup:
    """Draw a run until now, hollow on to its usual end, and hatched where it takes longer than nearly all."""
    begin = run.begin
    solid = axis.now if usual is None else min(axis.now, begin + usual.p95)
    parts = [_whisker(run, axis)]
    if usual is not None and axis.shows_now:
        parts.append(_still_to_come(begin, usual, axis))
    title = _title(run.title)
    parts.append(_box("m-present", axis.at(begin), axis.at(solid), title))
    if usual is not None and solid < axis.now:
        left, right = axis.at(solid), axis.at(axis.now)
        parts += [_box("o-look", left, right, y=7.5, high=11), _box("w-look", left, right, title, y=7.5, high=11)]
        if begin + usual.p50 > axis.after:
            parts.append(_stroke("cut", axis.x(begin + usual.p50), 8, 18))
    return linked(joined(parts), run.href)


def _still_to_come(begin: datetime, usual: LaneUsual, axis: Axis) -> Markup:
    end, rare = begin + usual.p50, begin + usual.p95
    ghost = NOTHING
    if end > axis.now:
        ghost = _box("m-ghost", axis.at(axis.now), axis.at(end), y=7.5, high=11)
    return joined((ghost, _tail(max(end, axis.now), rare, axis)))


def _retrying(run: LaneRun, axis: Axis) -> Markup:
    """Draw a run that waits for its next attempt: amber where it ran last, then hatched."""
    left, right = axis.at(run.begin), axis.at(axis.now)
    split = left + min((right - left) / 3, 6 * _PIXEL)
    title = _title(run.title)
    bar, wait = _box("m-look", left, split, title), _box("w-look", split, right, title, y=9, high=8)
    return linked(joined((_whisker(run, axis), bar, wait)), run.href)


def _tick_of(planned: Sequence[PlannedRun], axis: Axis) -> float:
    """Return the width of a planned run of unknown length: narrower where the next one would be covered."""
    gaps = [(after.at - before.at) / axis.length for before, after in pairwise(planned)]
    return max(min([_TICK, *(0.6 * gap for gap in gaps)]), 2 * _PIXEL)


def _planned(run: PlannedRun, axis: Axis, usual: LaneUsual | None, tick: float) -> Markup:
    begin = axis.at(run.at)
    wide = tick if usual is None else max(axis.at(run.at + usual.p50) - begin, 3 * _PIXEL)
    title = _title(run.title)
    kind = "m-ghost paused" if run.is_held else "m-ghost"
    bar = _box(kind, begin, min(begin + wide, 1.0), title, y=7.5, high=11)
    if usual is None or run.is_held:
        return bar
    return joined((_tail(run.at + usual.p50, run.at + usual.p95, axis), bar))


def _tail(begin: datetime, end: datetime, axis: Axis) -> Markup:
    """Draw the time that only rare runs take."""
    left, right = axis.at(begin), axis.at(end)
    if right - left < _TAIL:
        return NOTHING
    return joined((_line("m-tail", percent(left), percent(right)), _stroke("m-tail", percent(right), 10, 16)))


def _spot(mark: LaneMark, shapes: str) -> Markup:
    """Draw instants that did not run: their glyph, or as many as they are where they lie too close."""
    run = mark.first
    title = _title(_merged_title(mark))
    if mark.count > 1 and mark.end - mark.begin >= 2 * _PIXEL:
        line = element("line", class_=_LINES[run.status], x1=percent(mark.begin), x2=percent(mark.end), y1=13, y2=13)
        middle = (mark.begin + mark.end) / 2
        return linked(joined((line, cap(run.status, percent(middle), shapes), title)), run.href)
    return linked(element("g", cap(run.status, percent(mark.begin), shapes), title), run.href)


_LINES = {_S.SKIPPED: "m-lag", _S.MISSED: "m-wait"}


def _box(kind: str, left: float, right: float, *inside: Markup, y: float = 7, high: float = 12) -> Markup:
    # At least a pixel: what has no width is not drawn at all.
    wide = max(right - left, _PIXEL)
    left = min(left, 1 - wide)
    return element(
        "rect",
        *inside,
        class_=kind,
        x=percent(left),
        y=y,
        width=percent(wide),
        height=high,
        rx=1 if wide < _TAIL else 2,
    )


def _line(kind: str, left: str, right: str) -> Markup:
    return element("line", class_=kind, x1=left, x2=right, y1=13, y2=13)


def _stroke(kind: str, x: str, top: float, bottom: float) -> Markup:
    return element("line", class_=kind, x1=x, x2=x, y1=top, y2=bottom)
