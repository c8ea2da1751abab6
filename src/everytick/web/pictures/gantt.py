"""The Gantt of one occurrence: a row for each task, with its attempts, its waits for a retry and the wait for a slot.

Long stretches in which nothing ran are folded, so that a burst before and one after them can both be read.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from everytick.domain.statuses import AttemptStatus, RunStatus
from everytick.domain.values import value
from everytick.web.pictures.elements import NOTHING, element, joined
from everytick.web.pictures.marks import percent
from everytick.web.pictures.usual import step_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from markupsafe import Markup

MOST_ROWS = 40
"""More tasks than this are shortened to those that matter."""

LONGEST_SHOWN = 10
"""Of many tasks that went well, how many of the longest are shown."""

_BREAK = 0.024
"""A folded stretch takes this share of the width: 24 of 1,000 pixels."""

_LEAST_FOLD = timedelta(seconds=1)
"""A shorter stretch is not folded: a run of some milliseconds would have more breaks than bars."""

_HALF = 0.5
"""The part of the width that a stretch without anything may take before it is folded."""

_TICKS = 6
_MIDDLE, _BAR = 19, 16
_NUMBERED = 0.022
"""A bar under this share of the width has no room for its number."""

_LETTER = 0.0105
"""The share of the width that a letter of a word beside a bar takes: 7 of 650 pixels."""

_MOST_BEHIND = 0.25
"""The largest share of the width that is left free for words behind the last bar."""

_WRONG = frozenset({AttemptStatus.FAILED, AttemptStatus.TIMEOUT})


@value
class AttemptBar:
    """One attempt. `end` is None while it runs."""

    number: int
    status: AttemptStatus
    start: datetime
    end: datetime | None = None
    title: str = ""


@value
class TaskRow:
    """One task: its bars in order, a note below its name, and a word after its last bar."""

    task: str
    status: RunStatus
    note: str = ""
    bars: tuple[AttemptBar, ...] = ()
    after: str = ""
    next_at: datetime | None = None


@value
class IdleFold:
    """A stretch without anything, drawn as a break."""

    start: datetime
    end: datetime


class GanttScale:
    """How times become places from 0 to 1. Folded stretches take 24 of 1,000 pixels each."""

    def __init__(self, since: datetime, through: datetime, folds: Sequence[IdleFold]) -> None:
        self.since, self.through, self.folds = since, max(through, since + timedelta(milliseconds=1)), tuple(folds)
        hidden = sum(((fold.end - fold.start) for fold in self.folds), timedelta(0))
        self.shown = self.through - self.since - hidden
        self._for_time = 1 - _BREAK * len(self.folds)

    def with_room_behind(self, share: float) -> GanttScale:
        """Return the scale that leaves this share of the width free behind its end."""
        return GanttScale(self.since, self.through + self.shown * (share / (self._for_time - share)), self.folds)

    def __call__(self, at: datetime) -> float:
        """Return the place of a moment. A later one is never further left."""
        at = min(max(at, self.since), self.through)
        place, passed = 0.0, at - self.since
        for fold in self.folds:
            if at <= fold.start:
                break
            inside = min(at, fold.end) - fold.start
            passed -= inside
            place += _BREAK * (inside / (fold.end - fold.start))
        return place + self._for_time * (passed / self.shown)


def folded_scale(since: datetime, through: datetime, busy: Sequence[tuple[datetime, datetime]]) -> GanttScale:
    """Return the scale on which every stretch without anything that takes over half of the width is folded."""
    gaps = [gap for gap in _gaps(since, busy) if gap.end - gap.start >= _LEAST_FOLD]
    folds: list[IdleFold] = []
    while True:
        scale = GanttScale(since, through, sorted(folds, key=lambda fold: fold.start))
        longest = max((gap for gap in gaps if gap not in folds), key=lambda gap: gap.end - gap.start, default=None)
        if longest is None or longest.end - longest.start <= _HALF * scale.shown:
            return scale
        if longest.end - longest.start >= scale.shown:
            return scale
        folds.append(longest)


def shortened(rows: Sequence[TaskRow]) -> tuple[list[TaskRow], int]:
    """Return the rows that matter and how many were left out: of over 40, those that went wrong and the longest."""
    if len(rows) <= MOST_ROWS:
        return list(rows), 0
    well = [row for row in rows if row.status in (RunStatus.SUCCESS, RunStatus.PENDING, RunStatus.SKIPPED)]
    matter = {row.task for row in rows} - {row.task for row in well}
    longest = sorted(well, key=lambda row: -_length(row).total_seconds())[:LONGEST_SHOWN]
    kept = (matter | {row.task for row in longest}) if matter or longest else set()
    chosen = [row for row in rows if row.task in kept][:MOST_ROWS]
    return chosen, len(rows) - len(chosen)


@value
class GanttDrawing:
    """The Gantt in the parts that a page puts together: the axis, and a picture for each row."""

    axis: Markup
    rows: tuple[tuple[TaskRow, Markup], ...]


def gantt(
    rows: Sequence[TaskRow],
    *,
    ready: datetime,
    now: datetime,
    words: Callable[[timedelta], str],
    clock: Callable[[datetime], str],
    usual_end: datetime | None = None,
    rare_end: datetime | None = None,
) -> GanttDrawing:
    """Draw the rows from `ready`, when the occurrence might begin, to its end, or past now to its usual end.

    What runs past `rare_end` takes longer than nearly all before it, and is hatched. `words` says a length and `clock`
    a time of day.
    """
    busy = [(bar.start, bar.end or now) for row in rows for bar in row.bars]
    is_running = any(bar.end is None for row in rows for bar in row.bars)
    waits = [row.next_at for row in rows if row.next_at is not None]
    # Room for the ghost of the next attempt.
    waits = [moment + (moment - min([ready, moment])) * 0.04 for moment in waits]
    is_open = is_running or bool(waits)
    since = min([ready, *(start for start, _ in busy)])
    ends = [end for _, end in busy] + [
        moment for moment in (usual_end if is_open else None, *waits) if moment is not None
    ]
    through = max([since + timedelta(milliseconds=10), *ends, *([now] if is_open else [])])
    is_long = is_running and rare_end is not None and rare_end < now
    # The hollow bar to the usual end and the ghost of the next attempt are something too: they are not folded.
    coming = [(now, max(now, usual_end) if is_running and usual_end is not None else now)] if is_open else []
    coming += [(row.next_at, through) for row in rows if row.next_at is not None]
    scale = folded_scale(since, through, [*busy, *coming])
    scale = scale.with_room_behind(_behind(rows, scale, now, is_long=is_long))
    ticks = _ticks(scale, clock, words)
    started = min((start for start, _ in busy), default=None)
    open_until = _Open(now, usual_end, rare_end) if is_open else None
    drawn = [(row, _row(row, scale, ticks, words, open_until, _wait(row, started, ready))) for row in rows]
    return GanttDrawing(_axis(scale, ticks, words), tuple(drawn))


@value
class _Open:
    """Of an occurrence that goes on: now, its usual end, and the end that nearly all before it kept."""

    now: datetime
    usual_end: datetime | None
    rare_end: datetime | None


def _behind(rows: Sequence[TaskRow], scale: GanttScale, now: datetime, *, is_long: bool) -> float:
    """Return the share to leave free for the words of bars that are too short to hold them, or hatched."""
    wanted = [0.0]
    for row in rows:
        for bar in row.bars[-1:]:
            room, end = _room(row.after), scale(bar.end or now)
            is_at_the_end, is_short = end > 1 - room, end - scale(bar.start) < room
            if row.after and is_at_the_end and (is_short or (is_long and bar.end is None)):
                wanted.append(room)
    return min(max(wanted), _MOST_BEHIND)


def _room(text: str) -> float:
    """Return the share of the width that a word needs, with some pixels beside it."""
    return (len(text) + 2) * _LETTER


def _wait(row: TaskRow, started: datetime | None, ready: datetime) -> tuple[datetime, datetime] | None:
    """Return the wait for a slot, for the row that began first."""
    if started is None or not row.bars or row.bars[0].start != started or started <= ready:
        return None
    return ready, started


# ---------------------------------------------------------------------------------------------------------- the parts


def _gaps(since: datetime, busy: Sequence[tuple[datetime, datetime]]) -> list[IdleFold]:
    """Return the stretches in which no attempt ran. What follows the last one is none."""
    found: list[IdleFold] = []
    reached = since
    for start, end in sorted(busy):
        if start > reached:
            found.append(IdleFold(reached, start))
        reached = max(reached, end)
    return found


def _ticks(
    scale: GanttScale, clock: Callable[[datetime], str], words: Callable[[timedelta], str]
) -> list[tuple[float, str]]:
    """Return the places of the axis with their words: the clock at the left, then the time since."""
    step = step_of(scale.shown, _TICKS)
    found = [(0.0, clock(scale.since))]
    at = scale.since + step
    while at < scale.through and len(found) < 4 * _TICKS:
        hidden = next((fold for fold in scale.folds if fold.start < at < fold.end), None)
        if hidden is not None:
            # The next step after the break.
            at = scale.since + step * ((hidden.end - scale.since) // step + 1)
            continue
        place = scale(at)
        if place - found[-1][0] > 0.07 and place < 0.965:
            found.append((place, f"+{_elapsed(at - scale.since, step, words)}"))
        at += step
    return found


def _elapsed(passed: timedelta, step: timedelta, words: Callable[[timedelta], str]) -> str:
    """Return the words of a place of the axis. Steps of seconds are told apart also hours after the start."""
    minute = timedelta(minutes=1)
    seconds = passed % minute // timedelta(seconds=1)
    if step >= minute or passed < timedelta(minutes=30) or not seconds:
        return words(passed)
    return f"{words(passed - passed % minute)} {seconds:02d} s"


def _axis(scale: GanttScale, ticks: Sequence[tuple[float, str]], words: Callable[[timedelta], str]) -> Markup:
    texts = [element("text", said, class_="m" if at else None, x=percent(at), y=15) for at, said in ticks]
    breaks = [
        _fold_words((scale(fold.start) + scale(fold.end)) / 2, words(fold.end - fold.start)) for fold in scale.folds
    ]
    return element("svg", *texts, *breaks, height=26, aria_hidden="true")


def _fold_words(middle: float, said: str) -> Markup:
    """Write how long a folded stretch is in the middle of its break, or at the edge that it would pass over."""
    half = len(said) * _LETTER / 2
    kind, at = ("m ", percent(middle)) if half < middle < 1 - half else ("", "0") if middle < half else ("r ", "100%")
    return element("text", said, class_=f"{kind}fold-words", x=at, y=24)


def _row(
    row: TaskRow,
    scale: GanttScale,
    ticks: Sequence[tuple[float, str]],
    words: Callable[[timedelta], str],
    going: _Open | None,
    wait: tuple[datetime, datetime] | None,
) -> Markup:
    rules = [element("line", class_="rule", x1=percent(at), x2=percent(at), y1=-1, y2=39) for at, _ in ticks]
    parts = [*rules, *(_break(scale, fold) for fold in scale.folds)]
    if wait is not None and scale(wait[1]) - scale(wait[0]) > 0.001:
        told = f"waited {words(wait[1] - wait[0])} for a slot"
        parts.append(
            element(
                "line",
                element("title", told),
                class_="m-lag",
                x1=percent(scale(wait[0])),
                x2=percent(scale(wait[1])),
                y1=_MIDDLE,
                y2=_MIDDLE,
            )
        )
    for before, bar in zip((None, *row.bars), row.bars, strict=False):
        if before is not None and before.end is not None:
            parts.append(_retry_wait(scale, before.end, bar.start, words))
        parts.append(_bar(scale, bar, going))
    last = row.bars[-1] if row.bars else None
    if last is not None and last.end is not None and row.next_at is not None:
        parts.append(_retry_wait(scale, last.end, row.next_at, words))
        parts.append(_ghost(scale(row.next_at), min(scale(row.next_at) + 0.012, 1.0)))
    if last is not None and last.end is None and going is not None and going.usual_end is not None:
        parts.append(_ghost(scale(going.now), scale(going.usual_end)))
    parts.append(_after(row, scale, going))
    if going is not None:
        x = percent(scale(going.now))
        parts.append(element("line", class_="nowline", x1=x, x2=x, y1=-1, y2=39))
    return element("svg", *parts, height=38, role="img", aria_label=row_words(row))


def row_words(row: TaskRow) -> str:
    """Return what a row shows as a sentence."""
    tries = f", {len(row.bars)} attempts" if len(row.bars) > 1 else ""
    note = f"; {row.after}" if row.after else ""
    return f"{row.task}: {row.status}{tries}{note}"


def _break(scale: GanttScale, fold: IdleFold) -> Markup:
    """Draw a folded stretch: two wavy edges on the ground of the panel."""
    middle = percent((scale(fold.start) + scale(fold.end)) / 2)
    waves = "M-8-1l4 5-4 5 4 5-4 5 4 5-4 5 4 5-4 5M4-1l4 5-4 5 4 5-4 5 4 5-4 5 4 5-4 5"
    return element("svg", element("path", class_="fold-edge", d=waves), x=middle, width=1, height=38)


def _bar(scale: GanttScale, bar: AttemptBar, going: _Open | None) -> Markup:
    end = bar.end or (scale.through if going is None else going.now)
    rare = going.rare_end if going is not None and bar.end is None else None
    if going is not None and rare is not None and rare < end:
        solid = max(rare, bar.start)
        return joined((_solid(scale, bar, solid), _overrun(scale, solid, end)))
    return _solid(scale, bar, end)


def _overrun(scale: GanttScale, start: datetime, end: datetime) -> Markup:
    """Hatch the time that a run takes longer than nearly all before it."""
    place = {"x": percent(scale(start)), "y": _MIDDLE - _BAR // 2, "width": percent(scale(end) - scale(start))}
    title = element("title", "longer than nearly all before it")
    return joined(element("rect", title, class_=kind, height=_BAR, **place) for kind in ("o-look", "w-look"))


def _solid(scale: GanttScale, bar: AttemptBar, end: datetime) -> Markup:
    left, right = scale(bar.start), scale(end)
    width = max(right - left, 0.003)
    rect = element(
        "rect",
        *([element("title", bar.title)] if bar.title else []),
        class_=_kind(bar.status),
        x=percent(left),
        y=_MIDDLE - _BAR // 2,
        width=percent(width),
        height=_BAR,
        rx=2,
    )
    if width < _NUMBERED or (bar.number == 1 and bar.status is AttemptStatus.SUCCESS):
        return rect
    return joined((rect, element("text", bar.number, class_="on", x=percent(left), dx=6, y=_MIDDLE + 4)))


def _kind(status: AttemptStatus) -> str:
    if status in _WRONG:
        return "m-wrong"
    return {
        AttemptStatus.SUCCESS: "m-done",
        AttemptStatus.RUNNING: "m-present",
        AttemptStatus.PENDING: "m-ghost",
        AttemptStatus.LOST: "o-wrong",
        AttemptStatus.CANCELED: "m-rest",
    }[status]


def _retry_wait(scale: GanttScale, start: datetime, end: datetime, words: Callable[[timedelta], str]) -> Markup:
    left, right = scale(start), scale(end)
    if right - left <= 0.001:
        return NOTHING
    told = words(end - start)
    rect = element(
        "rect",
        element("title", f"waited {told} before the next attempt"),
        fill="url(#p-look)",
        x=percent(left),
        y=_MIDDLE - 4,
        width=percent(right - left),
        height=8,
    )
    # A folded wait says its length on the axis.
    is_folded = any(fold.start <= start and end <= fold.end for fold in scale.folds)
    if right - left < 0.03 or is_folded:
        return rect
    return joined((rect, element("text", told, class_="m t-look", x=percent((left + right) / 2), y=_MIDDLE - 8)))


def _ghost(left: float, right: float) -> Markup:
    if right <= left:
        return NOTHING
    return element(
        "rect", class_="m-ghost", x=percent(left), y=_MIDDLE - _BAR // 2, width=percent(right - left), height=_BAR, rx=2
    )


def _after(row: TaskRow, scale: GanttScale, going: _Open | None) -> Markup:
    """Write the word after the last bar; in it or on its left where no room is left."""
    if row.status is RunStatus.SKIPPED and not row.bars:
        arrows = element("path", class_="skip-mark", d="M-10 14l5 5-5 5M-4 14l5 5-5 5")
        mark = element("svg", arrows, x="100%", width=1, height=38)
        return joined((element("text", row.after, class_="r", x="100%", dx=-18, y=_MIDDLE + 4), mark))
    if not row.after:
        return NOTHING
    kind = "t-wrong" if row.status in (RunStatus.FAILED, RunStatus.TIMEOUT) else "ink"
    if not row.bars:
        return element("text", row.after, class_=kind, x="0", dx=6, y=_MIDDLE + 4)
    last = row.bars[-1]
    end = scale(last.end or (scale.through if going is None else going.now))
    if going is not None and last.end is None and going.usual_end is not None and going.usual_end > going.now:
        # Into the hollow bar, which goes on to the usual end, else behind it.
        usual = scale(going.usual_end)
        end = end if usual - end > _room(row.after) else usual
    if end > 1.001 - _room(row.after):
        solid = min(end, scale(going.rare_end)) if going is not None and going.rare_end is not None else end
        return _before_or_inside(row, kind, scale(row.bars[0].start), scale(last.start), solid)
    return element("text", row.after, class_=kind, x=percent(end), dx=7, y=_MIDDLE + 4)


def _before_or_inside(row: TaskRow, kind: str, first: float, last: float, end: float) -> Markup:
    """Write the word before the only bar; inside the last one where that leaves no room."""
    room = _room(row.after)
    if first > room and len(row.bars) == 1:
        return element("text", row.after, class_=f"{kind} r", x=percent(first), dx=-7, y=_MIDDLE + 4)
    if end - last > room:
        return element("text", row.after, class_="on r", x=percent(end), dx=-7, y=_MIDDLE + 4)
    return NOTHING


def _length(row: TaskRow) -> timedelta:
    return sum(((bar.end or bar.start) - bar.start for bar in row.bars), timedelta(0))
