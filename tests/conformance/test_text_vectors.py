"""The tables of text forms and calendars."""

from datetime import date, time
from typing import Any

import pytest

from everytick import cron, schedule
from everytick.errors import InvalidSchedule
from everytick.schedules.calendars import Calendar
from tests.conformance.vectors import at, expected, options, questions, table

TEXTS = table("text_forms")
CALENDARS = {"off": Calendar("off", weekdays=frozenset({6, 7}))}


@pytest.mark.parametrize("text", TEXTS["canonical"])
def test_a_canonical_text_is_written_as_it_was_read(text: str) -> None:
    assert str(schedule(text)) == text


@pytest.mark.parametrize(("text", "other", "why"), TEXTS["equal"])
def test_two_texts_of_one_schedule_are_equal(text: str, other: str, why: str) -> None:
    assert schedule(text) == schedule(other), why
    assert str(schedule(text)) == str(schedule(other))
    assert hash(schedule(text)) == hash(schedule(other))


@pytest.mark.parametrize(("text", "after", "answer"), TEXTS["next"])
def test_a_text_names_the_instants_of_its_schedule(text: str, after: str, answer: str | None) -> None:
    read = schedule(text, calendars=CALENDARS)

    assert read.next_after(at(after)) == (at(answer) if answer else None)


@pytest.mark.parametrize(("text", "after", "answer"), TEXTS["next"])
def test_a_text_form_written_is_one_that_reads_back(text: str, after: str, answer: str | None) -> None:
    written = str(schedule(text, calendars=CALENDARS))

    again = schedule(written, calendars=CALENDARS)

    assert again == schedule(text, calendars=CALENDARS)
    assert str(again) == written


@pytest.mark.parametrize(("text", "why"), TEXTS["refused"])
def test_every_listed_mistake_in_a_text_is_refused(text: str, why: str) -> None:
    """S0-050."""
    with pytest.raises(InvalidSchedule) as refusal:
        schedule(text, calendars=CALENDARS)

    assert str(refusal.value).isprintable(), why


def calendar(case: dict[str, Any]) -> Calendar:
    dates = frozenset(date.fromisoformat(text) for text in case.get("dates", ()))
    half_days = frozenset(
        (date.fromisoformat(day), time.fromisoformat(until)) for day, until in case.get("half_days", {}).items()
    )
    return Calendar("days-off", dates=dates, weekdays=frozenset(case.get("weekdays", ())), half_days=half_days)


@pytest.mark.parametrize("case", table("calendars"), ids=lambda case: case["id"])
def test_the_instants_around_excluded_days_are_those_of_the_table(case: dict[str, Any]) -> None:
    rolled = cron(case["expr"], **options(case)).excluding(calendar(case), roll=case["roll"])

    for moment, answer in questions(case):
        assert rolled.next_after(moment) == answer
    answers = [answer for answer in expected(case) if answer]
    assert [rolled.last_at(answer) for answer in answers] == answers
