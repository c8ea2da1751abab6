"""The axis of the timeline: where a moment stands, the hours above the lanes, and what lies under and over them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from everytick.domain.values import value
from everytick.web.pictures.elements import NOTHING, element, joined
from everytick.web.pictures.marks import percent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from markupsafe import Markup

    from everytick.web.words import Viewer

WIDTH = 1000
"""The width in pixels for which marks are merged. A picture may be wider or narrower on the screen."""

NOW_AT = 0.8
"""Where now stands: four fifths are what has been, one fifth is what comes."""

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_STEPS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 10, 30, 60, 120, 360, 720, 1440))
_MOST_LABELS = 16
_NEAR = 0.07
"""A label nearer to now than this would lie under the chip."""


@value(frozen=True)
class Axis:
    """A stretch of time `(after, through]` across the width of a picture."""

    after: datetime
    through: datetime
    now: datetime

    @property
    def length(self) -> timedelta:
        """How much time it shows."""
        return self.through - self.after

    @property
    def pixel(self) -> timedelta:
        """The time of one pixel at the width for which marks are merged."""
        return self.length / WIDTH

    @property
    def now_at(self) -> float:
        """Where now stands, between 0 and 1 if it is in the picture."""
        return (self.now - self.after) / self.length

    @property
    def shows_now(self) -> bool:
        """Whether now is in the picture."""
        return self.after < self.now < self.through

    def at(self, moment: datetime) -> float:
        """Return where a moment stands; what is outside stands at the edge."""
        return min(max((moment - self.after) / self.length, 0.0), 1.0)

    def x(self, moment: datetime) -> str:
        """Return where a moment stands, for an attribute."""
        return percent(self.at(moment))


def axis_around(now: datetime, length: timedelta) -> Axis:
    """Return the axis of this length with now at its place."""
    return Axis(now - length * NOW_AT, now + length * (1 - NOW_AT), now)


def axis_to(through: datetime, length: timedelta, now: datetime) -> Axis:
    """Return the axis of this length that ends at a moment."""
    return Axis(through - length, through, now)


def ticks(axis: Axis, zone: tzinfo) -> list[datetime]:
    """Return the moments that are labelled: whole steps on the viewer's clock."""
    step = next((candidate for candidate in _STEPS if axis.length / candidate <= _MOST_LABELS), _DAY)
    local = axis.after.astimezone(zone)
    moment = local.replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)
    found = []
    while moment < axis.through:
        wall = moment.astimezone(zone)
        # Steps of hours are counted on the wall clock: after a change of the clock they go on at whole hours.
        if moment > axis.after and (step < _HOUR or (wall.hour * _HOUR) % step == timedelta(0)):
            found.append(moment)
        moment += min(step, _HOUR)
    return found


def clock_changes(axis: Axis, zone: tzinfo) -> list[tuple[datetime, str]]:
    """Return when the viewer's clock is set within the axis, and what people then read on it."""
    found = []
    moment = axis.after.replace(minute=0, second=0, microsecond=0)
    while moment < axis.through:
        after = moment + _HOUR
        before, then = moment.astimezone(zone).utcoffset(), after.astimezone(zone).utcoffset()
        if before is not None and then is not None and before != then:
            change = _change_between(moment, after, zone)
            wall = change.astimezone(zone)
            word = "twice" if then < before else "left out"
            shown = wall if then < before else wall - (then - before)
            if axis.after < change < axis.through:
                found.append((change, f"{shown:%H:%M} {word}"))
        moment = after
    return found


def _change_between(low: datetime, high: datetime, zone: tzinfo) -> datetime:
    """Return the first moment with the later offset, to the second."""
    offset = high.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        if middle.astimezone(zone).utcoffset() == offset:
            high = middle
        else:
            low = middle
    return high.replace(microsecond=0)


def labels(axis: Axis, viewer: Viewer) -> Markup:
    """Return the row above the lanes: times of day, and now on a chip."""
    found = ticks(axis, viewer.info)
    parts = [_label(axis, viewer, place, moment) for place, moment in enumerate(found)]
    for moment, said in clock_changes(axis, viewer.info):
        parts.append(element("text", said, class_="m t-look", x=axis.x(moment), y=6))
    if axis.shows_now:
        parts.append(_chip(axis, f"now {viewer.clock(axis.now)}"))
    return element("svg", joined(parts), aria_hidden="true")


def _label(axis: Axis, viewer: Viewer, place: int, moment: datetime) -> Markup:
    at = axis.at(moment)
    if (axis.shows_now and abs(at - axis.now_at) < _NEAR) or not 0.015 < at < 0.992:
        return NOTHING
    local = viewer.local(moment)
    is_midnight = not local.hour and not local.minute
    said = viewer.day(moment, year=False) if is_midnight and axis.length > _DAY else f"{local:%H:%M}"
    # Those that go first where the picture is narrow: every second one, and those near now.
    near = " near" if axis.shows_now and abs(at - axis.now_at) < 1.6 * _NEAR else ""
    return element("text", said, class_=f"m{' odd' if place % 2 else ''}{near}", x=percent(at), y=17)


def _chip(axis: Axis, said: str) -> Markup:
    chip = element("rect", class_="nowchip", x=-36, y=4, width=72, height=18, rx=9)
    text = element("text", said, class_="m white", y=17)
    return element("svg", chip, text, class_="now", x=percent(axis.now_at))


def under(axis: Axis, viewer: Viewer, outages: Sequence[tuple[datetime, datetime]] = ()) -> Markup:
    """Return what lies under the lanes: the hours, the time to come, changes of the clock, when no node was up."""
    parts = []
    if axis.now < axis.through:
        begin = axis.at(axis.now)
        parts.append(element("rect", class_="wash", x=percent(begin), width=percent(1 - begin), height="100%"))
    for moment in ticks(axis, viewer.info):
        kind = "hour strong" if viewer.local(moment).hour % 6 == 0 and not viewer.local(moment).minute else "hour"
        parts.append(_upright(kind, axis.x(moment)))
    for begin_at, end_at in outages:
        left, right = axis.at(begin_at), axis.at(end_at)
        if right > left:
            title = element("title", f"no node was up from {viewer.when(begin_at)} to {viewer.when(end_at)}")
            box = {"x": percent(left), "width": percent(right - left), "height": "100%"}
            parts.append(element("rect", title, class_="w-rest", **box))
    parts += [_upright("clockline", axis.x(moment)) for moment, _ in clock_changes(axis, viewer.info)]
    return element("svg", joined(parts))


def over(axis: Axis) -> Markup:
    """Return what lies over the lanes: the line of now."""
    if not axis.shows_now:
        return NOTHING
    x = percent(axis.now_at)
    return element("svg", element("line", class_="nowline", x1=x, x2=x, y1=-4, y2="100%"))


def _upright(kind: str, x: str) -> Markup:
    return element("line", class_=kind, x1=x, x2=x, y1=0, y2="100%")
