"""Zones cut into stretches must say what `zoneinfo` says, and refuse what is no zone."""

import pickle
import subprocess
import sys
import zoneinfo
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everytick import InvalidSchedule, cron, schedule, zone_data
from everytick.domain.durations import FIRST, LAST
from everytick.errors import InvalidInstant
from everytick.schedules.timezones import utc, zone, zone_of

instants = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
names = st.sampled_from(sorted(available_timezones() - {"localtime", "Factory"}))


@given(names, instants)
def test_a_stretch_has_the_offset_that_zoneinfo_gives(name: str, at: datetime) -> None:
    stretch = zone(name).stretch(at)
    assert stretch.start <= at < stretch.end
    assert stretch.offset == at.astimezone(ZoneInfo(name)).utcoffset()


@given(names, instants)
def test_stretches_follow_each_other_without_a_hole(name: str, at: datetime) -> None:
    stretch = zone(name).stretch(at)
    following, former = zone(name).after(stretch), zone(name).before(stretch)
    assert following is not None
    assert following.start == stretch.end
    assert former is not None
    assert former.end == stretch.start


def test_the_calendar_has_ends() -> None:
    berlin = zone("Europe/Berlin")
    assert berlin.before(berlin.stretch(FIRST)) is None
    assert berlin.after(berlin.stretch(LAST)) is None


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
        ("Pacific/Kiritimati", datetime(1994, 12, 31, 10, tzinfo=UTC)),
    ],
)
def test_a_change_at_the_turn_of_the_year_is_not_cut_apart(name: str, at: datetime) -> None:
    """Both skipped a whole day, and both within days of a new year, where years are cut."""
    stretch = zone(name).stretch(at)
    before = zone(name).before(stretch)
    assert stretch.start == at
    assert before is not None
    assert stretch.wall_start - before.wall_end == timedelta(days=1)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Nowhere",
        "Europe/Berln",
        "europe/berlin",
        "../../etc/passwd",
        "/etc/localtime",
        "Europe",
        "localtime",
        "right/UTC",
        "Europe/Berlin\n",
        "Europe/Berlin\x00",
        "\ud800",
        "local",
        "posixrules",
        "tzdata.zi",
        "a" * 10000,
    ],
)
def test_what_is_no_zone_is_refused(name: str) -> None:
    """S0-050: an invalid time zone fails at construction."""
    with pytest.raises(InvalidSchedule) as caught:
        cron("0 0 * * *", tz=name)
    assert caught.value.field == "tz"
    assert len(str(caught.value)) < 1000
    assert str(caught.value).isprintable()


def test_a_mistyped_zone_is_told_the_nearest() -> None:
    with pytest.raises(InvalidSchedule, match="did you mean Europe/Berlin"):
        zone("Europe/Berln")
    with pytest.raises(InvalidSchedule, match="did you mean America/New_York"):
        zone("New_York")


def test_zones_may_be_given_in_any_form() -> None:
    assert zone_of(ZoneInfo("Europe/Berlin")) is zone("Europe/Berlin")
    assert zone_of(UTC) is zone("UTC")
    assert zone_of(None) is None
    for wrong in (5, timezone(timedelta(hours=1)), b"UTC"):
        with pytest.raises(InvalidSchedule):
            zone_of(wrong)


def test_a_naive_moment_is_refused_in_every_question() -> None:
    """A naive datetime names no moment, so no schedule answers for one."""
    naive = datetime(2026, 1, 1)  # noqa: DTZ001
    daily = cron("0 0 * * *", tz="Europe/Berlin")
    for ask in (daily.next_after, daily.last_at, lambda at: daily.instants(at, at)):
        with pytest.raises(InvalidInstant):
            ask(naive)


def test_moments_at_the_edge_of_the_calendar_are_answered() -> None:
    west, east = timezone(timedelta(hours=-12)), timezone(timedelta(hours=14))
    assert utc(datetime.max.replace(tzinfo=west)) == datetime.max.replace(tzinfo=UTC)
    assert utc(datetime.min.replace(tzinfo=east)) == datetime.min.replace(tzinfo=UTC)
    for name in ("UTC", "Pacific/Kiritimati", "America/New_York"):
        daily = cron("0 12 * * *", tz=name)
        assert daily.next_after(datetime.max.replace(tzinfo=UTC)) is None
        assert daily.next_after(datetime.min.replace(tzinfo=UTC)) is not None
        assert daily.last_at(datetime.max.replace(tzinfo=UTC)) is not None
        daily.last_at(datetime.min.replace(tzinfo=UTC))


def test_the_edition_of_the_zone_tables_can_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version, source = zone_data()
    assert version
    assert source in ("system", "package")

    monkeypatch.setattr(zoneinfo, "TZPATH", ())
    assert zone_data().source == "package"
    assert zone_data().version.startswith("20")

    (tmp_path / "UTC").touch()
    monkeypatch.setattr(zoneinfo, "TZPATH", (str(tmp_path),))
    assert zone_data() == ("unknown", "system")
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "UTC").touch()
    (tmp_path / "named" / "tzdata.zi").write_text("# version 2026z\n")
    monkeypatch.setattr(zoneinfo, "TZPATH", (str(tmp_path / "named"),))
    assert zone_data() == ("2026z", "system")


def test_the_zone_tables_of_the_package_can_be_chosen_for_a_whole_process() -> None:
    """In a process of its own; what was looked up before goes by them too."""
    script = """
from datetime import UTC, datetime
from everytick import Everytick, cron
from everytick.schedules import timezones
before = timezones.zone("Europe/Berlin")
daily = cron("30 2 * * *", tz="Europe/Berlin")
first = before.info
Everytick("memory://", timezone_data="package")
assert timezones.zone_data().source == "package", timezones.zone_data()
assert timezones.zone("Europe/Berlin") is before and before.info is not first
assert daily.next_after(datetime(2026, 7, 1, tzinfo=UTC)) == datetime(2026, 7, 1, 0, 30, tzinfo=UTC)
import tzdata
assert timezones.zone_data().version == tzdata.IANA_VERSION
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ("CET-1CEST,M3.5.0,M10.5.0/3", "Europe/Paris"),
        ("<+0545>-5:45", "Asia/Kathmandu"),
        ("EST5EDT,M3.2.0,M11.1.0", "America/New_York"),
        ("ACST-9:30ACDT,M10.1.0,M4.1.0/3", "Australia/Adelaide"),
    ],
)
def test_a_rule_has_the_offsets_of_the_zone_that_it_writes_down(rule: str, name: str, at: datetime) -> None:
    """S2-005, W6: from the year on in which the zone took the rule."""
    by_rule, by_name = zone(f"posix:{rule}"), zone(name)
    assert by_rule.wall(at) == by_name.wall(at) or at.year < 2009
    assert by_rule.resolve(at) == by_name.resolve(at) or at.year < 2009


def test_a_rule_is_stored_and_read_by_its_own_text() -> None:
    """W6: also where it does not say when summer begins: then it does so as in the C library."""
    daily = cron("30 2 * * *", tz="posix:EST5EDT")
    assert schedule(str(daily)) == daily
    assert pickle.loads(pickle.dumps(daily)) == daily
    assert zone("posix:EST5EDT").wall(datetime(2026, 7, 1, 12, tzinfo=UTC)).hour == 8
    assert str(zone("posix:<+0330>-3:30")) == "posix:<+0330>-3:30"


@pytest.mark.parametrize(
    "rule", ["", "X", "GMT", "CET-99", "CET-1CEST,M13.5.0,M10.5.0", "CET-1;x", "CET-1CEST,", "ÄÖÜ1"]
)
def test_a_rule_that_cannot_be_is_refused(rule: str) -> None:
    """W6."""
    with pytest.raises(InvalidSchedule, match="is not a rule like posix:CET-1CEST"):
        zone(f"posix:{rule}")


def test_a_rule_without_its_prefix_is_no_name() -> None:
    """W6: of those who write GMT+5 most mean the opposite of what POSIX does."""
    with pytest.raises(InvalidSchedule, match="not a known time zone"):
        zone("GMT+5")
