"""A hundred thousand strings, shared by the dialects: only the documented error escapes, in time and memory."""

from functools import partial

import pytest

from everytick import cron
from tests.fuzz.judge import judge, judge_memory
from tests.fuzz.strings import giants, strings
from tests.oracle.dice import expression

VALID = {"posix": "0 0 * * *", "vixie": "*/5 0 * jan mon-fri", "quartz": "0 0/5 0 ? * 6L 2025"}
STRINGS = 100_000
DIALECTS = pytest.mark.parametrize("dialect", list(VALID))


@DIALECTS
def test_a_hundred_thousand_strings_raise_only_the_documented_error(dialect: str) -> None:
    """J1, J3 … J8; S2-045."""
    make = partial(cron, dialect=dialect)

    accepted = judge(make, strings(seed=1, count=STRINGS // len(VALID), valid=partial(expression, dialect=dialect)))

    assert STRINGS // 300 < accepted < STRINGS // 5, "the generator should try both sides of the line"


@DIALECTS
def test_strings_of_a_hundred_kilobytes_are_refused_in_time(dialect: str) -> None:
    """J2: ten thousand fields, lists of fifty thousand items."""
    judge(partial(cron, dialect=dialect), giants(VALID[dialect]))


@DIALECTS
def test_no_string_takes_more_memory_than_allowed(dialect: str) -> None:
    """J3: ranges are checked before they are expanded."""
    make = partial(cron, dialect=dialect)

    judge_memory(make, giants(VALID[dialect]))
    judge_memory(make, strings(seed=2, count=500, valid=partial(expression, dialect=dialect)))
    judge_memory(make, ["0-99999999/1 * * * *", "*/99999999999 * * * *", "9" * 100_000 + " * * * *"])


@pytest.mark.parametrize("digits", [4300, 4301, 5001, 100_000])
@pytest.mark.parametrize("text", ["{} * * * *", "*/{} * * * *", "0-{} * * * *", "H({}-{}) * * * *", "{} 0 0 1 1 ? {}"])
def test_a_number_of_thousands_of_digits_is_only_out_of_range(text: str, digits: int) -> None:
    """J6: Python's own limit on integers in text must not show."""
    dialect = "quartz" if "?" in text else "vixie"

    assert judge(partial(cron, dialect=dialect), [text.replace("{}", "9" * digits)]) == 0
