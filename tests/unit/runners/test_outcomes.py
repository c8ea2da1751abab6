"""Whatever comes out of a task is an outcome that every store can keep."""

from datetime import timedelta

import pytest

from everytick.domain.outcome import Failed, Succeeded
from everytick.domain.payload import Payload
from everytick.errors import GiveUp, TryAgain
from everytick.runners.outcomes import ERROR_LIMIT, NOTHING, bounded, failed, last_lines, succeeded


def raised(error: BaseException) -> Failed:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001 - the point of it
        return failed(caught)


def test_an_exception_is_kept_with_its_traceback_and_its_kinds() -> None:
    outcome = raised(KeyError("x"))

    assert outcome.error.startswith("Traceback")
    assert outcome.error.endswith("KeyError: 'x'")
    assert outcome.error_types[:2] == ("builtins.KeyError", "builtins.LookupError")


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), MemoryError()])
def test_what_ends_other_programs_is_a_failure_like_any_other(error: BaseException) -> None:
    """F-18: sys.exit and its kin never get further than the attempt."""
    assert raised(error).error_types[-1] == "builtins.BaseException"


def test_giving_up_and_trying_again_say_so() -> None:
    assert raised(GiveUp("no such customer")) == Failed(
        "no such customer",
        ("everytick.errors.GiveUp", "builtins.Exception", "builtins.BaseException"),
        give_up=True,
    )
    assert raised(TryAgain("1h30m")).try_again_after == timedelta(minutes=90)
    assert raised(TryAgain(timedelta(seconds=5), "busy")).error == "busy"


@pytest.mark.parametrize("after", ["soon", "1y", timedelta(seconds=-1)])
def test_a_wait_that_cannot_be_read_leaves_the_retry_policy_in_charge(after: str) -> None:
    outcome = raised(TryAgain(after))

    assert outcome.try_again_after is None
    assert "the retry policy decides" in outcome.error


def test_giving_up_because_of_another_error_keeps_that_error() -> None:
    try:
        try:
            raise ValueError("the cause")
        except ValueError as cause:
            raise GiveUp("no use") from cause
    except GiveUp as error:
        outcome = failed(error)

    assert "ValueError: the cause" in outcome.error
    assert outcome.give_up


def test_an_error_of_ten_megabytes_keeps_its_beginning_and_its_end() -> None:
    """I2: 64 KB are kept of it."""
    outcome = raised(ValueError("é" * 5_000_000 + "the end"))

    assert len(outcome.error.encode()) <= ERROR_LIMIT
    assert outcome.error.startswith("Traceback")
    assert outcome.error.endswith("the end")
    assert "bytes left out" in outcome.error


def test_text_that_no_store_takes_is_written_otherwise() -> None:
    """F-19: NUL and half a surrogate pair."""
    assert bounded("a\x00b\ud800") == "a\\x00b\\ud800"


def test_an_exception_that_cannot_be_shown_is_still_a_failure() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise SystemExit

        @property
        def __cause__(self) -> BaseException:  # type: ignore[override]
            raise RuntimeError("not even this")

    assert "Unspeakable" in raised(Unspeakable()).error


def test_a_result_is_kept_as_json() -> None:
    assert succeeded(None) is NOTHING
    assert succeeded({"b": (1, 2)}) == Succeeded(Payload('{"b":[1,2]}'))


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (object(), "holds an object"),
        ({"x": {1, 2}}, "holds a set at x"),
        ("x" * 300_000, "300,002 bytes"),
        (float("nan"), "holds nan"),
    ],
)
def test_a_result_that_is_not_json_or_too_large_is_a_failure_that_says_so(result: object, says: str) -> None:
    """I3: and since the work was done, it is not done again."""
    outcome = succeeded(result)

    assert isinstance(outcome, Failed)
    assert outcome.give_up
    assert "did its work" in outcome.error
    assert says in outcome.error


def test_a_result_whose_methods_raise_is_a_failure() -> None:
    class Hostile(dict[str, object]):
        def items(self) -> object:  # type: ignore[override]
            raise SystemExit("ha")

    assert "SystemExit: ha" in getattr(succeeded(Hostile(a=1)), "error", "")


def test_the_last_lines_of_output_reach_no_terminal_raw() -> None:
    """S15"""
    assert last_lines(b"one\ntwo\n\x1b[2Jthree\xff\n", 2) == "two\n\\x1b[2Jthree\\xff"
