"""A band: how many runs begin in each step of time, as one path for each colour."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from everytick.domain.values import value
from everytick.web.pictures.elements import NOTHING, element, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from markupsafe import Markup

    from everytick.web.pictures.axis import Axis

HEIGHT = 22
"""Pixels."""

_GAP = 0.2
"""The part of a step that is left blank behind its column."""


@value(frozen=True)
class BandCounts:
    """How many runs begin in one step of time, and how many of them failed."""

    starts: int = 0
    failed: int = 0

    def __add__(self, other: BandCounts) -> BandCounts:
        return BandCounts(self.starts + other.starts, self.failed + other.failed)


def band_step(axis: Axis) -> timedelta:
    """Return the step of the bands of an axis: five minutes, or so long that a bar has four pixels."""
    five = timedelta(minutes=5)
    return max(five, 4 * axis.pixel // five * five)


def steps_of(moments: Iterable[tuple[datetime, bool]], axis: Axis, step: timedelta) -> dict[datetime, BandCounts]:
    """Return the counts of runs that begin at these moments, each with whether it failed, by the step they are in."""
    found: dict[datetime, BandCounts] = {}
    for moment, is_failed in moments:
        at = axis.after + (moment - axis.after) // step * step
        found[at] = found.get(at, BandCounts()) + BandCounts(1, is_failed)
    return found


def band_picture(
    past: Mapping[datetime, BandCounts], planned: Mapping[datetime, int], axis: Axis, step: timedelta
) -> Markup:
    """Return the inside of a band's svg: what began, what of it failed, and what is planned, to one height."""
    top = max([counts.starts for counts in past.values()] + list(planned.values()), default=0)
    if not top:
        return NOTHING
    count, now = axis.length / step, (axis.now - axis.after) / step
    steps = {at: (at - axis.after) / step for at in (*past, *planned)}
    begun = [_bar(steps[at], 0.0, now, _high(counts.starts, top)) for at, counts in sorted(past.items())]
    failed = [_bar(steps[at], 0.0, now, _high(counts.failed, top)) for at, counts in sorted(past.items())]
    coming = [_bar(steps[at], now, count, _high(number, top)) for at, number in sorted(planned.items())]
    paths = (*_paths("ghost", coming), *_paths("soft", begun), _filled("b-wrong", failed))
    box = f"0 0 {count:.6g} {HEIGHT}"
    return element("svg", joined(paths), y=2, width="100%", height=HEIGHT, viewBox=box, preserveAspectRatio="none")


def _bar(at: float, least: float, most: float, high: int) -> tuple[float, float, int]:
    """Return the left edge, width and height of a step, cut at now: what has been and what comes may share a step."""
    left, right = max(at, least), min(at + 1 - _GAP, most)
    return left, right - left, high


def _high(number: int, top: int) -> int:
    """Return whole pixels; what is not nothing is seen."""
    return max(round(number / top * (HEIGHT - 2)), 2) if number else 0


def _paths(kind: str, bars: Sequence[tuple[float, float, int]]) -> tuple[Markup, Markup]:
    """A pale fill, and its upper edge at full strength: the fill alone is too faint to be told from the ground."""
    return _filled(f"b-{kind}", bars), _edge(f"e-{kind}", bars)


def _filled(kind: str, bars: Sequence[tuple[float, float, int]]) -> Markup:
    """The bars. Each begins where the one before it began, moved: a page has thousands, and a move is short."""
    parts, before = list[str](), 0
    for at, wide, high in _drawn(bars):
        begin = f"m{_short(at - before)} 0" if parts else f"M{_short(at)} {HEIGHT}"
        parts.append(f"{begin}v-{high}h{_short(wide)}v{high}z")
        before = at
    return element("path", class_=kind, d="".join(parts)) if parts else NOTHING


def _edge(kind: str, bars: Sequence[tuple[float, float, int]]) -> Markup:
    """The upper edges of the bars. Each begins where the one before it ended, moved."""
    parts, end, level = list[str](), 0, HEIGHT
    for at, wide, high in _drawn(bars):
        begin = f"m{_short(at - end)} {level - high}" if parts else f"M{_short(at)} {HEIGHT - high}"
        parts.append(f"{begin}h{_short(wide)}")
        end, level = at + wide, high
    return element("path", class_=kind, d="".join(parts)) if parts else NOTHING


def _drawn(bars: Sequence[tuple[float, float, int]]) -> list[tuple[int, int, int]]:
    """Return the bars that are seen, in hundredths of a step: moves from one to the next add up without an error."""
    return [(round(at * 100), round(wide * 100), high) for at, wide, high in bars if wide > 0 and high]


def _short(hundredths: int) -> str:
    """Return so many hundredths as a path has them: `.8`, `-1.25`, `3`."""
    text = f"{hundredths / 100:.2f}".rstrip("0").rstrip(".")
    return text.replace("0.", ".", 1) if abs(hundredths) < 100 else text
