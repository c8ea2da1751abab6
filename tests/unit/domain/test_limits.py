"""Limits: texts, lanes, windows, and who is chosen; all of it without a store."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from everytick.domain.facts import PutBrake, ReleaseBrake, SetLimit
from everytick.domain.limit_changes import settled, spent, wished
from everytick.domain.limits import (
    BrakeRecord,
    LimitRecord,
    Rate,
    RateWindow,
    Reach,
    chosen,
    closed_because,
    in_lane,
    met_lanes,
    opening,
    plain_needs,
    rate_of,
    reach_name,
    reaches_of,
    room,
    soft_rate,
    windows_of,
)
from everytick.domain.needs import is_met
from everytick.errors import InvalidDuration, InvalidLimit, InvalidName
from everytick.schedules.codec import schedule

NOW = datetime(2026, 11, 16, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("text", ["all", "queue:slow", "tag:crm", "job:nightly report", "tag:a:b"])
def test_a_reach_is_named_by_a_text(text: str) -> None:
    assert reach_name(text) == text


@pytest.mark.parametrize("given", ["", "crm", "label:crm", "Tag:crm", 5, None])
def test_another_text_is_refused_with_what_to_write(given: object) -> None:
    with pytest.raises(InvalidLimit, match="write all, queue:NAME, tag:NAME or job:NAME"):
        reach_name(given)


def test_the_name_of_a_reach_is_one_that_a_tag_may_have() -> None:
    with pytest.raises(InvalidName):
        reach_name("tag: crm")


@pytest.mark.parametrize(
    ("text", "rate"),
    [("60/1m", Rate(60, MINUTE)), ("5 / 90s", Rate(5, timedelta(seconds=90))), ("1/PT1H", Rate(1, 60 * MINUTE))],
)
def test_a_rate_is_read_and_written(text: str, rate: Rate) -> None:
    assert rate_of(text) == rate
    assert rate_of(str(rate)) == rate
    assert rate_of(rate) is rate


@pytest.mark.parametrize("given", ["60", "60/m", "0/1m", "-1/1m", "1/0s", "1/1y", "x/1m", 60, None])
def test_what_is_no_rate_is_refused(given: object) -> None:
    with pytest.raises((InvalidLimit, InvalidDuration)):
        rate_of(given)


def test_a_lane_is_lines_before_the_needs_that_need_nothing() -> None:
    needs = "code:shop\nqueue:slow"
    lane = in_lane(needs, ("erp", "crm"), "sync", {"tag:crm", "tag:erp", "queue:slow", "all"})
    assert lane == "limit:tag:crm\nlimit:tag:erp\ncode:shop\nqueue:slow"
    assert plain_needs(lane) == needs
    assert reaches_of(lane) == ["tag:crm", "tag:erp", "queue:slow", "all"]
    assert is_met(lane, {"code:shop", "queue:slow"}.__contains__)
    assert not is_met(lane, {"code:shop"}.__contains__)
    assert in_lane(lane, ("erp", "crm"), "sync", {"job:sync"}) == "limit:job:sync\ncode:shop\nqueue:slow"
    assert in_lane(lane, (), "sync", {"tag:crm"}) == needs
    assert in_lane("", ("crm",), "sync", {"tag:crm"}) == "limit:tag:crm"
    assert reaches_of("") == ["queue:default", "all"]


def test_a_node_meets_the_lanes_of_what_it_meets() -> None:
    known = ["", "limit:tag:crm", "limit:tag:crm\ncode:shop", "code:shop"]
    assert met_lanes([""], known) == ["", "limit:tag:crm"]
    assert met_lanes(["code:shop"], known) == ["code:shop", "limit:tag:crm\ncode:shop"]


@pytest.mark.parametrize(
    ("rate", "shorts"),
    [
        (Rate(60, MINUTE), (1, timedelta(seconds=1))),
        (Rate(10, MINUTE), (1, timedelta(seconds=6))),
        (Rate(90, MINUTE), (2, timedelta(seconds=4) / 3)),
        (Rate(6000, MINUTE), (100, timedelta(seconds=1))),
        (Rate(1, MINUTE), None),
        (Rate(60, MINUTE, burst=True), None),
    ],
)
def test_starts_of_a_rate_are_spread_unless_bursts_are_allowed(
    rate: Rate, shorts: tuple[int, timedelta] | None
) -> None:
    """S1-040: burst_allowed is false unless people say so."""
    *short, whole = windows_of(rate)
    assert (whole.most, whole.span) == (rate.count, rate.per)
    assert [(window.most, window.span) for window in short] == ([] if shorts is None else [shorts])


def limited(most: int | None = None, rate: Rate | None = None) -> Reach:
    return Reach("tag:crm", LimitRecord(most, rate, "", "", NOW))


def test_room_is_the_least_that_any_rule_leaves() -> None:
    reach = limited(5, Rate(10, MINUTE, burst=True))
    [window] = windows_of(Rate(10, MINUTE, burst=True))
    assert room(reach, NOW, 3, {window: 4}) == 2
    assert room(reach, NOW, 3, {window: 9}) == 1
    assert room(reach, NOW, 7, {window: 0}) == 0
    assert closed_because(reach, NOW, 5, {window: 0}) == "limit of tag crm (5 of 5)"
    assert closed_because(reach, NOW, 4, {window: 10}) == "rate of tag crm (10/1m burst)"
    assert closed_because(reach, NOW, 4, {window: 9}) == ""


def test_a_rate_opens_when_the_first_start_leaves_its_window() -> None:
    rate = Rate(2, MINUTE, burst=True)
    [window] = windows_of(rate)
    ago = NOW - timedelta(seconds=40)
    assert opening(limited(rate=rate), NOW, {window: ago}) == ago + MINUTE
    assert opening(limited(rate=rate), NOW, {window: NOW - MINUTE}) is None
    assert opening(limited(rate=rate), NOW, {window: None}) is None


class One(NamedTuple):
    """One that waits."""

    name: str
    needs: str


def test_the_first_for_which_every_reach_has_room_are_chosen() -> None:
    crm, slow, both = "limit:tag:crm", "queue:slow", "limit:tag:crm\nqueue:slow"
    line = [One("a", crm), One("b", both), One("c", slow), One("d", crm), One("e", ""), One("f", "")]
    rooms = {"tag:crm": 2, "queue:slow": 1, "job:x": 0}
    assert [one.name for one in chosen(line, rooms, 3)] == ["a", "b", "e"]
    assert [one.name for one in chosen(line, {"all": 1}, 3)] == ["a"]
    assert [one.name for one in chosen(line, {}, 2)] == ["a", "b"]


def test_a_brake_that_ends_is_released_at_a_rate_for_what_has_waited() -> None:
    until = NOW + MINUTE
    braked, said = wished(Reach("all"), PutBrake(until=until, reason="why", by="ada"), NOW)
    assert said == f"brake until {until.isoformat()}"
    assert closed_because(braked, NOW, 0, {}) == f"brake of all until {until.isoformat()} (why)"
    assert settled(braked, NOW, lambda: 3) == braked

    freed = settled(braked, until, lambda: 900)
    assert freed.release is not None
    assert (freed.brakes, freed.release.left, freed.release.rate) == ((), 900, Rate(90, MINUTE))
    assert spent(freed, 899).release is not None
    assert spent(freed, 900).is_empty
    assert settled(braked, until, lambda: 0).is_empty


def test_a_brake_from_now_on_replaces_what_holds_and_ends_a_release() -> None:
    held, _ = wished(Reach("all"), PutBrake(reason="one"), NOW)
    later, _ = wished(held, PutBrake(NOW + MINUTE, reason="later"), NOW)
    again, _ = wished(later, PutBrake(reason="two"), NOW)
    assert [brake.reason for brake in again.brakes] == ["two", "later"]
    released, said = wished(again, ReleaseBrake(Rate(5, MINUTE)), NOW)
    assert said == "release 5/1m"
    assert [brake.reason for brake in released.brakes] == ["later"]
    assert wished(released, PutBrake(), NOW)[0].release is None


def test_a_window_that_comes_again_holds_from_its_first_moment_to_its_last() -> None:
    """A freeze window ends at the very instant of its end, and the next one begins at that of its beginning."""
    tick = timedelta(microseconds=1)
    brake = BrakeRecord(NOW, None, "", "ada", schedule("0 22 * * *"), schedule("0 6 * * *"))
    begin, end = NOW.replace(hour=22), (NOW + timedelta(days=1)).replace(hour=6)
    held = {at: brake.holds(at) for at in (NOW, begin - tick, begin, end - tick, end, begin + timedelta(days=1))}
    assert list(held.values()) == [False, False, True, True, False, True]


def test_a_limit_beside_a_brake_stays_when_the_brake_is_released() -> None:
    both, _ = wished(wished(Reach("all"), SetLimit(most=3), NOW)[0], PutBrake(), NOW)
    freed, _ = wished(both, ReleaseBrake(at_once=True), NOW)
    assert freed.limit is not None
    assert (freed.brakes, freed.release) == ((), None)


def test_a_release_takes_ten_minutes_and_at_least_one_a_second() -> None:
    assert soft_rate(5) == Rate(60, MINUTE)
    assert soft_rate(10_000) == Rate(1000, MINUTE)


def test_a_start_at_the_very_moment_of_a_release_counts() -> None:
    assert RateWindow(1, MINUTE, NOW).begins(NOW) < NOW
