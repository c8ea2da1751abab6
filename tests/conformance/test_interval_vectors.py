"""The interval tables: month ends, clock jumps, counts and fractions worked out by hand."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from everytick import every, once, repeat
from everytick.errors import DefinitionError, InvalidSchedule
from tests.conformance.vectors import at, expected, questions, table

CASES = table("interval")
REFUSED = table("interval_refused")


def made(case: dict[str, Any]) -> Any:
    """Return the schedule of a case."""
    extra = {key: case[key] for key in ("tz",) if key in case}
    if "start" in case:
        extra["start"] = at(case["start"])
    if "end" in case:
        extra["end"] = at(case["end"])
    return every(case["every"], **extra) if "every" in case else repeat(case["text"], **extra)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_next_instants_are_those_of_the_table(case: dict[str, Any]) -> None:
    """S0-038, S0-051; A22."""
    schedule = made(case)

    for moment, answer in questions(case):
        assert schedule.next_after(moment) == answer


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_last_instants_are_those_of_the_table(case: dict[str, Any]) -> None:
    schedule = made(case)
    answers = [answer for answer in expected(case) if answer]

    assert [schedule.last_at(answer) for answer in answers] == answers
    before = [schedule.last_at(answer - timedelta(microseconds=1)) for answer in answers]
    assert before[1:] == answers[:-1]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_listed_instants_are_those_of_the_table(case: dict[str, Any]) -> None:
    schedule = made(case)
    answers = [answer for answer in expected(case) if answer]
    through = answers[-1] if answers else at(case["after"]) + timedelta(days=10_000)

    assert list(schedule.instants(at(case["after"]), through)) == answers


@pytest.mark.parametrize(("text", "why"), REFUSED["repeat"])
def test_every_listed_mistake_in_an_interval_is_refused(text: str, why: str) -> None:
    """S0-050; J7."""
    with pytest.raises(InvalidSchedule) as refusal:
        repeat(text)

    assert str(refusal.value).isprintable(), why


@pytest.mark.parametrize(("text", "why"), REFUSED["every"])
def test_every_listed_mistake_in_a_period_is_refused(text: str, why: str) -> None:
    with pytest.raises(DefinitionError) as refusal:
        every(text)

    assert str(refusal.value).isprintable(), why


@pytest.mark.parametrize(("fold", "first"), [(0, "2025-10-26T02:30+02:00"), (1, "2025-10-26T02:30+01:00")])
def test_a_start_in_a_fold_is_the_pass_that_was_given(fold: int, first: str) -> None:
    """k = 0 keeps the offset of the start; the next day the wall time comes once."""
    start = datetime(2025, 10, 26, 2, 30, fold=fold, tzinfo=ZoneInfo("Europe/Berlin"))
    schedule = every("P1D", start=start, tz="Europe/Berlin")

    found = schedule.instants(at("2025-10-25T12:00Z"), at("2025-10-27T12:00Z"))

    assert list(found) == [at(first), at("2025-10-27T02:30+01:00")]


def test_once_names_one_instant_and_is_then_complete() -> None:
    """S0-038, S0-052."""
    at_nine = datetime(2025, 1, 1, 9, tzinfo=UTC)
    schedule = once(at_nine)

    assert schedule.next_after(datetime(1970, 1, 1, tzinfo=UTC)) == at_nine
    assert schedule.next_after(at_nine - timedelta(microseconds=1)) == at_nine
    assert schedule.next_after(at_nine) is None
    assert schedule.last_at(at_nine) == at_nine
    assert schedule.last_at(at_nine - timedelta(microseconds=1)) is None
    assert list(schedule.instants(at_nine - timedelta(days=1), at_nine)) == [at_nine]


@pytest.mark.parametrize(
    ("text", "zone", "instant"),
    [
        ("2025-07-01T09:00:00", "Europe/Berlin", "2025-07-01T09:00+02:00"),
        ("2025-03-30T02:30:00", "Europe/Berlin", "2025-03-30T03:30+02:00"),
        ("2025-10-26T02:30:00", "Europe/Berlin", "2025-10-26T02:30+02:00"),
        ("2025-10-26T02:30:00+01:00", "Europe/Berlin", "2025-10-26T02:30+01:00"),
        ("2025-07-01T09:00:00Z", None, "2025-07-01T09:00Z"),
    ],
)
def test_once_reads_a_wall_time_of_its_zone(text: str, zone: str | None, instant: str) -> None:
    """A missing wall time moves forward by the gap, a repeated one is its first pass."""
    assert once(text, tz=zone).next_after(datetime(2025, 1, 1, tzinfo=UTC)) == at(instant)
