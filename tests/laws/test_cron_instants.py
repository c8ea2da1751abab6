"""Cron against brute force: random expressions, every kind of clock jump, all six policies."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everytick import cron
from tests.oracle.cron import by_dates, read, walk
from tests.oracle.moments import Place
from tests.oracle.strategies import CALM_ZONES, FOLDS, GAPS, anywhen, around_a_jump, expressions, five_fields, quartz

DIALECTS = pytest.mark.parametrize("dialect", ["posix", "vixie", "quartz"])
DAY_MATCH = st.sampled_from(["or", "or", "and"])
HORIZON = timedelta(days=500)


@DIALECTS
@settings(max_examples=250, deadline=None)
@given(data=st.data(), asked=around_a_jump(), gap=GAPS, fold=FOLDS)
def test_instants_around_a_jump_are_those_of_the_oracle(
    dialect: str, data: st.DataObject, asked: tuple[Place, datetime], gap: str, fold: str
) -> None:
    """C-01, C-03: both policies in all six pairs, in every dialect."""
    place, after = asked
    text = data.draw(expressions(dialect))
    through = after + timedelta(hours=data.draw(st.integers(0, 60)))
    rule = read(text, dialect, gap=gap, fold=fold)

    found = cron(text, tz=place.zone, dialect=dialect, dst_gap=gap, dst_fold=fold).instants(after, through)

    assert list(found) == by_dates(rule, ZoneInfo(place.zone), after, through)


@settings(max_examples=80, deadline=None)
@given(five_fields("vixie"), around_a_jump(hours=8), GAPS, FOLDS, DAY_MATCH)
def test_instants_are_those_of_walking_every_minute(
    text: str, asked: tuple[Place, datetime], gap: str, fold: str, day_match: str
) -> None:
    """C-02, C-03."""
    place, after = asked
    through = after + timedelta(hours=9)
    rule = read(text, gap=gap, fold=fold, day_match=day_match)

    found = cron(text, tz=place.zone, dst_gap=gap, dst_fold=fold, day_match=day_match).instants(after, through)

    assert list(found) == walk(rule, ZoneInfo(place.zone), after, through)


@settings(max_examples=40, deadline=None)
@given(quartz(), around_a_jump(hours=1), GAPS, FOLDS)
def test_quartz_instants_are_those_of_walking_every_second(
    text: str, asked: tuple[Place, datetime], gap: str, fold: str
) -> None:
    """C-01, C-20: one second is the finest grain."""
    place, after = asked
    through = after + timedelta(minutes=50)
    rule = read(text, "quartz", gap=gap, fold=fold)

    found = cron(text, tz=place.zone, dialect="quartz", dst_gap=gap, dst_fold=fold).instants(after, through)

    assert list(found) == walk(rule, ZoneInfo(place.zone), after, through)


@DIALECTS
@settings(max_examples=150, deadline=None)
@given(data=st.data(), asked=around_a_jump(), gap=GAPS, fold=FOLDS)
def test_next_and_last_around_a_jump_have_nothing_between(
    dialect: str, data: st.DataObject, asked: tuple[Place, datetime], gap: str, fold: str
) -> None:
    """C-03; A10, A11, A17, A19, A20, A26."""
    place, at = asked
    text = data.draw(expressions(dialect))
    schedule = cron(text, tz=place.zone, dialect=dialect, dst_gap=gap, dst_fold=fold)

    assert_neighbours(schedule.next_after(at), schedule.last_at(at), text, dialect, place.zone, at, gap, fold)


@DIALECTS
@settings(max_examples=100, deadline=None)
@given(data=st.data(), zone=CALM_ZONES, at=anywhen())
def test_next_and_last_in_any_year_have_nothing_between(
    dialect: str, data: st.DataObject, zone: str, at: datetime
) -> None:
    """A6, A8, A24: leap, common and century years."""
    text = data.draw(expressions(dialect))
    schedule = cron(text, tz=zone, dialect=dialect)

    assert_neighbours(schedule.next_after(at), schedule.last_at(at), text, dialect, zone, at, None, None)


def assert_neighbours(
    following: datetime | None,
    last: datetime | None,
    text: str,
    dialect: str,
    zone: str,
    at: datetime,
    gap: str | None,
    fold: str | None,
) -> None:
    """Hold the two answers against the oracle, as far as its horizon reaches."""
    rule, tz = read(text, dialect, gap=gap, fold=fold), ZoneInfo(zone)
    until = at + HORIZON if following is None else min(following, at + HORIZON)
    assert by_dates(rule, tz, at, until) == ([following] if following == until else [])
    since = at - HORIZON if last is None else max(last - timedelta(microseconds=1), at - HORIZON)
    assert by_dates(rule, tz, since, at) == ([last] if last is not None and since < last else [])
