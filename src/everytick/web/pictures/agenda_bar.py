"""One row of the agenda: the starts of a job within an hour, each as long as the job usually takes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from everytick.web.pictures.elements import element, joined
from everytick.web.pictures.marks import percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from everytick.domain.questions import JobLengths

HOUR = timedelta(hours=1)
_TOP, _HIGH, _MIDDLE = 4.5, 11, 10
_LEAST = 0.01
"""The shortest bar, as a share of the row: a start whose length is not known is a thin mark."""

_TAIL = 0.012
"""A tail to the rarely reached length is drawn if it is at least so long."""

MOST_STARTS = 60


def agenda_bar(
    starts: Sequence[timedelta], usual: JobLengths | None, *, now: timedelta | None = None, is_paused: bool = False
) -> Markup:
    """Return the bars of these starts, each given by its time since the hour began. `now` draws the line of now."""
    marks = [mark for start in starts[:MOST_STARTS] for mark in _bar(start, usual, is_paused)]
    if now is not None:
        x = percent(now / HOUR)
        marks.append(element("line", class_="nowline", x1=x, x2=x, y1=-4, y2=24))
    return element("svg", joined(marks), height=20, aria_hidden="true")


def _bar(start: timedelta, usual: JobLengths | None, is_paused: bool) -> Iterator[Markup]:
    begin = start / HOUR
    end = min(begin + max(0 if usual is None else usual.p50 / HOUR, _LEAST), 1)
    kind = "m-ghost paused" if is_paused else "m-ghost"
    yield element("rect", class_=kind, x=percent(begin), y=_TOP, width=percent(end - begin), height=_HIGH, rx=2)
    rarely = 0 if usual is None else min(begin + usual.p95 / HOUR, 1)
    if not is_paused and rarely - end >= _TAIL:
        x, tip = percent(end), percent(rarely)
        yield element("line", class_="m-tail", x1=x, x2=tip, y1=_MIDDLE, y2=_MIDDLE)
        yield element("line", class_="m-tail", x1=tip, x2=tip, y1=_MIDDLE - 3, y2=_MIDDLE + 3)
