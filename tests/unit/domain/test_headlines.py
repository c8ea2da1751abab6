"""Which line of an error is its headline."""

import traceback
from datetime import timedelta

import pytest

from everytick.domain.headlines import headline, summary
from everytick.runners.outcomes import bounded, failed


def raised(error: BaseException) -> str:
    try:
        raise error
    except BaseException as found:  # noqa: BLE001, whatever the test gives
        return failed(found).error


def test_the_headline_of_a_traceback_is_its_type_and_message() -> None:
    """A2: the type and the message stand at the end of a traceback, where a table cell is cut."""
    assert headline(raised(ValueError("boom"))) == "ValueError: boom"


def test_of_chained_exceptions_the_last_counts() -> None:
    def chained() -> str:
        try:
            try:
                raise KeyError("first")
            except KeyError as error:
                raise RuntimeError("second") from error
        except RuntimeError as error:
            return "".join(traceback.format_exception(error))

    assert headline(chained()) == "RuntimeError: second"


def test_a_message_of_several_lines_and_its_notes_give_their_first_line() -> None:
    error = ValueError("first line\nsecond line")
    error.add_note("a note")
    assert headline(raised(error)) == "ValueError: first line"


def test_an_error_of_syntax_is_named_after_the_line_it_points_at() -> None:
    try:
        compile("a b", "x.py", "exec")
    except SyntaxError as error:
        text = "".join(traceback.format_exception(error))
    assert headline(text).startswith("SyntaxError: ")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("exit code 3\nlast words", "exit code 3"),
        ("task execution timeout", "task execution timeout"),
        ("\n\n  busy  \n", "busy"),
        ("", ""),
        ("ValueError: boom", "ValueError: boom"),
    ],
)
def test_other_text_gives_its_first_line(error: str, line: str) -> None:
    assert headline(error) == line


def test_a_text_whose_middle_was_left_out_still_names_its_error() -> None:
    deep = "Traceback (most recent call last):\n" + '  File "x.py", line 1, in f\n    f()\n' * 5_000 + "OSError: full"
    assert headline(bounded(deep)) == "OSError: full"


def test_a_long_message_is_cut_at_300_characters() -> None:
    assert len(headline(raised(ValueError("x" * 5_000)))) == 300


def test_more_than_one_attempt_is_counted() -> None:
    assert summary("ValueError: boom", 1) == "ValueError: boom"
    assert summary("ValueError: boom", 4) == "ValueError: boom (4 attempts)"
    assert summary(None, 2) == "it gave no reason (2 attempts)"


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (timedelta(minutes=5), "task execution timeout after 5m, the default: task_timeout= sets another"),
        (timedelta(seconds=10), "task execution timeout after 10s, its task_timeout"),
        (None, "task execution timeout"),
    ],
)
def test_a_timeout_says_how_long_the_task_had_and_where_that_comes_from(limit: timedelta | None, told: str) -> None:
    """A6: five minutes bite people who have not set them."""
    assert summary("task execution timeout", 1, limit) == told
    assert summary("ValueError: boom", 2, limit) == "ValueError: boom (2 attempts)"
