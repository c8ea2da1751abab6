"""Cron expressions for properties: those of the language, and those that are nearly in it."""

from datetime import datetime

from hypothesis import strategies as st

from tests.conformance.declarative.cron_model import FIELDS

BLANKS = st.text(" \t", min_size=1, max_size=3)
OUTER = st.text(" \t", max_size=2)


@st.composite
def _element(draw: st.DrawFn, low: int, high: int) -> str:
    first = draw(st.integers(low, high))
    shown = str(first).zfill(draw(st.sampled_from([1, 1, 1, 2, 3])))
    if draw(st.booleans()):
        return shown
    return f"{shown}-{draw(st.integers(first, high))}"


def field(low: int, high: int) -> st.SearchStrategy[str]:
    """One field of the language."""
    return st.just("*") | st.lists(_element(low, high), min_size=1, max_size=4).map(",".join)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Any expression of the language, written in any of its ways."""
    fields = [draw(field(low, high)) for _, low, high in FIELDS]
    text = draw(OUTER)
    for each in fields:
        text += each + draw(BLANKS)
    return text[: len(text) - 1] if text.endswith((" ", "\t")) and draw(st.booleans()) else text


@st.composite
def expressions_near(draw: st.DrawFn, wall: datetime) -> str:
    """An expression that names minutes close to this wall time: each field is free or holds what the wall shows."""
    shown = (wall.minute, wall.hour, wall.day, wall.month, wall.isoweekday() % 7)
    fields = []
    for (name, low, high), value in zip(FIELDS, shown, strict=True):
        others = draw(st.lists(st.integers(low, high), max_size=3))
        near = [value] if name != "minute" else [(value + draw(st.integers(0, 12))) % 60]
        fields.append(draw(st.sampled_from(["*", ",".join(map(str, near + others))])))
    return " ".join(fields)


SPOILS = (
    *("/5", "*/5", "jan", "MON", "sunday", "@daily", "?", "L", "W", "#", "7", "60", "24", "32", "13", "0x1", "1e1"),
    *(
        "+1",
        "-1",
        "5-2",
        "1-",
        "-",
        ",",
        "1,,2",
        "1,",
        ",1",
        "**",
        "*,1",
        "1-2-3",
        "1.5",
        "٣",
        "１",
        "\n",
        "\u00a0",
        "",
    ),
)


@st.composite
def spoiled(draw: st.DrawFn) -> str:
    """An expression in which one field was replaced, added or taken away; it may still be of the language."""
    fields = [draw(field(low, high)) for _, low, high in FIELDS]
    place = draw(st.integers(0, len(fields) - 1))
    deed = draw(st.sampled_from(["replace", "append", "add", "take"]))
    spoil = draw(st.sampled_from(SPOILS) | st.text(max_size=3))
    if deed == "replace":
        fields[place] = spoil
    elif deed == "append":
        fields[place] += spoil
    elif deed == "add":
        fields.insert(place, draw(field(0, 5)))
    else:
        del fields[place]
    return " ".join(fields)
