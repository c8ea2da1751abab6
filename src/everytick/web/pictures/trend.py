"""The trend: how long each occurrence of the strip took, over the band of what was usual before it.

It shares the columns of the strip. Failed ones are drawn and never belong to the band.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value
from everytick.web.pictures.elements import NOTHING, element, joined, linked
from everytick.web.pictures.marks import percent
from everytick.web.pictures.usual import UsualBand, step_of, usual

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from markupsafe import Markup

    from everytick.web.pictures.strip import StripColumn, StripColumns

BEFORE = 20
"""How many good runs before a run make its band."""

_HEIGHT, _TOP, _FLOOR = 166, 8, 158
"""Pixels of the picture: its height, where the longest run ends, and where the time is zero."""

_LINES = 4
_NAMED = 2
"""Most outliers that are named: with more, none of them is one."""

_TALL = 4
"""The picture ends at four times the usual length: one run that hung for a day must not flatten the others."""

_EVERY = 7
"""Every seventh column has a date below."""

_GOOD = frozenset({OccurrenceStatus.COMPLETED, OccurrenceStatus.COMPLETED_WITH_ERRORS})
_WRONG = frozenset({OccurrenceStatus.FAILED, OccurrenceStatus.FAILED_STALE})
_TOO_LONG, _TOO_SHORT = 1.5, 0.5


@value
class Took:
    """How long one occurrence of the strip took, None if it did not run; `date` is what stands below it."""

    length: timedelta | None
    date: str = ""


@value
class Outlier:
    """A run that took much longer or shorter than usual: the index of its column, and how many times the usual."""

    index: int
    ratio: float


def bands(statuses: Sequence[str], lengths: Sequence[timedelta | None]) -> list[UsualBand | None]:
    """Return for each run, and for those to come after the last, what was usual of the good ones before it."""
    found: list[UsualBand | None] = []
    good: list[timedelta] = []
    for status, length in zip(statuses, lengths, strict=True):
        found.append(usual(good[-BEFORE:]))
        if length is not None and status in _GOOD:
            good.append(length)
    return [*found, usual(good[-BEFORE:])]


def outliers(
    statuses: Sequence[str], lengths: Sequence[timedelta | None], usuals: Sequence[UsualBand | None]
) -> list[Outlier]:
    """Return the two largest outliers: over 1.5 times p95, or under half of p50. Failed ones may be among them."""
    found: list[Outlier] = []
    for index, (status, length) in enumerate(zip(statuses, lengths, strict=True)):
        known = usuals[index]
        if length is None or known is None or not known.p50 or status not in _GOOD | _WRONG:
            continue
        if length > _TOO_LONG * known.p95 or length < _TOO_SHORT * known.p50:
            found.append(Outlier(index, length / known.p50))
    found.sort(key=lambda outlier: (-max(outlier.ratio, 1 / max(outlier.ratio, 1e-9)), -outlier.index))
    return found[:_NAMED]


def trend(columns: StripColumns, took: Sequence[Took], words: Callable[[timedelta], str]) -> Markup:
    """Draw the trend in the columns of a strip. `took` has one entry for each past square, `words` say a length."""
    statuses = _statuses(columns, took)
    lengths = [run.length for run in took]
    usuals = bands(statuses, lengths)
    drawn = [column.index for column in columns.past]
    scale = _TrendScale.of([lengths[index] for index in drawn], [usuals[index] for index in [*drawn, -1]])
    named = {outlier.index: outlier for outlier in outliers(statuses, lengths, usuals) if outlier.index in set(drawn)}
    rules = [element("line", class_="rule", x1="0", x2="100%", y1=y, y2=y) for y in scale.lines]
    now = percent(columns.now)
    parts = (
        element("rect", class_="wash", x=now, width=percent(1 - columns.now), height=_HEIGHT - 2),
        *rules,
        _band(columns, usuals, scale),
        *(_run(column, took[column.index], scale) for column in columns.past),
        element("line", class_="nowline", x1=now, x2=now, y1=0, y2=_HEIGHT),
        _usual_words(usuals[-1], scale, words),
        *(_named(column, took[column.index].length, scale, named.get(column.index), words) for column in columns.past),
    )
    label = "How long each took, with the band of what is usual"
    axis = element(
        "svg",
        *(element("text", words(at), x=0, y=y + 4) for at, y in zip(scale.steps, scale.lines, strict=True)),
        height=_HEIGHT,
        aria_hidden="true",
    )
    return joined((axis, element("svg", *parts, height=_HEIGHT, role="img", aria_label=label)))


def dates(columns: StripColumns, took: Sequence[Took]) -> Markup:
    """Draw the dates below the columns, and now."""
    newest_first = [column for column in reversed(columns.past) if took[column.index].date]
    chosen: list[StripColumn] = []
    for column in newest_first[_EVERY - 1 :: _EVERY]:
        if not chosen or took[chosen[-1].index].date != took[column.index].date:
            chosen.append(column)
    texts = [
        element("text", took[column.index].date, class_="m", x=percent(column.at), y=13) for column in reversed(chosen)
    ]
    now = element("text", "now", class_="m t-present", x=percent(columns.now), y=13)
    return element("svg", *texts, now, height=18, aria_hidden="true")


# ---------------------------------------------------------------------------------------------------------- the parts


@value
class _TrendScale:
    """How lengths become heights: zero at the floor, `top` at the upper end."""

    top: timedelta
    steps: tuple[timedelta, ...]

    @staticmethod
    def of(lengths: Sequence[timedelta | None], usuals: Sequence[UsualBand | None]) -> _TrendScale:
        known = [length for length in lengths if length is not None] or [timedelta(seconds=1)]
        edges = [band.p95 for band in usuals if band is not None]
        longest = max([*known, *edges])
        middle = max((band.p50 for band in usuals if band is not None), default=timedelta(0))
        if middle:
            longest = min(longest, _TALL * middle)
        longest = max(longest, timedelta(milliseconds=1))
        step = step_of(longest, _LINES)
        top = max(longest * 1.04, step)
        return _TrendScale(top, tuple(step * number for number in range(1, int(top / step) + 1)))

    def y(self, length: timedelta) -> float:
        share = min(length / self.top, 1.0)
        return round(_FLOOR - share * (_FLOOR - _TOP), 2)

    @property
    def lines(self) -> list[float]:
        return [self.y(step) for step in self.steps]


def _statuses(columns: StripColumns, took: Sequence[Took]) -> list[str]:
    """Return the status of every entry: of what no column shows, because it is older, a length means a good run."""
    known = {column.index: str(column.square.status) for column in columns.past}
    older = min(known, default=len(took))
    return [known.get(index, str(OccurrenceStatus.COMPLETED) if index < older else "") for index in range(len(took))]


def _band(columns: StripColumns, usuals: Sequence[UsualBand | None], scale: _TrendScale) -> Markup:
    """Draw the band and its middle, on over what is planned. A path takes no per cents: it is nested."""
    last = len(usuals) - 1
    points = [(column, usuals[min(column.index, last)]) for column in columns.all]
    known = [(column, band) for column, band in points if band is not None]
    if not known:
        return NOTHING
    known = [(column, band) for column, band in known]
    edge = [(known[0][0].at - known[0][0].width / 2, known[0][1])]
    middle = [(column.at, band) for column, band in known]
    end = [(1.0, known[-1][1])] if columns.planned else [(columns.now, known[-1][1])]
    along = [(at, band) for at, band in (*edge, *middle, *end)]
    upper = " ".join(f"{100 * at:.2f} {scale.y(band.p95):g}" for at, band in along)
    lower = " ".join(f"{100 * at:.2f} {scale.y(band.p5):g}" for at, band in reversed(along))
    centre = " ".join(f"{100 * at:.2f} {scale.y(band.p50):g}" for at, band in along)
    return element(
        "svg",
        element("path", class_="band", d=f"M{upper} L{lower}z"),
        element("path", class_="mid", d=f"M{centre}"),
        width="100%",
        height=_HEIGHT,
        viewBox=f"0 0 100 {_HEIGHT}",
        preserveAspectRatio="none",
    )


def _run(column: StripColumn, took: Took, scale: _TrendScale) -> Markup:
    if took.length is None:
        return NOTHING
    status, y, x = column.square.status, scale.y(took.length), percent(column.at)
    is_wrong = status in _WRONG
    stem = element("line", class_="stem s-wrong" if is_wrong else "stem", x1=x, x2=x, y1=_FLOOR, y2=y)
    title = element("title", column.square.title) if column.square.title else NOTHING
    if is_wrong:
        cross = element("path", class_="cut", d=f"M-2 {y - 2:g}l4 4M2 {y - 2:g}l-4 4")
        dot = element("circle", class_="m-wrong", cx=0, cy=y, r=4.5)
        mark = element("svg", linked(joined((dot, cross, title)), column.square.href), x=x, width=1, height=_HEIGHT)
    else:
        kind = {"completed": "dot", "completed_with_errors": "dot look", "running": "dot present"}.get(
            status, "dot rest"
        )
        mark = linked(element("circle", title, class_=kind, cx=x, cy=y, r=3), column.square.href)
    return joined((stem, mark))


def _named(
    column: StripColumn,
    length: timedelta | None,
    scale: _TrendScale,
    outlier: Outlier | None,
    words: Callable[[timedelta], str],
) -> Markup:
    """Draw the words of an outlier: after all stems, on a ground of their own."""
    if outlier is None or length is None:
        return NOTHING
    y = scale.y(length)
    is_wrong = column.square.status in _WRONG
    said = f"{words(length)}, {column.square.status}" if is_wrong else f"{words(length)}: {_times(outlier.ratio)} usual"
    kind = "t-wrong" if is_wrong else "t-look"
    left = column.at > 0.6
    text = element(
        "text",
        said,
        class_=f"{kind} r" if left else kind,
        x=percent(column.at),
        dx=-12 if left else 12,
        y=max(y, 10) + 4,
    )
    return text if is_wrong else joined((element("circle", class_="ring", cx=percent(column.at), cy=y, r=7), text))


_LONG_WORDS = 2
"""So many blanks has a length of two units: `7 min 12 s`."""


def _times(ratio: float) -> str:
    return f"{ratio:.0f} ×" if ratio >= 10 else f"{ratio:.1f} ×" if ratio >= 0.1 else "a small part of the"


def _usual_words(known: UsualBand | None, scale: _TrendScale, words: Callable[[timedelta], str]) -> Markup:
    if known is None:
        return NOTHING
    high, middle = scale.y(known.p95) - 4, scale.y(known.p50) - 4
    # The two texts need a line each: where the band is thin, only the middle is named.
    above = element("text", "p95", class_="r", x="100%", y=high) if middle - high >= 12 else NOTHING
    said = words(known.p50)
    if said.count(" ") < _LONG_WORDS:
        return joined((above, element("text", f"p50 {said}", class_="r", x="100%", y=middle)))
    # A length of two units would run over the line of now: it stands below the middle.
    below = element("text", said, class_="r", x="100%", y=middle + 16)
    return joined((above, element("text", "p50", class_="r", x="100%", y=middle), below))
