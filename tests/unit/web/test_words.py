"""What pages say: times, lengths, numbers and sentences."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from everytick.web import words
from everytick.web.words import Viewer, length

NOW = datetime(2026, 10, 23, 12, 7, 18, tzinfo=UTC)
BERLIN = Viewer("Europe/Berlin", ZoneInfo("Europe/Berlin"), NOW)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 ms"),
        (0.04, "40 ms"),
        (1, "1 s"),
        (2.44, "2.4 s"),
        (9.96, "10 s"),
        (42, "42 s"),
        (59.6, "1 min"),
        (340, "5 min 40 s"),
        (700, "11 min 40 s"),
        (723, "12 min 03 s"),
        (69 * 60, "1 h 09 min"),
        (34 * 60 + 12, "34 min"),
        (3840, "1 h 04 min"),
        (7200, "2 h"),
        (86399, "1 d"),
        (3 * 86400 + 4 * 3600, "3 d 4 h"),
        (40 * 86400, "40 d"),
        (-5, "−5 s"),
    ],
)
def test_a_length_is_said_in_the_two_units_that_matter(seconds: float, said: str) -> None:
    assert length(timedelta(seconds=seconds)) == said


def test_no_length_says_sixty_of_a_unit() -> None:
    said = {length(timedelta(seconds=tenths / 10)) for tenths in range(0, 900_000, 7)}
    assert not [text for text in said if "60 s" in text or "60 min" in text or "24 h" in text]


def test_a_moment_is_as_short_as_it_is_clear() -> None:
    assert BERLIN.when(NOW) == "14:07"
    assert BERLIN.when(NOW + timedelta(hours=12, minutes=23)) == "Sat 02:30"
    assert BERLIN.when(NOW + timedelta(days=40)) == "2 Dec 13:07"
    assert BERLIN.when(NOW - timedelta(days=400)) == "18 Sep 2025"


def test_an_instant_that_comes_has_its_seconds_where_two_may_share_a_minute() -> None:
    assert BERLIN.planned(NOW.replace(second=0)) == "14:07"
    assert BERLIN.planned(NOW + timedelta(seconds=12)) == "14:07:30"
    assert BERLIN.planned(NOW + timedelta(days=1)) == "Sat 14:07"
    assert BERLIN.planned_clock(NOW + timedelta(days=1)) == "14:07:18"


def test_an_hour_that_the_clock_repeats_names_its_zone() -> None:
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert BERLIN.clock(first) == "02:30 CEST"
    assert BERLIN.clock(first + timedelta(hours=1)) == "02:30 CET"
    assert BERLIN.clock(first + timedelta(hours=2)) == "03:30"
    # An hour that the clock leaves out is no such hour.
    assert BERLIN.clock(datetime(2027, 3, 28, 1, 0, tzinfo=UTC)) == "03:00"


def test_an_element_of_time_has_utc_for_machines_and_for_the_pointer() -> None:
    made = BERLIN.time(NOW)
    assert made == '<time datetime="2026-10-23T12:07:18Z" title="2026-10-23 12:07:18 UTC">14:07</time>'
    assert "&lt;b&gt;" in BERLIN.time(NOW, "<b>")


def test_times_are_relative_under_a_day_and_dated_beyond() -> None:
    assert BERLIN.ago(NOW - timedelta(hours=11, minutes=40)) == "11 h ago"
    assert BERLIN.ago(NOW + timedelta(seconds=42)) == "in 42 s"
    assert BERLIN.ago(NOW) == "now"
    assert BERLIN.ago(NOW - timedelta(days=2)) == "Wed 14:07"


def test_numbers_and_nouns_agree() -> None:
    assert words.count(1, "job") == "1 job"
    assert words.count(46_120, "occurrence") == "46,120 occurrences"
    assert words.count(2, "retry") == "2 retries"
    assert words.count(2, "day") == "2 days"
    assert words.spelled(3, "job") == "three jobs"
    assert words.spelled(0, "job") == "no job"
    assert words.spelled(14, "job") == "14 jobs"
    assert words.short_number(2_500_000) == "2.5 M"
    assert words.short_number(999_600) == "1 M"
    assert words.rate(1180) == "1,180/h"
    assert words.rate(0.5) == "12/d"


def test_lists_end_with_and() -> None:
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.listed(list("abcdef"), 2) == "a, b and 4 more"
    assert words.listed([]) == ""


def test_a_sentence_has_a_capital_and_an_end() -> None:
    assert words.sentence("three jobs need a look") == "Three jobs need a look."
    assert words.sentence("Trigger etl-orders now?") == "Trigger etl-orders now?"
    assert words.sentence("it's a day, e.g. Monday") == "It's a day, e.g. Monday."


@pytest.mark.parametrize("written", ["postgresql://db", "jobs/a.yaml", "on_store_outage", "a.yaml"])
def test_an_address_or_a_name_of_code_stays_as_it_is_written(written: str) -> None:
    assert words.sentence(f"{written} is away") == f"{written} is away."


def test_usual_lengths_are_prose() -> None:
    assert words.usually(timedelta(minutes=34), timedelta(minutes=41)) == "usually 34 min, rarely over 41 min"
    assert words.usually(timedelta(minutes=34), timedelta(minutes=34)) == "usually 34 min"
    assert words.usually(None) == ""


def test_a_text_is_cut_at_its_first_line() -> None:
    assert words.cut("  first\nsecond") == "first"
    assert words.cut("") == ""
    assert len(words.cut("x" * 1000)) == 160


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        ("2026-10-23T10:00:00Z", "12:00"),
        ("2026-10-22T10:00:00Z", "Thu"),
        ("2026-10-01T10:00:00Z", "1 Oct"),
        ("2025-10-01T10:00:00Z", "1 Oct 2025"),
    ],
)
def test_where_there_is_little_room_a_day_has_no_clock(moment: str, said: str) -> None:
    assert BERLIN.day_or_clock(datetime.fromisoformat(moment)) == said
