"""The lines of `run`: readable, or one JSON object each; and an application's own logging is left alone."""

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from everytick.cli.logging import JsonLines, Lines, set_up
from everytick.config.settings import Setting, SettingPlace
from everytick.domain.durations import instant

AT = instant("2026-07-01T09:00:00Z")
BUILT_IN = Setting("text", SettingPlace.BUILT_IN, "built-in")
ASKED_FOR = Setting("json", SettingPlace.OPTION, "--log-format")


def record(message: str, level: int = logging.INFO, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("everytick.node", level, __file__, 1, message, (), None)
    made.__dict__.update(extra)
    return made


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, which is as it was before once the test is over."""
    found, asyncios = logging.getLogger(), logging.getLogger("asyncio")
    kept = found.handlers, found.level, asyncios.level
    yield found
    found.handlers, level, asyncio_level = kept
    found.setLevel(level)
    asyncios.setLevel(asyncio_level)
    logging.captureWarnings(False)


def test_a_line_has_time_level_and_text_without_control_characters() -> None:
    line = Lines(colour=False).format(record("job \x1b[31mred", logging.WARNING))

    assert line.endswith(" warning job \\x1b[31mred")
    assert line.isprintable()


def test_colour_marks_what_is_wrong() -> None:
    assert "\x1b[33mwarning" in Lines(colour=True).format(record("late", logging.WARNING))
    assert "\x1b" not in Lines(colour=True).format(record("fine"))


def test_a_json_line_says_what_it_is_about_where_that_is_known() -> None:
    found = json.loads(JsonLines().format(record("ended", job="nightly", occurrence="occ_1", task=None)))

    assert found.pop("ts").endswith("Z")
    assert found == {
        "level": "info",
        "event": "ended",
        "logger": "everytick.node",
        "job": "nightly",
        "occurrence": "occ_1",
    }


def test_a_traceback_is_one_field_of_a_json_line() -> None:
    try:
        raise ValueError("no \x1b good")
    except ValueError:
        made = record("failed", logging.ERROR)
        made.exc_info = sys.exc_info()

    line = JsonLines().format(made)

    assert "ValueError: no \x1b good" in json.loads(line)["traceback"]
    assert line.isprintable()
    assert "ValueError: no \\x1b good" in Lines(colour=False).format(made)


def test_an_application_that_has_set_up_logging_keeps_its_own(root: logging.Logger) -> None:
    own = logging.NullHandler()
    root.handlers = [own]

    set_up("info", BUILT_IN)
    left = list(root.handlers)
    set_up("info", ASKED_FOR)

    assert left == [own]
    assert isinstance(root.handlers[0].formatter, JsonLines)


def test_without_any_a_readable_one_is_set_up(root: logging.Logger) -> None:
    root.handlers = []

    set_up("warning", BUILT_IN)

    assert isinstance(root.handlers[0].formatter, Lines)
    assert root.level == logging.WARNING


def test_a_text_that_stands_for_a_traceback_is_shown_as_one() -> None:
    """A1: the node has the traceback of a task as text."""
    made = record("failed", logging.ERROR)
    made.exc_text = "Traceback (most recent call last):\nValueError: boom"

    assert json.loads(JsonLines().format(made))["traceback"] == made.exc_text
    assert Lines(colour=False).format(made).endswith("failed\nTraceback (most recent call last):\nValueError: boom")
