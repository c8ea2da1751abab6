"""Cron Language Specification: the language by table and by property, against a model written for this suite."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.conformance.declarative import cron_model
from tests.conformance.declarative.adapter import Adapter, World
from tests.conformance.declarative.strategies import expressions, expressions_near, spoiled
from tests.conformance.declarative.tasks import Task
from tests.conformance.declarative.test_public_interface import fine

VALID = [
    "0 0 * * *",
    "15 3 * * 1-5",
    "0,30 * * * *",
    "0 12 14 2 *",
    "0 0 1,15 * 1",
    "* * * * *",
    "  0 0 * * *",
    "0 0 * * *\t ",
    "0\t0 \t*  * *",
    "00 007 01 1 0",
    "5-5 * * * *",
    "1,1,1-3,2 * * * *",
    "0-59 0-23 1-31 1-12 0-6",
    "0 0 29 2 *",
]
INVALID = {
    "fields": ["", " ", "*", "* * * *", "* * * * * *", "0 0 * * * 2026", "*,* * * *"],
    "step syntax": ["*/15 * * * *", "0-30/5 * * * *", "0/5 * * * *", "* */2 * * *", "* * * * 1-5/2"],
    "names": ["0 0 * * mon", "0 0 * jan *", "0 0 * * sunday", "0 0 * * MON-FRI", "0 0 * Feb-Apr *"],
    "macros": ["@daily", "@hourly", "@reboot", "@every 5m", "@daily * * * *"],
    "quartz tokens": ["0 0 ? * *", "0 0 L * *", "0 0 15W * *", "0 0 * * 5#2", "0 0 * * ?", "0 0 * * 5L"],
    "weekday seven": ["0 0 * * 7", "0 0 * * 0-7", "0 0 * * 5-7", "0 0 * * 1,7"],
    "wrapped ranges": ["30-10 * * * *", "0 22-2 * * *", "0 0 25-5 * *", "0 0 * 11-2 *", "0 0 * * 5-1"],
    "out of range": ["60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *", "0-99 * * * *"],
    "not decimal": [
        "1e1 * * * *",
        "0x10 * * * *",
        "+5 * * * *",
        "-5 * * * *",
        "5.0 * * * *",
        "٥ * * * *",
        "５ * * * *",
    ],
    "not in the grammar": ["*,5 * * * *", "5,* * * * *", "1,,2 * * * *", "1, * * * *", ",1 * * * *", "1- * * * *"],
    "not blanks": ["0\n0 * * *", "0 0 * * *\n", "0\u00a00 * * *", "0,0,*,*,*", "0 0 * * *\x00", "\ufeff0 0 * * *"],
}
REFUSED = [(rule, text) for rule, texts in INVALID.items() for text in texts]


def accepts(adapter: Adapter, expression: str) -> bool:
    """Say whether `initialize` takes the expression; one that never fires is in the language, too."""

    async def story(world: World) -> bool:
        scheduler = world.scheduler()
        try:
            begun = scheduler.initialize([("a", expression, fine, timedelta(0))])
        except adapter.error("CronExpressionInvalidError") as error:
            assert scheduler.state == "Uninitialized"
            details = adapter.details(error)
            assert details["expression"] == expression
            return False
        except adapter.error("CronCalculationError"):
            return True
        await begun
        await scheduler.stop()
        return True

    return adapter.play(story)


def model_accepts(expression: str) -> bool:
    try:
        cron_model.read(expression)
    except cron_model.Refused:
        return False
    return True


@pytest.mark.parametrize("expression", VALID)
def test_formal_grammar_and_field_ranges_accept(quick: Adapter, expression: str) -> None:
    """S2-027, S2-028, S2-039."""
    assert accepts(quick, expression)
    assert model_accepts(expression)


@pytest.mark.parametrize(("rule", "expression"), REFUSED)
def test_validation_rules_reject(quick: Adapter, rule: str, expression: str) -> None:
    """S2-029 … S2-037, S2-039."""
    assert not accepts(quick, expression)
    assert not model_accepts(expression)


@given(expression=expressions())
@settings(max_examples=40)
def test_formal_grammar_every_expression_of_the_language_is_accepted(quick: Adapter, expression: str) -> None:
    """S2-027, S2-028."""
    assert model_accepts(expression)
    assert accepts(quick, expression)


@given(expression=spoiled() | st.text("0123456789*,-/ \t@LW?#", max_size=20))
@settings(max_examples=80)
def test_validation_rules_accept_exactly_what_the_grammar_does(quick: Adapter, expression: str) -> None:
    """S2-027 … S2-037: what is nearly an expression is judged as the grammar judges it."""
    assert accepts(quick, expression) == model_accepts(expression)


def field_refused_by_the_model(expression: str) -> str | None:
    """Return the field that the model refuses; None if it accepts the expression or refuses it as a whole."""
    try:
        cron_model.read(expression)
    except cron_model.Refused as refused:
        return refused.field
    return None


@given(expression=spoiled())
@settings(max_examples=40)
def test_validation_rules_name_the_field_that_is_wrong(quick: Adapter, expression: str) -> None:
    """S2-045: where the model finds five fields and one of them wrong, the error names that one."""
    wrong = field_refused_by_the_model(expression)
    assume(wrong is not None)

    async def story(world: World) -> None:
        with pytest.raises(quick.error("CronExpressionInvalidError")) as caught:
            world.scheduler().initialize([("a", expression, fine, timedelta(0))])
        assert quick.details(caught.value)["field"] == wrong

    quick.play(story)


TRUTH = [
    ("0 0 * * *", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}),
    ("0 0 * * 1", {2, 9, 16}),
    ("0 0 15 * *", {15}),
    ("0 0 1,15 * 1", {1, 2, 9, 15, 16}),
    ("0 0 1-31 * 1", set(range(1, 17))),
    ("0 0 15 * 0-6", set(range(1, 17))),
]


@pytest.mark.parametrize(("expression", "days"), TRUTH)
def test_day_of_month_day_of_week_semantics(quick: Adapter, expression: str, days: set[int]) -> None:
    """S2-038: the truth table, on the first half of March 2026, whose second day is a Monday.

    A field is restricted when it is anything but `*`, though it may name every day.
    """
    after, through = datetime(2026, 2, 28, 12, tzinfo=UTC), datetime(2026, 3, 16, 12, tzinfo=UTC)

    assert {at.day for at in quick.occurrences(expression, "UTC", after, through)} == days
    assert {at.day for at in cron_model.occurrences(expression, "UTC", after, through)} == days


@pytest.mark.parametrize(("expression", "runs"), [("1 0 15 * 2", True), ("1 0 3 * 1", True), ("1 0 15 * 1", False)])
def test_day_of_month_day_of_week_semantics_when_it_runs(quick: Adapter, expression: str, runs: bool) -> None:
    """S2-038: 3 March 2026 is a Tuesday."""

    async def story(world: World) -> None:
        task = Task(world)
        scheduler = await world.started(task.on(expression))
        await world.advance(minutes=2)
        await scheduler.stop()
        assert task.count == int(runs)

    quick.play(story, begin=datetime(2026, 3, 3, 0, 0, 10, tzinfo=UTC))


ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Antarctica/Troll", "Asia/Kathmandu"]
MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)).map(lambda at: at.replace(tzinfo=UTC))  # noqa: DTZ001


@given(expression=expressions(), zone=st.sampled_from(ZONES), after=MOMENTS)
@settings(max_examples=80)
def test_occurrences_are_those_of_the_model(quick: Adapter, expression: str, zone: str, after: datetime) -> None:
    """S2-006, S2-010, S2-038: every minute of two days, looked at one by one."""
    through = after + timedelta(days=2)

    assert quick.occurrences(expression, zone, after, through) == cron_model.occurrences(
        expression, zone, after, through
    )


@given(data=st.data(), zone=st.sampled_from(ZONES), begin=MOMENTS)
@settings(max_examples=25)
def test_runs_are_those_of_the_model(quick: Adapter, data: st.DataObject, zone: str, begin: datetime) -> None:
    """S2-006, S2-008, S2-009, S2-012, S2-038: real callbacks for nine minutes, anywhere in two years."""
    begin = begin.replace(second=10, microsecond=0)
    minute = begin - timedelta(seconds=10)
    expression = data.draw(expressions_near(begin.astimezone(ZoneInfo(zone))))

    async def story(world: World) -> list[datetime]:
        task = Task(world)
        try:
            scheduler = await world.started(task.on(expression))
        except quick.error("CronCalculationError"):
            return []
        await world.advance(minutes=9)
        await scheduler.stop()
        return [began.replace(second=0, microsecond=0) for began in task.began]

    expected = cron_model.occurrences(expression, zone, minute - timedelta(minutes=1), begin + timedelta(minutes=9))
    assert quick.play(story, begin=begin, zone=zone) == expected
