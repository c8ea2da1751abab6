"""The oracle itself: its two ways of listing instants agree, so a slip in one of them would show."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.cron import by_dates, read, walk
from tests.oracle.moments import PLACES, Place, jump_at
from tests.oracle.strategies import FOLDS, GAPS, PLACE, five_fields, quartz
from tests.oracle.zones import SECOND, offset, resolve, wall


@settings(max_examples=60, deadline=None)
@given(five_fields("vixie"), PLACE, GAPS, FOLDS)
def test_walking_minutes_and_placing_wall_times_agree(text: str, place: Place, gap: str, fold: str) -> None:
    zone, jump, reach = ZoneInfo(place.zone), jump_at(place), timedelta(hours=14)
    rule = read(text, gap=gap, fold=fold)

    walked = walk(rule, zone, jump - reach, jump + reach)

    assert walked == by_dates(rule, zone, jump - reach, jump + reach)


@settings(max_examples=30, deadline=None)
@given(quartz(), PLACE, GAPS, FOLDS)
def test_walking_seconds_and_placing_wall_times_agree(text: str, place: Place, gap: str, fold: str) -> None:
    zone, jump, reach = ZoneInfo(place.zone), jump_at(place), timedelta(minutes=45)
    rule = read(text, "quartz", gap=gap, fold=fold)

    walked = walk(rule, zone, jump - reach, jump + reach)

    assert walked == by_dates(rule, zone, jump - reach, jump + reach)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place.zone} {place.near}")
def test_every_place_has_a_jump_where_its_table_says(place: Place) -> None:
    zone, jump = ZoneInfo(place.zone), jump_at(place)

    assert offset(jump - SECOND, zone) != offset(jump, zone)


@given(PLACE, st.integers(-36, 36))
def test_resolving_what_the_wall_shows_gives_its_first_pass(place: Place, hours: int) -> None:
    zone, at = ZoneInfo(place.zone), jump_at(place) + timedelta(hours=hours)

    assert resolve(wall(at, zone), zone) <= at
