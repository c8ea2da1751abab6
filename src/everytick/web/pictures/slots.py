"""The slots of a node as unit squares, and the load of a queue as a meter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.web.pictures.elements import element, joined
from everytick.web.pictures.marks import percent

if TYPE_CHECKING:
    from markupsafe import Markup

_SIDE, _STEP, _HIGH, _IN_A_ROW = 8, 10, 13, 40
MOST_SQUARES = 200
"""Of more slots a square stands for several."""


def slot_squares(taken: int, slots: int, said: str) -> Markup:
    """Return a square for each slot, the taken ones filled. Of very many slots, each square stands for several."""
    scale = max(-(-slots // MOST_SQUARES), 1)
    squares, filled = -(-slots // scale), -(-min(taken, slots) // scale)
    parts = [
        element(
            "rect",
            class_="m-present" if place < filled else "slot",
            x=place % _IN_A_ROW * _STEP,
            y=place // _IN_A_ROW * (_HIGH + 2),
            width=_SIDE,
            height=_HIGH,
            rx=2,
        )
        for place in range(squares)
    ]
    rows = max(-(-squares // _IN_A_ROW), 1)
    wide = min(max(squares, 1), _IN_A_ROW) * _STEP
    size = {"width": wide, "height": rows * (_HIGH + 2), "viewBox": f"0 0 {wide} {rows * (_HIGH + 2)}"}
    return element("svg", joined(parts), class_="slots", role="img", aria_label=said, **size)


def queue_meter(running: int, waiting: int, slots: int, said: str) -> Markup:
    """Return a bar as long as the slots: what runs is filled, and what waits stands behind it, hatched."""
    whole = max(slots, running + waiting, 1)
    parts = [element("rect", class_="slot", width=percent(slots / whole), height=12, rx=2)]
    if running:
        parts.append(element("rect", class_="m-present", width=percent(running / whole), height=12, rx=2))
    if waiting:
        x, width = percent(running / whole), percent(waiting / whole)
        parts.append(element("rect", class_="w-look", x=x, width=width, height=12))
    return element("svg", joined(parts), class_="meter", height=12, role="img", aria_label=said)
