"""Unions: what one or more of the parts name, each instant once."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from everytick import any_of, cron, every, once
from everytick.domain.schedule import Schedule
from tests.oracle.strategies import five_fields

START = datetime(2025, 3, 1, tzinfo=UTC)
MOMENTS = st.integers(0, 60 * 24 * 60).map(lambda minutes: START + timedelta(minutes=minutes))
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"])
CRONS = st.builds(lambda text, zone: cron(text, tz=zone), five_fields("vixie"), ZONES)
EVERYS = st.builds(
    lambda hours, at: every(timedelta(hours=hours), start=at), st.integers(1, 90), st.just(START) | MOMENTS
)
ONCES = st.builds(once, MOMENTS)
PARTS = st.lists(CRONS | EVERYS | ONCES, min_size=2, max_size=4)


@settings(max_examples=120, deadline=None)
@given(PARTS, MOMENTS, st.integers(0, 60 * 24 * 8))
def test_a_union_names_what_its_parts_name(parts: list[Schedule], after: datetime, minutes: int) -> None:
    through = after + timedelta(minutes=minutes)
    expected = sorted({at for part in parts for at in part.instants(after, through)})

    union = any_of(*parts)

    assert list(union.instants(after, through)) == expected
    assert list(union.instants(after, through, 3)) == expected[:3]


@settings(max_examples=120, deadline=None)
@given(PARTS, MOMENTS)
def test_a_union_is_as_near_as_its_nearest_part(parts: list[Schedule], at: datetime) -> None:
    following = [part.next_after(at) for part in parts]
    last = [part.last_at(at) for part in parts]

    union = any_of(*parts)

    assert union.next_after(at) == min((i for i in following if i is not None), default=None)
    assert union.last_at(at) == max((i for i in last if i is not None), default=None)


def test_an_instant_named_by_two_parts_is_one() -> None:
    union = any_of(cron("0 0 * * *"), cron("0 */6 * * *"))
    day = datetime(2025, 1, 1, tzinfo=UTC)

    found = union.instants(day - timedelta(hours=1), day + timedelta(hours=1))

    assert list(found) == [day]
