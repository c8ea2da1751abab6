"""Calendars: where their dates come from, what they refuse, and where a roll leads."""

import sys
from datetime import UTC, date, datetime, time
from pathlib import Path

import pytest

from everytick import Calendar, InvalidSchedule, MissingExtra, any_of, calendar, cron, schedule

WEEKEND = calendar("weekend", weekdays=["sat", "Sunday"])


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_calendar_holds_dates_and_weekdays() -> None:
    closed = calendar("closed", dates=["2026-12-24", date(2026, 12, 25)], weekdays=["sat", 7])
    assert closed == Calendar("closed", frozenset({date(2026, 12, 24), date(2026, 12, 25)}), frozenset({6, 7}))
    assert date(2026, 12, 24) in closed
    assert date(2026, 12, 27) in closed
    assert date(2026, 12, 23) not in closed
    assert Calendar.from_json(closed.to_json()) == closed


def test_a_half_day_is_open_until_noon_or_the_time_it_is_given() -> None:
    closed = calendar("closed", half_days=["2026-12-24"], weekdays=["sun"])
    assert closed == calendar("closed", half_days={date(2026, 12, 24): time(12)}, weekdays=[7])
    assert date(2026, 12, 24) not in closed
    assert Calendar.from_json(closed.to_json()) == closed
    assert "half_days" not in calendar("plain").to_json(), "a calendar without any is stored as before"
    hours = cron("0 8-20/4 * * *").excluding(calendar("x", half_days={"2026-12-24": "16:00"}))
    found = hours.instants(at("2026-12-24"), at("2026-12-25"))
    assert [instant.hour for instant in found] == [8, 12]


def test_a_countrys_holidays_are_resolved_for_ten_years() -> None:
    germany = calendar("germany", country="DE", region="BY", since=date(2026, 1, 1))
    assert date(2026, 10, 3) in germany
    assert date(2035, 12, 25) in germany
    assert date(2036, 12, 25) not in germany
    assert date(2026, 1, 6) in germany, "Epiphany is a holiday in Bavaria"
    assert date(2026, 1, 6) not in calendar("berlin", country="DE", region="BE", since=date(2026, 1, 1))


def test_an_unknown_country_or_region_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="not a country"):
        calendar("x", country="XX", since=date(2026, 1, 1))
    with pytest.raises(InvalidSchedule, match="not a country"):
        calendar("x", country="DE", region="ZZ", since=date(2026, 1, 1))


def test_a_missing_extra_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "holidays", None)
    with pytest.raises(MissingExtra, match=r"pip install 'everytick\[holidays\]'"):
        calendar("x", country="DE", since=date(2026, 1, 1))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"dates": ["24.12.2026"]}, "dates"),
        ({"dates": [datetime(2026, 12, 24, tzinfo=UTC)]}, "dates"),
        ({"dates": [5]}, "dates"),
        ({"weekdays": ["someday"]}, "weekdays"),
        ({"weekdays": [0]}, "weekdays"),
        ({"weekdays": range(1, 8)}, "weekdays"),
        ({"half_days": ["24.12.2026"]}, "half_days"),
        ({"half_days": "2026-12-24"}, "half_days"),
        ({"half_days": {"2026-12-24": "noon"}}, "half_days"),
        ({"half_days": {"2026-12-24": "00:00"}}, "half_days"),
        ({"half_days": {"2026-12-24": "12:00", date(2026, 12, 24): time(13)}}, "half_days"),
        ({"country": "DE"}, "since"),
        ({"ics": "x.ics"}, "since"),
    ],
)
def test_nonsense_is_refused(given: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        calendar("closed", **given)  # type: ignore[arg-type]
    assert caught.value.field == field


@pytest.mark.parametrize("name", ["", "a b", "a;b", "(a)", "-a", "a|b", "x" * 101])
def test_a_name_that_would_not_stand_in_a_text_is_refused(name: str) -> None:
    with pytest.raises(InvalidSchedule):
        Calendar(name)


@pytest.mark.parametrize(
    ("roll", "expected"),
    [
        ("skip", ["2026-06-01", "2026-07-01", "2026-09-01"]),
        ("next", ["2026-06-01", "2026-07-01", "2026-08-03", "2026-09-01"]),
        ("previous", ["2026-06-01", "2026-07-01", "2026-07-31", "2026-09-01"]),
        ("modified_following", ["2026-06-01", "2026-07-01", "2026-08-03", "2026-09-01"]),
    ],
)
def test_what_falls_on_a_closed_day_is_dropped_or_rolls(roll: str, expected: list[str]) -> None:
    monthly = cron("0 9 1 * *").excluding(WEEKEND, roll=roll)
    found = monthly.instants(at("2026-05-15"), at("2026-09-15"))
    assert [str(instant.date()) for instant in found] == expected
    assert [monthly.last_at(instant) for instant in found] == list(found)


def test_a_rolled_instant_that_meets_an_ordinary_one_is_one_instant() -> None:
    daily = cron("0 9 * * *").excluding(WEEKEND, roll="next")
    found = daily.instants(at("2026-11-13"), at("2026-11-17T23:00:00"))
    assert [instant.isoformat()[:10] for instant in found] == ["2026-11-13", "2026-11-16", "2026-11-17"]


def test_the_zone_of_the_schedule_says_what_date_it_is() -> None:
    late = cron("30 23 * * *", tz="America/New_York").excluding(WEEKEND)
    assert late.next_after(at("2026-11-14T00:00:00")) == at("2026-11-14T04:30:00"), "still Friday in New York"


def test_a_schedule_that_the_calendar_never_lets_through_answers_none() -> None:
    assert cron("0 9 * * sat").excluding(WEEKEND).next_after(at("2026-01-01")) is None
    assert cron("0 9 * * sat").excluding(WEEKEND).last_at(at("2026-01-01")) is None
    assert cron("0 0 30 2 *").excluding(WEEKEND, roll="next").next_after(at("2026-01-01")) is None
    assert cron("0 0 30 2 *").excluding(WEEKEND, roll="next").last_at(at("2026-01-01")) is None


def test_parts_in_different_zones_cannot_share_an_exclusion() -> None:
    both = any_of(cron("0 9 * * *", tz="Asia/Tokyo"), cron("0 9 * * *", tz="Europe/Paris"))
    with pytest.raises(InvalidSchedule, match="different zones"):
        both.excluding(WEEKEND)


def test_an_unknown_roll_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="skip, next, previous"):
        cron("0 9 * * *").excluding(WEEKEND, roll="sideways")


def test_the_text_form_needs_its_calendars_beside_it() -> None:
    rolled = cron("0 9 1 * *", tz="Europe/Paris").excluding(WEEKEND, roll="next")
    assert str(rolled) == "(cron: 0 9 1 * *; tz=Europe/Paris) - weekend; roll=next"
    assert schedule(str(rolled), calendars=[WEEKEND]) == rolled
    assert schedule(str(rolled), calendars={"weekend": WEEKEND}) == rolled
    with pytest.raises(InvalidSchedule, match="none is given"):
        schedule(str(rolled))
    with pytest.raises(InvalidSchedule, match="given are weekend"):
        schedule("(@daily) - holidays", calendars=[WEEKEND])


ICS = """BEGIN:VCALENDAR\r
VERSION:2.0\r
BEGIN:VEVENT\r
SUMMARY:One day\\, folded o\r
 ver two lines\r
DTSTART;VALUE=DATE:20260501\r
DTEND;VALUE=DATE:20260502\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;TZID=Europe/Berlin:20260801T220000\r
DTEND;TZID=Europe/Berlin:20260803T060000\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20201225\r
DURATION:P2D\r
RRULE:FREQ=YEARLY\r
EXDATE;VALUE=DATE:20271225\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20261126\r
RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH\r
END:VEVENT\r
END:VCALENDAR\r
"""


def test_an_ics_file_gives_its_events_dates(tmp_path: Path) -> None:
    file = tmp_path / "closed.ics"
    file.write_bytes(ICS.encode())
    closed = calendar("closed", ics=file, since=date(2026, 1, 1))
    expected = {
        "2026-05-01",
        "2026-08-01",
        "2026-08-02",
        "2026-08-03",
        "2026-11-26",
        "2027-11-25",
        "2026-12-25",
        "2026-12-26",
    }
    found = set(map(str, closed.dates))
    assert expected <= found
    assert {"2027-12-25", "2027-12-26", "2020-12-25", "2026-05-02", "2026-11-25"}.isdisjoint(found)
    assert {"2035-12-25", "2035-11-22"} <= found


RULES = [
    ("FREQ=DAILY;INTERVAL=10;COUNT=3", "20260101", ["2026-01-01", "2026-01-11", "2026-01-21"]),
    ("FREQ=WEEKLY;BYDAY=MO,FR;UNTIL=20260116", "20260105", ["2026-01-05", "2026-01-09", "2026-01-12", "2026-01-16"]),
    ("FREQ=WEEKLY;INTERVAL=2;COUNT=2", "20260107", ["2026-01-07", "2026-01-21"]),
    ("FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=3", "20260131", ["2026-01-31", "2026-02-28", "2026-03-31"]),
    ("FREQ=MONTHLY;BYDAY=-1FR;COUNT=2", "20260130", ["2026-01-30", "2026-02-27"]),
    ("FREQ=MONTHLY;COUNT=2;INTERVAL=3", "20260115", ["2026-01-15", "2026-04-15"]),
    ("FREQ=YEARLY;BYDAY=1MO;COUNT=2", "20260105", ["2026-01-05", "2027-01-04"]),
    ("FREQ=YEARLY;BYDAY=-1SU;COUNT=2", "20261227", ["2026-12-27", "2027-12-26"]),
    ("FREQ=YEARLY;BYMONTHDAY=1;COUNT=3", "20260101", ["2026-01-01", "2026-02-01", "2026-03-01"]),
]


@pytest.mark.parametrize(("rule", "start", "expected"), RULES)
def test_the_rules_of_events(tmp_path: Path, rule: str, start: str, expected: list[str]) -> None:
    file = tmp_path / "rule.ics"
    file.write_text(
        f"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:{start}\nRRULE:{rule}\nEND:VEVENT\nEND:VCALENDAR\n"
    )
    assert sorted(map(str, calendar("x", ics=file, since=date(2026, 1, 1)).dates)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "no calendar at all",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:no start\nEND:VEVENT\n",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:tomorrow\nEND:VEVENT\n",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261340\nEND:VEVENT\n",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260101\nDURATION:P1M\nEND:VEVENT\n",
        *(
            f"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260101\nRRULE:{rule}\nEND:VEVENT\n"
            for rule in (
                "FREQ=SECONDLY",
                "FREQ=YEARLY;BYSETPOS=1",
                "BYDAY=MO",
                "FREQ=WEEKLY;BYDAY=XX",
                "FREQ=DAILY;INTERVAL=0",
                "FREQ=DAILY;COUNT=x",
            )
        ),
    ],
)
def test_an_ics_file_that_is_not_understood_is_refused_whole(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.ics"
    file.write_text(text)
    with pytest.raises(InvalidSchedule, match=r"bad\.ics") as caught:
        calendar("x", ics=file, since=date(2026, 1, 1))
    assert caught.value.field == "ics"


def test_a_missing_or_unreadable_ics_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSchedule, match="cannot be read"):
        calendar("x", ics=tmp_path / "none.ics", since=date(2026, 1, 1))
    (tmp_path / "latin.ics").write_bytes(b"BEGIN:VCALENDAR\xff")
    with pytest.raises(InvalidSchedule, match="cannot be read"):
        calendar("x", ics=tmp_path / "latin.ics", since=date(2026, 1, 1))
    with (tmp_path / "large.ics").open("wb") as file:
        file.truncate(10_000_001)
    with pytest.raises(InvalidSchedule, match="larger than"):
        calendar("x", ics=tmp_path / "large.ics", since=date(2026, 1, 1))
