"""The load map: planned starts by hour and weekday, in five steps of one hue."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from everytick.domain.values import value
from everytick.web.pictures.elements import element, joined
from everytick.web.pictures.marks import percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markupsafe import Markup

HOURS, DAYS = 24, 7
STEPS = 5
_SHARES = (0.1, 0.3, 0.5, 0.75, 0.95)
"""Where the steps begin, as shares of the fullest cell."""

_LABEL = 0.055
"""The part of the width that the names of the days take."""

_MOST_NUMBERED = 6
"""Most cells that show their number."""

_TOP, _GAP = 20, 2


class HourPart(NamedTuple):
    """A part of an hour in which the clock changes: where it begins, and its starts; None if it is left out."""

    said: str
    starts: int | None


@value
class LoadMap:
    """How many starts each hour of seven days has: a row a day, with its label; `now` is the cell of the present hour.

    `is_small` draws it in half the height, without numbers. `top` is the count that counts as full, where another map
    beside it is fuller. `changed` has the hours that the clock repeats or leaves out: each of their parts has a cell.
    """

    counts: tuple[tuple[int, ...], ...]
    labels: tuple[str, ...] = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    now: tuple[int, int] | None = None
    is_small: bool = False
    top: int = 0
    changed: Mapping[tuple[int, int], tuple[HourPart, ...]] = field(default_factory=dict)

    @property
    def steps(self) -> tuple[int, ...]:
        """The counts at which the five steps begin."""
        return steps_of(max(self.top, max(map(max, self.counts), default=0)))


def steps_of(most: int) -> tuple[int, ...]:
    """Return the counts at which the five steps begin: round numbers, the last one near the most.

    Of few starts some steps begin at the same count: one start is as full as it gets if no cell has two.
    """
    return tuple(max(_round(most * share), 1) for share in _SHARES)


def _round(number: float) -> int:
    """Return a number that is easy to read: of two digits, the second is 0 or 5 from 20 on."""
    if number < 20:
        return round(number)
    unit = 5 if number < 100 else 10 if number < 1000 else 10 ** (len(str(int(number))) - 2)
    return round(number / unit) * unit


def step_of(count: int, steps: Sequence[int]) -> int:
    """Return the step of a count, from 0 to 5."""
    return sum(count >= step for step in steps)


def load_map(drawn: LoadMap, said: str) -> Markup:
    """Return the picture. `said` is what it shows in one sentence, for those who hear it."""
    height = 13 if drawn.is_small else 18
    lane = height + _GAP
    wide = (1 - _LABEL) / HOURS
    steps, numbered = drawn.steps, set() if drawn.is_small else _numbered(drawn.counts) - set(drawn.changed)
    every = 3 if drawn.is_small else 2
    parts = [
        element(
            "text", f"{hour:02}", x=percent(_LABEL + hour * wide), y=13, dx=2, class_=None if hour % 6 == 0 else "lo"
        )
        for hour in range(0, HOURS, every)
    ]
    for row, (label, counts) in enumerate(zip(drawn.labels, drawn.counts, strict=True)):
        top = _TOP + row * lane
        rest = element("tspan", label[1:], class_="lo")
        parts.append(element("text", label[:1], rest, x=0, y=top + height - 4))
        for hour, count in enumerate(counts):
            x = _LABEL + hour * wide
            step = step_of(count, steps)
            is_now = drawn.now == (row, hour)
            here = drawn.changed.get((row, hour), (HourPart(f"{hour:02}:00", count),))
            parts += [
                _cell(part, label, steps, x=percent(x + place * wide / 2), y=top, height=height, is_half=len(here) > 1)
                for place, part in enumerate(here)
            ]
            if (row, hour) in numbered:
                on = "m on lo" if step >= 4 else "m lo"
                parts.append(element("text", _short(count), x=percent(x + wide / 2), y=top + height - 5, class_=on))
            if is_now:
                parts.append(element("rect", class_="cellnow", x=percent(x), y=top, rx=2, height=height))
    whole = _TOP + DAYS * lane + 2
    return element("svg", joined(parts), class_="heat", height=whole, role="img", aria_label=said)


def _cell(part: HourPart, label: str, steps: Sequence[int], *, x: str, y: int, height: int, is_half: bool) -> Markup:
    """Return an hour, or the half of a cell that stands for a part of it."""
    said = "left out, the clock goes forward" if part.starts is None else f"{part.starts:,}"
    kind = "clockhour" if part.starts is None else f"h{step_of(part.starts, steps)}"
    title = element("title", f"{label} {part.said}: {said}")
    return element("rect", title, class_=f"{kind} half" if is_half else kind, x=x, y=y, rx=2, height=height)


def _numbered(counts: Sequence[Sequence[int]]) -> set[tuple[int, int]]:
    """Return the cells that show their number: the fullest ones, and the emptiest if they are few."""
    cells = [(count, (row, hour)) for row, some in enumerate(counts) for hour, count in enumerate(some)]
    most, least = max(cells)[0], min(cells)[0]
    if most == least:
        return set()
    full = sorted((cell for cell in cells if cell[0] >= most * 0.95), reverse=True)
    # Where most hours are that full, none of them stands out, and six numbers would name hours at random.
    full = full[:_MOST_NUMBERED] if len(full) * 2 <= len(cells) else []
    empty = [cell for cell in cells if cell[0] == least]
    return {place for _, place in (*full, *(empty if len(empty) <= _MOST_NUMBERED else ()))}


def _short(count: int) -> str:
    return f"{count}" if count < 1000 else f"{count / 1000:.0f}k"
