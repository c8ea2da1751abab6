"""Durations, periods and moments: one parser for all, and a clear refusal for what it cannot read."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everytick.domain.durations import (
    Moment,
    Period,
    duration,
    format_duration,
    instant,
    later,
    moment,
    period,
)
from everytick.errors import InvalidDuration, InvalidInstant


@pytest.mark.parametrize(
    ("text", "months", "days", "seconds"),
    [
        ("90s", 0, 0, 90),
        ("1h30m", 0, 0, 5400),
        ("1h 30m", 0, 0, 5400),
        ("1.5h", 0, 0, 5400),
        ("250ms", 0, 0, 0.25),
        ("10us", 0, 0, 0.00001),
        ("2d", 0, 2, 0),
        ("1w", 0, 7, 0),
        ("1w2d3h", 0, 9, 10800),
        ("0s", 0, 0, 0),
        ("PT90S", 0, 0, 90),
        ("PT0,5S", 0, 0, 0.5),
        ("PT1.5H", 0, 0, 5400),
        ("PT1H0.5M", 0, 0, 3630),
        ("P1M", 1, 0, 0),
        ("P1Y2M10DT2H30M", 14, 10, 9000),
        ("P1W2D", 0, 9, 0),
        ("P0D", 0, 0, 0),
        ("P007D", 0, 7, 0),
    ],
)
def test_periods_are_read_in_both_notations(text: str, months: int, days: int, seconds: float) -> None:
    assert period(text) == Period(months, days, timedelta(seconds=seconds))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "s",
        "90",
        "9.5",
        "-5s",
        "+5s",
        "5 s",
        "1h ",
        " 1h",
        "1m1h",
        "1h1h",
        "1.5h30m",
        "1.5d",
        "1e3s",
        "٣s",
        "5S",
        "5\n",
        "P",
        "PT",
        "P1",
        "P1DT",
        "PT1",
        "P1H",
        "P1.5M",
        "P1.5D",
        "PT1.5H3M",
        "-P1D",
        "P-1D",
        "p1d",
        "P1D ",
        "P1D2W",
        "PT1M1H",
        "PT0.0000001S",
        "PT0.33333333333333M",
        "9" * 5000 + "s",
        "P" + "9" * 5000 + "D",
        "P9999999Y",
        "999999999999d",
    ],
)
def test_what_is_not_a_length_is_refused(text: str) -> None:
    with pytest.raises(InvalidDuration) as caught:
        period(text)
    assert len(str(caught.value)) < 1000
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("given_", [90, 1.5, None, True, b"90s", object(), timedelta(seconds=-1)])
def test_what_is_no_text_is_refused(given_: object) -> None:
    with pytest.raises(InvalidDuration):
        period(given_)


def test_a_bare_number_is_told_which_units_it_could_mean() -> None:
    with pytest.raises(InvalidDuration, match='has no unit: write "90s", "90m" or "90h"'):
        duration(90)
    with pytest.raises(InvalidDuration, match='has no unit: write "90s", "90m" or "90h"'):
        duration("90")


def test_a_day_is_24_hours_where_a_fixed_length_is_wanted_and_a_month_is_refused() -> None:
    assert duration("P1DT1H") == timedelta(hours=25)
    assert duration(timedelta(minutes=5)) == timedelta(minutes=5)
    with pytest.raises(InvalidDuration, match="length varies"):
        duration("P1M")
    with pytest.raises(InvalidDuration, match="longer than"):
        duration("P999999999DT48H")


periods = st.builds(
    Period,
    months=st.integers(0, 12 * 9999),
    days=st.integers(0, 10_000),
    elapsed=st.timedeltas(timedelta(0), timedelta(days=10_000)),
)


@given(periods)
def test_a_period_reads_back_what_it_writes(length: Period) -> None:
    assert period(str(length)) == length


@given(st.timedeltas(timedelta(0), timedelta(days=10_000)))
def test_a_duration_reads_back_what_it_writes(length: timedelta) -> None:
    assert duration(format_duration(length)) == length


@given(periods)
def test_a_period_is_said_in_words(length: Period) -> None:
    assert length.describe()
    assert bool(length) == (length.describe() != "0 seconds")


def test_words_for_lengths() -> None:
    assert period("1h30m").describe() == "1 hour 30 minutes"
    assert period("P1Y1M1W").describe() == "1 year 1 month 1 week"
    assert period("0.5s").describe() == "0.5 seconds"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31T09:00:00Z", datetime(2026, 1, 31, 9, tzinfo=UTC)),
        ("2026-01-31T09:00:00.5+02:00", datetime(2026, 1, 31, 7, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-01-31T09:00-0530", datetime(2026, 1, 31, 14, 30, tzinfo=UTC)),
        ("20260131T090000Z", datetime(2026, 1, 31, 9, tzinfo=UTC)),
        ("2026-01-31T09:00+02", datetime(2026, 1, 31, 7, tzinfo=UTC)),
        ("2026-01-31Z", datetime(2026, 1, 31, tzinfo=UTC)),
    ],
)
def test_instants_are_read(text: str, expected: datetime) -> None:
    assert instant(text) == expected
    assert instant(text).tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-31T09:00:00",
        "2026-02-30T00:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T09:00:60Z",
        "2026-01-31 09:00:00Z",
        "2026-01-31T090000Z",
        "2026-1-31T09:00:00Z",
        "2026-01-31T09:00:00+24:00",
        "2026-01-31T09:00:00z",
        "२०२६-01-31T09:00:00Z",
        "2026-01-31T09:00:00.1234567Z",
        "2026-01-31T09:00:00[Europe/Berlin]",
        "2026-01-31T09:00:00Z\n",
        "0001-01-01T00:00:00+05:00",
        "0001-12-31T23:59:59Z",
        "9999-01-01T00:00:00Z",
    ],
)
def test_what_names_no_moment_is_refused(text: str) -> None:
    with pytest.raises(InvalidInstant):
        instant(text)


def test_a_naive_datetime_is_refused_and_an_aware_one_becomes_utc() -> None:
    with pytest.raises(InvalidInstant, match=r"^'2026-01-01T00:00:00': has no time zone"):
        instant(datetime(2026, 1, 1))  # noqa: DTZ001
    east = timezone(timedelta(hours=2))
    assert instant(datetime(2026, 1, 1, 2, tzinfo=east)) == datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(InvalidInstant):
        instant(5)


def test_a_moment_keeps_what_was_written() -> None:
    wall = datetime(2026, 1, 31, 9)  # noqa: DTZ001
    assert moment("2026-01-31T09:00:00[Europe/Berlin]") == Moment(wall, None, "Europe/Berlin")
    assert str(moment("2026-01-31T09:00+02")) == "2026-01-31T09:00:00+02:00"
    assert str(moment("2026-01-31T09:00-00:30")) == "2026-01-31T09:00:00-00:30"
    assert str(moment("20260131T0900Z")) == "2026-01-31T09:00:00Z"


def test_a_moment_so_long_from_now_lies_within_the_calendar() -> None:
    """What a person asks for in 300,000 years is refused, and no sum of theirs overflows."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert later(noon, timedelta(hours=1)) == datetime(2026, 1, 1, 13, tzinfo=UTC)
    with pytest.raises(InvalidDuration, match="ends after the year 9998"):
        later(noon, timedelta(days=99_999_999))
    with pytest.raises(InvalidInstant, match="lies outside the years 2 to 9998"):
        later(noon, timedelta(days=2_912_200))
