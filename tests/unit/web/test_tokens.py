"""Colours that can be read: every pair of the design has its contrast, in light and in dark."""

import re
from pathlib import Path

import pytest

import everytick.web

STATIC = Path(everytick.web.__file__).parent / "static"
TOKENS = (STATIC / "tokens.css").read_text()
PAIRS = re.findall(r"--([\w-]+): light-dark\((#[0-9A-F]{6}), (#[0-9A-F]{6})\)", TOKENS)
LIGHT, DARK = {name: light for name, light, _ in PAIRS}, {name: dark for name, _, dark in PAIRS}
MEANINGS = ("present", "done", "wrong", "look", "rest")


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])
def test_words_have_four_and_a_half_and_marks_three(tokens: dict[str, str]) -> None:
    inks = ("ink", "ink-2", "ink-3", *(f"{each}-ink" for each in MEANINGS))
    pairs = [(ink, ground, 4.5) for ink in inks for ground in ("panel", "canvas", "sunken")]
    pairs += [(mark, ground, 3) for mark in (*MEANINGS, "ghost") for ground in ("panel", "canvas")]
    pairs += [(f"{each}-ink", f"{each}-soft", 4.5) for each in MEANINGS]
    pairs += [("ink", f"{each}-soft", 4.5) for each in MEANINGS]
    pairs += [("ink-2", "wrong-soft", 4.5), ("ink-3", "future", 4.5)]
    low = [(ink, ground) for ink, ground, least in pairs if contrast(tokens[ink], tokens[ground]) < least]
    assert not low
    assert contrast("#FFFFFF", "#3A49C7") > 7


def test_every_colour_is_said_for_light_and_for_dark() -> None:
    assert not re.findall(r": #", TOKENS)
    assert len(PAIRS) == len(LIGHT) >= 30


def test_every_mark_has_one_shape_and_no_colour_of_its_own() -> None:
    from everytick.domain.statuses import AttemptStatus, OccurrenceStatus, RunStatus
    from everytick.web.pictures.marks import GLYPHS

    text = (STATIC / "marks.svg").read_text()
    shapes = re.findall(r'<symbol id="(\w+)"', text)
    assert set(shapes) == GLYPHS | {"brand"}
    assert len(shapes) == len(set(shapes))
    assert {*OccurrenceStatus, *RunStatus, *AttemptStatus} <= GLYPHS
    paints = set(re.findall(r'(?:fill|stroke)="([^"]+)"', text))
    assert paints <= {"none", "currentColor", "var(--panel)", "var(--present)"}
