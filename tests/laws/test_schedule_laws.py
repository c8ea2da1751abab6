"""What holds for every schedule of every kind, whatever it names."""

import copy
import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from everytick import after_completion, any_of, cron, every, once, repeat, schedule
from everytick.schedules.calendars import Calendar
from tests.oracle.moments import Place, jump_at
from tests.oracle.strategies import FOLDS, GAPS, PLACE, around_a_jump, expressions, periods

OFF = Calendar("off", dates=frozenset({date(2025, 3, 31), date(2018, 5, 5)}), weekdays=frozenset({7}))
CALENDARS = {"off": OFF}
TICK = timedelta(microseconds=1)


# The clock of St. John's went back from 00:01 to 23:01: Saturday came again after a minute of Sunday.
BACK_TO_SATURDAY = datetime(2010, 11, 7, 2, 31, tzinfo=UTC)
EVERY_MINUTE = cron("* * * * *", tz="America/St_Johns", dst_fold="both").excluding(OFF)
IN_SECOND_PASS = every("7d", start=BACK_TO_SATURDAY, tz="America/St_Johns").excluding(OFF, roll="next")


@cache
def crons(dialect: str, place: Place) -> st.SearchStrategy[Any]:
    ends = st.none() | st.integers(0, 90).map(lambda days: jump_at(place) + timedelta(days=days))
    return st.builds(
        lambda text, gap, fold, end: cron(
            text, tz=place.zone, dialect=dialect, dst_gap=gap, dst_fold=fold, start=end and end - timedelta(60), end=end
        ),
        expressions(dialect),
        GAPS,
        FOLDS,
        ends,
    )


@cache
def intervals(place: Place) -> st.SearchStrategy[Any]:
    starts = st.integers(-900, 900).map(lambda hours: jump_at(place) + timedelta(hours=hours))
    counts = st.sampled_from(["R", "R-1", "R1", "R5"])
    repeats = st.builds(
        lambda count, start, period: repeat(f"{count}/{start.isoformat()}/{period}", tz=place.zone),
        counts,
        starts,
        periods(),
    )
    everys = st.builds(lambda period, start: every(str(period), start=start, tz=place.zone), periods(), starts)
    return st.one_of(repeats, everys, starts.map(once), periods().map(lambda period: every(str(period), tz=place.zone)))


@cache
def simple(place: Place) -> st.SearchStrategy[Any]:
    return st.one_of(
        crons("vixie", place), crons("posix", place), crons("quartz", place), intervals(place), intervals(place)
    )


@cache
def of_any_kind(place: Place) -> st.SearchStrategy[Any]:
    rolls = st.sampled_from(["skip", "next", "previous"])
    unions = st.lists(simple(place), min_size=2, max_size=3).map(lambda parts: any_of(*parts))
    less = st.builds(lambda part, roll: part.excluding(OFF, roll=roll), simple(place), rolls)
    return st.one_of(simple(place), simple(place), simple(place), unions, less)


@st.composite
def asked(draw: st.DrawFn) -> tuple[Any, datetime]:
    """A schedule of any kind and an instant near a jump of its zone."""
    place, at = draw(around_a_jump())
    return draw(of_any_kind(place)), at


@settings(max_examples=300, deadline=None)
@given(asked())
def test_the_next_instant_is_later_and_is_its_own_last(question: tuple[Any, datetime]) -> None:
    """next_after(t) > t and last_at(next_after(t)) == next_after(t)."""
    rule, at = question
    following = rule.next_after(at)
    assume(following is not None)

    assert following > at
    assert following.tzinfo is UTC
    assert rule.last_at(following) == following
    assert rule.last_at(following - TICK) == rule.last_at(at)


@settings(max_examples=300, deadline=None)
@given(asked())
@example((EVERY_MINUTE, BACK_TO_SATURDAY - timedelta(minutes=1)))
def test_the_last_instant_is_not_later_and_nothing_lies_between(question: tuple[Any, datetime]) -> None:
    """last_at(t) <= t, and the next one after it is after t; A9."""
    rule, at = question
    last = rule.last_at(at)
    assume(last is not None)

    assert last <= at
    assert last.tzinfo is UTC
    assert rule.last_at(last) == last
    assert rule.next_after(last) == rule.next_after(at)
    assert rule.next_after(last - TICK) == last


@settings(max_examples=200, deadline=None)
@given(asked(), st.lists(st.floats(0, 1, exclude_max=True), min_size=3, max_size=3))
def test_every_moment_before_the_next_instant_has_the_same_next(
    question: tuple[Any, datetime], parts: list[float]
) -> None:
    """Temporal's law: however often we look, and whenever, the same instant is ahead."""
    rule, at = question
    following = rule.next_after(at)
    assume(following is not None)

    for part in parts:
        between = at + (following - at) * part
        assume(at <= between < following)
        assert rule.next_after(between) == following
        assert rule.last_at(between) == rule.last_at(at)
    assert rule.next_after(following - TICK) == following


@settings(max_examples=200, deadline=None)
@given(asked(), st.integers(0, 30 * 60), st.integers(0, 6))
@example((IN_SECOND_PASS, BACK_TO_SATURDAY), 0, 0)
def test_a_list_of_instants_is_the_chain_of_next(question: tuple[Any, datetime], minutes: int, limit: int) -> None:
    """S0-049: (after, through], in order; a limit cuts the list and changes nothing else."""
    rule, after = question
    through = after + timedelta(minutes=minutes)
    chain: list[datetime] = []
    at = rule.next_after(after)
    while at is not None and at <= through and len(chain) < 2000:
        chain.append(at)
        at = rule.next_after(at)

    assert list(rule.instants(after, through, 2000)) == chain
    assert list(rule.instants(after, through, limit)) == chain[:limit]
    assert list(rule.instants(through, after)) == []
    assert list(rule.instants(after, after)) == []


@settings(max_examples=150, deadline=None)
@given(asked(), asked())
def test_what_was_asked_before_changes_no_answer(question: tuple[Any, datetime], other: tuple[Any, datetime]) -> None:
    """Schedules have no memory: a copy, a pickled twin and the worn original answer alike."""
    rule, at = question
    fresh = pickle.loads(pickle.dumps(rule))
    first = rule.next_after(at), rule.last_at(at)
    for moment in (other[1], at + timedelta(days=400), at - timedelta(days=400)):
        rule.next_after(moment)
        rule.last_at(moment)
    other[0].next_after(at)

    assert (rule.next_after(at), rule.last_at(at)) == first
    assert (fresh.last_at(at), fresh.next_after(at)) == first[::-1]
    assert fresh == rule == copy.copy(rule)
    assert hash(fresh) == hash(rule)


@settings(max_examples=150, deadline=None)
@given(asked(), st.integers(-14 * 60, 14 * 60))
def test_the_zone_of_the_question_changes_no_answer(question: tuple[Any, datetime], minutes: int) -> None:
    rule, at = question
    elsewhere = at.astimezone(timezone(timedelta(minutes=minutes)))

    assert rule.next_after(elsewhere) == rule.next_after(at)
    assert rule.last_at(elsewhere) == rule.last_at(at)
    assert rule.next_after(at.astimezone(ZoneInfo("America/New_York"))) == rule.next_after(at)


@settings(max_examples=300, deadline=None)
@given(PLACE.flatmap(of_any_kind))
def test_the_text_form_reads_back_to_an_equal_schedule(rule: Any) -> None:
    text = str(rule)

    read = schedule(text, calendars=CALENDARS)

    assert read == rule
    assert hash(read) == hash(rule)
    assert str(read) == text


@settings(max_examples=150, deadline=None)
@given(asked())
def test_the_text_form_names_the_same_instants(question: tuple[Any, datetime]) -> None:
    rule, at = question

    read = schedule(str(rule), calendars=CALENDARS)

    assert read.next_after(at) == rule.next_after(at)
    assert read.last_at(at) == rule.last_at(at)


@settings(max_examples=200, deadline=None)
@given(PLACE.flatmap(of_any_kind))
def test_every_schedule_describes_itself_in_one_line(rule: Any) -> None:
    words = rule.describe()

    assert words.strip() == words
    assert words
    assert words.isprintable()


@pytest.mark.parametrize("rule", [cron("* * * * *"), every("10s"), once(datetime(2025, 1, 1, tzinfo=UTC))], ids=str)
def test_a_naive_question_is_refused(rule: Any) -> None:
    """A datetime without a zone names no instant."""
    with pytest.raises((TypeError, ValueError)):
        rule.next_after(datetime(2025, 1, 1))  # noqa: DTZ001 - the mistake under test
    with pytest.raises((TypeError, ValueError)):
        rule.last_at(datetime(2025, 1, 1))  # noqa: DTZ001


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_after_completion_is_once_after_the_last_end(wait: int, shift: int) -> None:
    """C-07: bound to a last end it names one instant, before any end it names none."""
    end = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=shift)
    rule = after_completion(timedelta(seconds=wait))
    expected = end + timedelta(seconds=wait)

    bound = rule.bound("job_1", end)

    assert bound.next_after(end) == expected
    assert bound.next_after(expected) is None
    assert bound.last_at(expected) == expected
    assert list(bound.instants(end, expected)) == [expected]
    assert rule.bound("job_1", None).next_after(end) is None
    assert schedule(str(rule)) == rule


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "America/New_York"])
@pytest.mark.parametrize("hours", [0, 5, 24, 24 * 40])
def test_the_edges_of_the_calendar_are_answers_for_every_kind(zone: str, hours: int) -> None:
    """A5: near the first and the last moment that a datetime can hold, an instant or None, never an overflow."""
    early = datetime.min.replace(tzinfo=UTC) + timedelta(hours=hours)
    late = datetime.max.replace(tzinfo=UTC) - timedelta(hours=hours)
    minutely, daily = cron("* * * * *", tz=zone), cron("0 9 * * *", tz=zone)
    rolled = [daily.excluding(OFF, roll=roll) for roll in ("skip", "next", "previous")]
    secondly = cron("* * * ? * *", tz=zone, dialect="quartz")
    others = [every("P1M", tz=zone), every("7s", tz=zone), repeat("R/1970-01-01T00:00:00/P1Y", tz=zone)]

    for rule in [minutely, daily, secondly, any_of(minutely, daily), *others, *rolled]:
        for at in (early, late):
            following, last = rule.next_after(at), rule.last_at(at)
            assert following is None or following > at
            assert last is None or last <= at
        assert all(late - timedelta(minutes=2) < at <= late for at in rule.instants(late - timedelta(minutes=2), late))
        assert all(
            early < at <= early + timedelta(minutes=2) for at in rule.instants(early, early + timedelta(minutes=2))
        )
