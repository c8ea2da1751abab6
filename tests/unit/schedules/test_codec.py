"""The text form: what is written is read back, and what cannot be read is refused with its place."""

import pickle
from datetime import UTC, datetime, timedelta
from importlib import metadata
from zoneinfo import ZoneInfo

import pytest

from everytick import (
    InvalidSchedule,
    UnboundSchedule,
    after_completion,
    any_of,
    calendar,
    cron,
    every,
    on_request,
    once,
    repeat,
    schedule,
    schedule_kind,
)
from everytick.schedules import codec
from everytick.schedules.cron import Cron
from everytick.schedules.timezones import zone
from tests.unit.schedules import tides

NOW = datetime(2026, 11, 15, 8, tzinfo=UTC)

CANONICAL = {
    "30 2 * * 1-5": "cron: 30 2 * * 1-5",
    "  30\t2  *  * 1-5 ": "cron: 30 2 * * 1-5",
    "@daily": "cron: @daily",
    "cron:0 0 * * *;tz=Europe/Berlin;dst_fold=both": "cron: 0 0 * * *; tz=Europe/Berlin; dst_fold=both",
    "cron: 0 0 * * *; dst_gap=fire_after; dst_fold=first; day_match=or": "cron: 0 0 * * *",
    "posix: 0 0 * * *; dst_gap=skip; dst_fold=both": "posix: 0 0 * * *",
    "posix: 0 0 * * *; dst_gap=fire_after": "posix: 0 0 * * *; dst_gap=fire_after",
    "0 0 1 * 1; end=2027-01-01T00:00:00+01:00; day_match=and; start=2026-01-01Z": (
        "cron: 0 0 1 * 1; day_match=and; start=2026-01-01T00:00:00Z; end=2026-12-31T23:00:00Z"
    ),
    "0 0 * * *; tz=Asia/Tokyo; start=2026-01-01": "cron: 0 0 * * *; tz=Asia/Tokyo; start=2026-01-01T00:00:00",
    "0 0 * * *; tz=Asia/Tokyo; start=2026-01-01Z": "cron: 0 0 * * *; tz=Asia/Tokyo; start=2026-01-01T09:00:00",
    "every 10s": "every: 10s",
    "every: PT600S": "every: 10m",
    "every: P1D; tz=Europe/Berlin; start=2026-01-01T09:00[Europe/Berlin]": (
        "every: 1d; tz=Europe/Berlin; start=2026-01-01T09:00:00"
    ),
    "every: 1h; start=2026-01-01T00:30:00+05:30; end=2026-02-01Z": (
        "every: 1h; start=2026-01-01T00:30:00+05:30; end=2026-02-01T00:00:00Z"
    ),
    "R5/2024-01-31T09:00:00[Europe/Berlin]/P1M": "repeat: R5/2024-01-31T09:00:00/P1M; tz=Europe/Berlin",
    "R-1/2024-01-31T09:00:00+02:00/P1M": "repeat: R/2024-01-31T09:00:00+02:00/P1M",
    "R/2024-10-27T02:30:00+01:00[Europe/Berlin]/P1D": "repeat: R/2024-10-27T02:30:00+01:00/P1D; tz=Europe/Berlin",
    "R/2024-10-27T02:30:00+02:00[Europe/Berlin]/P1D": "repeat: R/2024-10-27T02:30:00/P1D; tz=Europe/Berlin",
    "R/2024-01-01T00:00:00Z/2024-01-01T06:00:00Z": "repeat: R/2024-01-01T00:00:00Z/PT6H",
    "R/2024-01-01T00:00:00/2024-01-01T06:00:00": "repeat: R/2024-01-01T00:00:00/2024-01-01T06:00:00",
    "repeat: P1DT12H; start=2024-01-01Z": "repeat: R/2024-01-01T00:00:00Z/P1DT12H",
    "once: 2026-07-01T09:00:00+02:00": "once: 2026-07-01T07:00:00Z",
    "once: 2026-07-01T09:00:00; tz=Europe/Berlin": "once: 2026-07-01T09:00:00; tz=Europe/Berlin",
    "once: 2026-07-01T09:00[Europe/Berlin]": "once: 2026-07-01T09:00:00; tz=Europe/Berlin",
    "after: 600s": "after: 10m",
    "(@daily)|(every 1h)": "(cron: @daily) | (every: 1h)",
    "((@daily) | (@hourly)) | (every 1h); spread=90s": (
        "((cron: @daily) | (cron: @hourly)) | (every: 1h); spread=1m30s"
    ),
    "(@daily) | (@hourly); start=2026-01-01Z": "(cron: @daily) | (cron: @hourly); start=2026-01-01T00:00:00Z",
    "0 2 * * *; offset=90s; spread=15m": "cron: 0 2 * * *; spread=15m; offset=1m30s",
    "H H(9-17) * * H/2; tz=Asia/Tokyo; spread=15m": "cron: H H(9-17) * * H/2; tz=Asia/Tokyo; spread=15m",
}


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_the_canonical_text_reads_back_to_an_equal_schedule(text: str, canonical: str) -> None:
    found = schedule(text)
    assert str(found) == canonical
    assert schedule(canonical) == found
    assert hash(schedule(canonical)) == hash(found)
    assert str(schedule(canonical)) == canonical
    assert pickle.loads(pickle.dumps(found)) == found


REFUSED = {
    "": "format",
    "fortnightly: 3": "kind",
    "Cron: 0 0 * * *": "kind",
    "0 0 * * *;": "options",
    "0 0 * * *; tz": "options",
    "0 0 * * *; tz=": "options",
    "0 0 * * *; tz=UTC; tz=UTC": "options",
    "0 0 * * *; zone=UTC": "options",
    "every 1h; dst_gap=skip": "options",
    "after: 10m; tz=UTC": "options",
    "once: 2026-01-01Z; start=2026-01-01Z": "options",
    "every 90": "period",
    "every 0s": "period",
    "every fortnight": "period",
    "after: soon": "delay",
    "once: tomorrow": "once",
    "once: 2026-02-30T00:00:00Z": "once",
    "once: 2026-07-01T09:00[Europe/Berlin]; tz=Asia/Tokyo": "tz",
    "R5/2024-01-31T09:00:00Z": "repeat",
    "R5/2024-01-31T09:00:00Z/P1M/P1M": "repeat",
    "R-2/2024-01-31T09:00:00Z/P1M": "repeat",
    "R1e3/2024-01-31T09:00:00Z/P1M": "repeat",
    "R/P1M/2024-01-31T09:00:00Z": "start",
    "R/2024-01-31T09:00:00Z/2024-01-31T09:00:00Z": "end",
    "R/2024-01-31T09:00:00Z/2024-02-30": "start",
    "R/2024-01-31T09:00:00[Asia/Tokyo]/2024-02-01T09:00:00[Europe/Paris]": "tz",
    "R/2024-01-31T09:00:00/2024-02-01T09:00:00[Europe/Paris]": "end",
    "R5/2024-01-31T09:00:00Z/P1M; start=2024-01-01Z": "repeat",
    "0 0 * * *; start=soon": "start",
    "0 0 * * *; start=2027-01-01Z; end=2026-01-01Z": "end",
    "0 0 * * *; dst_gap=never": "dst_gap",
    "0 0 * * *; dst_fold=third": "dst_fold",
    "0 0 * * *; day_match=xor": "day_match",
    "quartz: 0 0 0 ? * 1; day_match=and": "day_match",
    "0 0 * * *; spread=0.5s": "spread",
    "0 0 * * *; spread=0s": "spread",
    "0 0 * * *; offset=4m": "offset",
    "0 0 * * *; spread=4m; offset=4m": "offset",
    "0 0 * * *; spread=4m; offset=0.5s": "offset",
    "0 0 * * *; spread=often": "spread",
    "(@daily": "text",
    "()": "format",
    ")": "format",
    "(@daily) | @hourly": "text",
    "(@daily) + (@hourly)": "text",
    "(@daily) | (@hourly); tz=UTC": "options",
    "(@daily) - nowhere": "calendar",
    "(" * 30 + "@daily" + ")" * 30: "text",
    "x" * 100_001: "text",
    " | ".join(["(@daily)"] * 1001): "union",
    "@daily; tz=" + "a" * 90_000: "tz",
}


@pytest.mark.parametrize(("text", "field"), REFUSED.items(), ids=lambda text: str(text)[:40])
def test_what_cannot_be_read_is_refused_with_its_place(text: str, field: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        schedule(text)
    assert caught.value.field == field
    assert len(str(caught.value)) < 1000
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("make", [schedule, cron, repeat, every, once, after_completion])
@pytest.mark.parametrize("given", [None, 5, b"@daily", ["@daily"], datetime(2026, 1, 1), object()])  # noqa: DTZ001
def test_what_is_no_text_is_refused_by_the_same_error(make: object, given: object) -> None:
    with pytest.raises(InvalidSchedule):
        make(given)  # type: ignore[operator]


def test_unknown_dialects_are_refused_and_standard_is_vixie() -> None:
    with pytest.raises(InvalidSchedule, match="vixie, posix, quartz"):
        cron("0 0 * * *", dialect="crontab")
    assert cron("0 0 * * *", dialect="standard") == cron("0 0 * * *")


def test_equal_expressions_share_one_compiled_form() -> None:
    first, second = cron("7 3 * * 1-5", tz="Asia/Tokyo"), cron("7  3 * * 1-5")
    assert isinstance(first, Cron)
    assert isinstance(second, Cron)
    assert first._wall_times is second._wall_times


def test_a_union_of_equal_parts_is_the_part_itself() -> None:
    assert any_of(cron("@daily"), cron("@daily")) == cron("@daily")
    assert schedule("(@daily) | (@daily)") == cron("@daily")


def test_a_union_needs_schedules() -> None:
    with pytest.raises(InvalidSchedule):
        any_of()
    with pytest.raises(InvalidSchedule, match=r"read text with schedule\(…\) first"):
        any_of("@daily")  # type: ignore[arg-type]


def test_a_zone_from_the_job_reaches_what_has_none_of_its_own() -> None:
    """C-04 and spec/time.md: the schedule's own zone, else the job's; a written offset stands for itself."""
    berlin = zone("Europe/Berlin")
    for text, expected in {
        "0 9 * * *": "cron: 0 9 * * *; tz=Europe/Berlin",
        "0 9 * * *; tz=UTC": "cron: 0 9 * * *; tz=UTC",
        "0 9 * * *; start=2026-07-01": "cron: 0 9 * * *; tz=Europe/Berlin; start=2026-07-01T00:00:00",
        "0 9 * * *; start=2026-07-01Z": "cron: 0 9 * * *; tz=Europe/Berlin; start=2026-07-01T02:00:00",
        "every: P1D": "every: 1d; tz=Europe/Berlin",
        "every: P1D; start=2026-07-01T09:00Z": "every: 1d; start=2026-07-01T09:00:00Z",
        "R/2024-01-31T09:00:00/P1M": "repeat: R/2024-01-31T09:00:00/P1M; tz=Europe/Berlin",
        "R/2024-03-31T00:00:00/2024-04-01T00:00:00": "repeat: R/2024-03-31T00:00:00/PT23H; tz=Europe/Berlin",
        "once: 2026-07-01T09:00:00": "once: 2026-07-01T09:00:00; tz=Europe/Berlin",
        "once: 2026-07-01T09:00:00Z": "once: 2026-07-01T09:00:00Z",
        "after: 10m": "after: 10m",
        "(@daily) | (@hourly; tz=UTC)": "(cron: @daily; tz=Europe/Berlin) | (cron: @hourly; tz=UTC)",
        "@daily; spread=1h": "cron: @daily; tz=Europe/Berlin; spread=1h",
    }.items():
        assert str(schedule(text).in_zone(berlin)) == expected


def test_a_datetime_may_bring_its_zone() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    daily = every("P1D", start=datetime(2026, 3, 28, 9, tzinfo=berlin))
    assert str(daily) == "every: 1d; tz=Europe/Berlin; start=2026-03-28T09:00:00"
    assert once(datetime(2026, 7, 1, 9, tzinfo=berlin)) == once("2026-07-01T07:00:00Z")
    assert cron("@daily", end=datetime(2026, 7, 1, 9, tzinfo=berlin)) == schedule("@daily; end=2026-07-01T07:00:00Z")


def test_what_depends_on_the_job_refuses_to_answer_before_it_knows_one() -> None:
    for text in ("H * * * *", "@daily; spread=1h", "(@daily) | (H 3 * * *)"):
        for ask in ("next_after", "last_at"):
            with pytest.raises(UnboundSchedule):
                getattr(schedule(text), ask)(NOW)
        with pytest.raises(UnboundSchedule):
            schedule(text).instants(NOW, NOW + timedelta(days=2))
        assert schedule(text).bound("job_1", None).next_after(NOW) is not None


def test_after_completion_follows_the_last_end() -> None:
    delayed = after_completion("10m")
    assert delayed.next_after(NOW) is None
    assert delayed.last_at(NOW) is None
    assert delayed.instants(NOW, NOW + timedelta(days=1)) == []
    assert delayed.bound("job_1", None) == delayed
    assert delayed.bound("job_1", NOW) == once(NOW + timedelta(minutes=10))


def test_a_limit_is_kept_and_a_negative_one_is_refused() -> None:
    later = NOW + timedelta(days=3)
    for each in (
        cron("* * * * *"),
        every("1m"),
        any_of(every("1m"), every("2m")),
        schedule("* * * * *; end=2030-01-01Z"),
    ):
        assert len(each.instants(NOW, later, 7)) == 7
        assert list(each.instants(NOW, later, 500)) == list(each.instants(NOW, later))[:500]
        assert list(each.instants(NOW, later, 0)) == []
        with pytest.raises(ValueError, match="negative"):
            each.instants(NOW, later, -1)


# ---------------------------------------------------------------------------------------------- a schedule of one's own


@pytest.fixture
def no_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test makes known is unknown to the next."""
    monkeypatch.setattr(codec, "_registered", {})


@pytest.mark.usefixtures("no_kinds")
def test_a_kind_of_ones_own_is_read_by_its_word_alone_and_among_others() -> None:
    """S0-037"""
    schedule_kind("tide", tides.read)
    schedule_kind("tide", tides.read)
    tide, holidays = tides.read(NOW.isoformat()), calendar("holidays", dates=["2026-11-15"])

    found: object = schedule(f"tide: {NOW.isoformat()}")
    assert found == tide
    assert schedule(str(any_of(tide, every("1d")))) == any_of(tide, every("1d"))
    read = schedule(f"({tide}) - holidays; start=2026-11-16Z", calendars=[holidays])
    assert read.next_after(NOW) == NOW + 2 * tides.PERIOD
    assert schedule(str(read), calendars=[holidays]) == read


@pytest.mark.usefixtures("no_kinds")
def test_a_kind_of_ones_own_needs_a_word_that_is_free() -> None:
    """S0-037"""
    schedule_kind("tide", tides.read)
    for taken in ("tide", "cron", "after", "", "two words", "R5"):
        with pytest.raises(InvalidSchedule, match=r"kind (must be letters|is read by another function already)"):
            schedule_kind(taken, lambda text: tides.Tide(NOW))


@pytest.mark.usefixtures("no_kinds")
def test_what_the_reader_of_a_kind_does_wrong_is_told_as_a_mistake_of_the_text() -> None:
    """S0-037: whatever it raises or returns."""
    schedule_kind("tide", tides.read)
    schedule_kind("noon", lambda text: text)  # type: ignore[arg-type, return-value]
    with pytest.raises(InvalidSchedule, match="tide cannot be read: ValueError: Invalid isoformat string"):
        schedule("tide: high")
    with pytest.raises(InvalidSchedule, match="noon was read as a str, which is no schedule"):
        schedule("noon: sharp")
    with pytest.raises(
        InvalidSchedule, match=r"one of cron, .*, on request, tide, noon, got moon; call schedule_kind\(\) first"
    ):
        schedule("moon: full")


@pytest.mark.usefixtures("no_kinds")
def test_an_installed_package_may_bring_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """S0-037: an entry point of the group `everytick.schedules`."""
    points = metadata.EntryPoints(
        metadata.EntryPoint(word, f"{tides.__name__}:{name}", "everytick.schedules")
        for word, name in (("tide", "read"), ("ebb", "nothing"))
    )
    monkeypatch.setattr(metadata, "entry_points", lambda **asked: points.select(**asked))

    found: object = schedule(f"tide: {NOW.isoformat()}")
    assert found == tides.Tide(NOW)
    with pytest.raises(InvalidSchedule, match="ebb cannot be read: AttributeError"):
        schedule("ebb: low")


def test_on_request_names_nothing_and_is_its_own_text() -> None:
    """A9: a job that runs only when it is asked for."""
    found = schedule("on request")
    assert (str(found), found.describe(), found) == ("on request", "only when it is asked for", on_request())
    moment = datetime(2026, 11, 16, tzinfo=UTC)
    assert (found.next_after(moment), found.last_at(moment)) == (None, None)
    assert list(found.instants(moment, moment.replace(year=2030))) == []
    assert str(schedule("(on request) | (every: 1h)")) == "(on request) | (every: 1h)"
