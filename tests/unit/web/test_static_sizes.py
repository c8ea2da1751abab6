"""What a browser loads once: the style and the modules stay small."""

from everytick.web.static import files

MOST_SCRIPT = 15_000
MOST_STYLE = 34_500
"""Bytes. The design allows the style 30,000: it may shrink to that, and must not grow."""


def test_modules_stay_within_their_budget() -> None:
    assert sum(len(each.plain) for name, each in files().items() if name.endswith(".js")) <= MOST_SCRIPT


def test_the_style_does_not_grow() -> None:
    assert len(files()["app.css"].plain) <= MOST_STYLE
