"""The hours around a change of the clock, and what a schedule names in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.web.pictures.elements import element, joined
from everytick.web.pictures.marks import cap, percent

if TYPE_CHECKING:
    from markupsafe import Markup

    from everytick.web.examining import ClockPicture

_TOP, _HIGH = 24, 24
_MOST_WORDS = 3
_MOST_CAPS = 8


def clock_change(drawn: ClockPicture, marks: str, said: str) -> Markup:
    """Return the picture: an hour a cell, the repeated hours tinted, a line where the clock jumps."""
    wide = 1 / len(drawn.hours)
    parts = []
    for place, wall in enumerate(drawn.hours):
        is_twice = drawn.is_fold and drawn.hours.count(wall) > 1
        kind = "clockhour twice" if is_twice else "clockhour"
        x, width = percent(place * wide), percent(wide - 0.004)
        parts.append(element("rect", class_=kind, x=x, y=_TOP, width=width, height=_HIGH, rx=2))
        parts.append(element("text", f"{wall:%H:%M}", x=x, dx=5, y=17))
    if not drawn.is_fold:
        x = percent(drawn.changed - 0.002)
        parts.append(element("line", class_="m-wait", x1=x, x2=x, y1=_TOP - 6, y2=_TOP + _HIGH + 6))
    parts += _caps(drawn, marks) if len(drawn.marks) <= _MOST_CAPS else _ticks(drawn)
    return element("svg", joined(parts), class_="clockchange", height=74, role="img", aria_label=said)


def _caps(drawn: ClockPicture, marks: str) -> list[Markup]:
    """A glyph for each instant, and its words under it if they are few."""
    parts = []
    for mark in drawn.marks:
        at = percent(min(max(mark.at, 0.012), 0.988))
        parts.append(cap("completed" if mark.runs else "skipped", at, marks, middle=_TOP + _HIGH // 2))
        if len(drawn.marks) <= _MOST_WORDS:
            word = f"{mark.wall:%H:%M} runs" if mark.runs else f"{mark.wall:%H:%M} again: not"
            anchor = "m ink" if 0.06 < mark.at < 0.94 else "ink" if mark.at <= 0.06 else "r ink"
            kind = anchor if mark is drawn.marks[0] else f"{anchor} lo"
            parts.append(element("text", word, x=at, y=66, class_=kind))
    return parts


def _ticks(drawn: ClockPicture) -> list[Markup]:
    """Many instants are thin lines."""
    return [
        element("line", class_="b-line" if mark.runs else "m-lag", x1=at, x2=at, y1=_TOP + 5, y2=_TOP + _HIGH - 5)
        for mark in drawn.marks
        for at in [percent(mark.at)]
    ]
