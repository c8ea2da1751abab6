"""Values as people and programs see them."""

import json
from datetime import UTC, date, datetime, timedelta

import pytest

from everytick.cli.output import Layout, length, safe, show_json, wrapped
from everytick.cli.times import Times
from everytick.errors import InvalidInstant


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0351, "35ms"),
        (0, "0ms"),
        (2.54, "2.5s"),
        (12, "12s"),
        (185, "3m 5s"),
        (7800, "2h 10m"),
        (3600, "1h"),
        (356_400, "4d 3h"),
        (-90, "-1m 30s"),
    ],
)
def test_lengths_are_said_as_people_say_them(seconds: float, said: str) -> None:
    assert length(timedelta(seconds=seconds)) == said


@pytest.mark.parametrize(
    "hostile", ["\x1b[2J", "\x1b]0;owned\x07", "\x9b31m", "\x07", "\x08\x08", "\u202eevil", "\u2066x", "\x7f", "a\tb"]
)
def test_control_characters_are_spelled_out(hostile: str) -> None:
    said = safe(f"before {hostile} after\nsecond line")

    assert said.replace("\n", "").isprintable()
    assert said.count("\n") == 1


def test_json_carries_times_lengths_and_what_it_has_no_word_for(capsys: pytest.CaptureFixture[str]) -> None:
    show_json(
        {
            "at": datetime(2026, 7, 1, 9, tzinfo=UTC),
            "took": timedelta(milliseconds=1500),
            "endless": float("inf"),
            "names": ("é\x1b",),
            "nothing": None,
        }
    )

    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out) == {
        "at": "2026-07-01T09:00:00Z",
        "took": 1.5,
        "endless": "inf",
        "names": ["é\x1b"],
        "nothing": None,
    }


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-07-01T09:00", datetime(2026, 7, 1, 7, tzinfo=UTC)),
        ("2026-07-01 09:00", datetime(2026, 7, 1, 7, tzinfo=UTC)),
        ("2026-07-01", datetime(2026, 6, 30, 22, tzinfo=UTC)),
        ("2026-07-01T09:00:00Z", datetime(2026, 7, 1, 9, tzinfo=UTC)),
        ("2026-07-01T09:00-05:00", datetime(2026, 7, 1, 14, tzinfo=UTC)),
        ("2026-07-01T09:00[Asia/Tokyo]", datetime(2026, 7, 1, 0, tzinfo=UTC)),
    ],
)
def test_a_time_without_a_zone_is_meant_in_the_zone_that_is_shown(text: str, instant: datetime) -> None:
    assert Times(zone="Europe/Berlin").read(text) == instant


@pytest.mark.parametrize("text", ["", "soon", "09:00", "2026-13-01", "2026-07-01T25:00", "1751360400"])
def test_what_names_no_moment_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInstant, match=r"write it like 2026-07-01T09:00"):
        Times(utc=True).read(text)


def test_utc_wins_over_the_machines_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")

    assert Times().zone == "Europe/Berlin"
    assert Times(utc=True).zone == "UTC"
    assert Times().shown(datetime(2026, 7, 1, 9, tzinfo=UTC)) == "2026-07-01T11:00:00+02:00"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("one two", ["one two"]),
        ("a sentence that is longer than the room", ["a sentence that is", "longer than the room"]),
        ("x" * 30, ["x" * 24, "x" * 6]),
        ("see " + "x" * 30, ["see " + "x" * 20, "x" * 10]),
        ("夜間バックアップは失敗しました", ["夜間バックアップは失敗し", "ました"]),
    ],
)
def test_text_is_wrapped_between_words_and_nothing_of_it_is_lost(text: str, lines: list[str]) -> None:
    """A2: 24 columns are the least."""
    assert wrapped(text, 24) == lines


def test_a_time_in_a_table_has_letters_only_where_the_clock_repeats_it() -> None:
    """A10: the heading names the zone; in the hour that comes twice the letters tell which one it is."""
    times = Times(zone="Europe/Berlin")

    shown = [times.in_table(datetime(2026, 10, 25, hour, 30, tzinfo=UTC)) for hour in (0, 1, 2)]

    assert shown == ["2026-10-25 02:30:00 CEST", "2026-10-25 02:30:00 CET", "2026-10-25 03:30:00"]


def test_a_short_time_leaves_out_what_today_makes_clear() -> None:
    """A10: the day of today, and the year that it is; of another year the day is enough."""
    times = Times(utc=True)
    times.today = date(2026, 6, 30)

    assert times.in_table(datetime(2026, 6, 30, 9, tzinfo=UTC), short=True) == "09:00:00"
    assert times.in_table(datetime(2026, 7, 1, 9, tzinfo=UTC), short=True) == "Jul  1 09:00:00"
    assert times.in_table(datetime(2027, 1, 1, 0, tzinfo=UTC), short=True) == "Jan  1  2027"


def test_a_time_in_a_sentence_repeats_neither_the_zone_nor_the_day_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A10, A17: the sentence stands beside a time of the same zone; in a pipe each is whole."""
    times, beside = Times(zone="Asia/Tokyo"), datetime(2026, 7, 1, 9, tzinfo=UTC)
    text = "from 2026-07-01T09:00:00.250000+00:00 to 2026-07-01T15:00:00+00:00"

    assert times.in_text(text, beside) == "from 2026-07-01T18:00:00+09:00 to 2026-07-02T00:00:00+09:00"
    monkeypatch.setattr("everytick.cli.times.is_terminal", lambda: True)
    assert times.in_text(text, beside) == "from 18:00:00 to 2026-07-02 00:00:00"


@pytest.mark.parametrize("moment", ["2026-02-30T00:00:00+00:00", "9999-12-31T23:59:59+00:00"])
def test_what_only_looks_like_a_moment_stays_in_a_text_as_it_is(moment: str) -> None:
    times, beside = Times(zone="Asia/Tokyo"), datetime(2026, 7, 1, 9, tzinfo=UTC)

    assert times.in_text(f"ValueError: {moment}", beside) == f"ValueError: {moment}"


ROW = (
    "warehouse",
    "enabled",
    "every: 90m; tz=Europe/Berlin",
    datetime(2026, 7, 1, 9, tzinfo=UTC),
    "all is as it should be",
)
"""A name, a status, a text, a time, and the text of the last column."""


def table(monkeypatch: pytest.MonkeyPatch, wide: int, *, short: bool = False) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(wide))
    times = Times(utc=True)
    times.today = date(2026, 6, 30)
    return list(
        Layout(["job", "status", "schedule", times.heading("next run"), "why"], [ROW], times, short=short).lines()
    )


def test_a_table_that_fits_has_one_line_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    assert table(monkeypatch, 120) == [
        "job        status   schedule                      next run (UTC)       why",
        "warehouse  enabled  every: 90m; tz=Europe/Berlin  2026-07-01 09:00:00  all is as it should be",
    ]


def test_text_goes_on_in_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """A10: between words, and a time stays whole."""
    assert table(monkeypatch, 81) == [
        "job        status   schedule          next run (UTC)       why",
        "warehouse  enabled  every: 90m;       2026-07-01 09:00:00  all is as it should be",
        "                    tz=Europe/Berlin",
    ]


def test_the_last_column_stands_below_where_no_room_is_left_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A10: nothing is cut, and long words are broken."""
    lines = table(monkeypatch, 50, short=True)

    assert max(map(len, lines)) <= 50
    assert "Jul  1 09:00:00" in lines[1]
    assert "".join("".join(lines).split()).count("allisasitshouldbe") == 1


def test_a_zone_with_a_long_name_makes_no_table_too_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A10: its name goes on in the heading, and the times below stay whole."""
    monkeypatch.setenv("COLUMNS", "60")
    times = Times(zone="America/Argentina/Buenos_Aires")
    times.today = date(2026, 6, 30)
    headings = ["job", "status", "schedule", times.heading("next run"), "why"]

    lines = list(Layout(headings, [ROW], times, short=True).lines())

    assert max(map(len, lines)) <= 60
    assert any("Jul  1 06:00:00" in line for line in lines)
