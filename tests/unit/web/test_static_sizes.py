"""What a browser loads once: the style and the modules stay small."""

import re

from everytick.web.static import files

MOST_SCRIPT = 15_000
MOST_STYLE = 30_000
"""Bytes, as the design says."""


def test_modules_stay_within_their_budget() -> None:
    assert sum(len(each.plain) for name, each in files().items() if name.endswith(".js")) <= MOST_SCRIPT


def test_the_style_stays_within_its_budget() -> None:
    assert len(files()["app.css"].plain) <= MOST_STYLE


def test_every_token_that_is_named_is_declared() -> None:
    """Where a short value stands itself, its token is gone from the style and from the marks."""
    style, marks = files()["app.css"].plain.decode(), files()["marks.svg"].plain.decode()
    named = set(re.findall(r"var\((--\w+)", style + marks))

    assert named
    assert named <= set(re.findall(r"[{;](--\w+):", style))
