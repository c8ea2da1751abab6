"""The cron tables: instants worked out by hand, expressions that are in the grammar and those that are not."""

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from everytick import cron
from everytick.errors import (
    CronExpressionInvalidError,
    FieldParseError,
    InvalidCronExpressionError,
    InvalidSchedule,
)
from tests.conformance.vectors import at, expected, options, questions, table
from tests.oracle.cron import accepts, by_dates, read

FIVE_FIELDS = [*table("cron_calendar"), *table("cron_dst")]
QUARTZ = [case | {"dialect": "quartz"} for case in table("cron_quartz")]
CASES = FIVE_FIELDS + QUARTZ
ACCEPTED = [(dialect, text) for dialect, texts in table("cron_accepted").items() for text in texts]
REFUSED = [(dialect, *row) for dialect, rows in table("cron_refused").items() for row in rows]
AFFORDABLE = timedelta(days=800)


def brute_force_can(case: dict[str, Any]) -> bool:
    """Say whether the oracle can take the case: it knows no windows, and a day of seconds is too long for it."""
    return not {"start", "end"} & case.keys() and case["expr"] != "* * * ? * *"


def name(case: dict[str, Any]) -> str:
    return f"{case['id']}: {case['expr']}"


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_next_instants_are_those_of_the_table(case: dict[str, Any]) -> None:
    """A1…A29, J9, S0-038, S0-048, S2-008…010, S2-038, S2-039, S3-009, S3-010, S3-029, C-01…03, C-20.

    S1-016, S1-030, S1-032, S1-041: five fields and macros, UTC unless said; leap seconds, clock changes, month ends.
    """
    schedule = cron(case["expr"], **options(case))

    for moment, answer in questions(case):
        assert schedule.next_after(moment) == answer


@pytest.mark.parametrize("case", CASES, ids=name)
def test_the_last_instants_are_those_of_the_table(case: dict[str, Any]) -> None:
    """A9: backwards is the same road."""
    schedule = cron(case["expr"], **options(case))
    answers = [answer for answer in expected(case) if answer]

    assert [schedule.last_at(answer) for answer in answers] == answers
    before = [schedule.last_at(answer - timedelta(microseconds=1)) for answer in answers]
    assert before[1:] == answers[:-1]
    assert all(last is None or last <= at(case["after"]) for last in before[:1])


@pytest.mark.parametrize("case", CASES, ids=name)
def test_listed_instants_are_those_of_the_table(case: dict[str, Any]) -> None:
    """S0-049: (after, through]."""
    schedule = cron(case["expr"], **options(case))
    answers = [answer for answer in expected(case) if answer]
    through = answers[-1] if answers else at(case["after"]) + timedelta(days=10_000)

    assert list(schedule.instants(at(case["after"]), through)) == answers


@pytest.mark.parametrize("case", [case for case in CASES if brute_force_can(case)], ids=name)
def test_the_oracle_agrees_with_the_table(case: dict[str, Any]) -> None:
    """What was worked out by hand and what brute force finds are one, as far as brute force is affordable."""
    rule = read(
        case["expr"],
        case.get("dialect", "vixie").replace("standard", "vixie"),
        gap=case.get("dst_gap"),
        fold=case.get("dst_fold"),
        day_match=case.get("day_match", "or"),
    )
    after = at(case["after"])
    answers = [answer for answer in expected(case) if answer and answer <= after + AFFORDABLE]
    through = after + AFFORDABLE if None in expected(case) or not answers else answers[-1]

    assert by_dates(rule, ZoneInfo(case.get("tz", "UTC")), after, through) == answers


@pytest.mark.parametrize(("dialect", "text"), ACCEPTED)
def test_every_listed_expression_is_accepted(dialect: str, text: str) -> None:
    """S2-027, S2-028, S2-039, C-01."""
    assert accepts(text, dialect)

    assert cron(text, dialect=dialect) == cron(text, dialect=dialect)


@pytest.mark.parametrize(("dialect", "text", "field", "why"), REFUSED)
def test_every_listed_mistake_is_refused_by_name(dialect: str, text: str, field: str, why: str) -> None:
    """S2-029 … S2-037, S2-045, S2-047; J1, J3, J4, J5, J7, J8."""
    assert not accepts(text, dialect)

    with pytest.raises(CronExpressionInvalidError) as refusal:
        cron(text, dialect=dialect)

    assert refusal.value.field == field or field == "*", why
    assert refusal.value.text == text
    assert refusal.value.details == {"expression": text, "field": refusal.value.field, "reason": refusal.value.reason}
    assert str(refusal.value).startswith('Invalid cron expression "')
    assert f'": {refusal.value.field} field {refusal.value.reason}' in str(refusal.value)
    assert str(refusal.value).isprintable()
    assert refusal.value.reason.isprintable()
    assert str(refusal.value.__cause__).isprintable()


def test_both_names_of_the_error_catch_it_and_a_field_is_its_cause() -> None:
    """C-31, S2-045, S2-047, S2-048."""
    with pytest.raises(InvalidCronExpressionError) as refusal:
        cron("0 61 * * *")

    assert isinstance(refusal.value, InvalidSchedule)
    assert isinstance(refusal.value.__cause__, FieldParseError)
    assert refusal.value.__cause__.details == {"fieldValue": "61", "fieldName": "hour"}


@pytest.mark.parametrize(
    ("expression", "field", "reason"),
    [
        ("0 0 ? * *", "day", "must not have the tokens of Quartz (? L W #) in dialect posix, got ?"),
        ("0 0 L * *", "day", "must not have the tokens of Quartz (? L W #) in dialect posix, got L"),
        ("0 0 15W * *", "day", "must not have the tokens of Quartz (? L W #) in dialect posix, got 15W"),
        ("0 0 * * 5#3", "weekday", "must not have the tokens of Quartz (? L W #) in dialect posix, got 5#3"),
        ("0 0 * * mon", "weekday", "must not have names in dialect posix, got mon: write the number"),
        ("0 0 * JAN-3 *", "month", "must not have names in dialect posix, got JAN-3: write the number"),
        ("1e1 * * * *", "minute", "must be plain decimal numbers in dialect posix, got 1e1"),
        ("0x1 * * * *", "minute", "must be plain decimal numbers in dialect posix, got 0x1"),
        ("-1 * * * *", "minute", "must not have a sign, got -1"),
        ("5- * * * *", "minute", "must have a number after -, got 5-"),
        ("@daily", "format", "must not be a macro, which posix does not have"),
        ("@daily * * * *", "minute", "must be plain decimal numbers in dialect posix, got @daily"),
    ],
)
def test_a_refusal_says_what_is_wrong(expression: str, field: str, reason: str) -> None:
    """S2-030, S2-031, M10: by its own name, not as something else."""
    with pytest.raises(CronExpressionInvalidError) as caught:
        cron(expression, dialect="posix")
    assert (caught.value.field, caught.value.reason) == (field, reason)


def test_six_fields_are_refused_with_both_readings() -> None:
    """C-01: the message says what the text would be in quartz and what is too much in vixie."""
    with pytest.raises(CronExpressionInvalidError, match="quartz"):
        cron("0 0 12 * * *")


@pytest.mark.parametrize(
    "mistake",
    [
        {"tz": "Nowhere/City"},
        {"tz": ""},
        {"tz": "../../../etc/passwd"},
        {"tz": "Europe"},
        {"dialect": "cronish"},
        {"dst_gap": "maybe"},
        {"dst_fold": "never"},
        {"day_match": "xor"},
        {"start": at("2025-01-02T00:00Z"), "end": at("2025-01-01T00:00Z")},
    ],
    ids=str,
)
def test_a_wrong_option_is_refused_when_the_schedule_is_made(mistake: dict[str, Any]) -> None:
    """S0-050."""
    with pytest.raises(InvalidSchedule):
        cron("0 0 * * *", **mistake)
