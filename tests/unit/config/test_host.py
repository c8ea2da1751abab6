"""The zone of this machine, by name."""

from pathlib import Path

import pytest

from everytick.config.host import local_timezone
from everytick.errors import InvalidPolicies


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        (":America/New_York", "America/New_York"),
        ("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        (":/opt/zoneinfo/posix/Asia/Tokyo", "Asia/Tokyo"),
        ("UTC", "UTC"),
        ("", "UTC"),
        (":", "UTC"),
        ("EST5EDT", "EST5EDT"),
        ("UTC0", "UTC"),
        ("<-00>+00:00", "UTC"),
        ("CET-1", "posix:CET-1"),
        ("<+0330>-3:30", "posix:<+0330>-3:30"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "posix:CET-1CEST,M3.5.0,M10.5.0/3"),
        (":IST-2IDT,M3.4.4/26,M10.5.0", "posix:IST-2IDT,M3.4.4/26,M10.5.0"),
        ("XXX3YYY", "posix:XXX3YYY"),
    ],
)
def test_the_variable_wins(variable: str, name: str, tmp_path: Path) -> None:
    """C-04, S2-005, W6: in every form that the C library reads."""
    (tmp_path / "timezone").write_text("Africa/Cairo\n")
    assert local_timezone({"TZ": variable}, tmp_path) == name


@pytest.mark.parametrize(
    "variable", ["CET-1CEST,M13.5.0,M10.5.0", "CET-99", "Mars/Olympus", "/etc/localtime", "../secret", "/x/zoneinfo/"]
)
def test_a_variable_that_names_no_zone_is_refused_with_the_way_out(variable: str, tmp_path: Path) -> None:
    """W6: the error names a way that works everywhere."""
    with pytest.raises(InvalidPolicies, match=r"this host cannot be resolved: TZ=.*instead: TZ=Europe/Berlin in the"):
        local_timezone({"TZ": variable}, tmp_path)


def test_else_the_link_that_the_clock_is_says_it(tmp_path: Path) -> None:
    """C-04: what the C library itself follows, also where /etc/timezone was forgotten."""
    zone = tmp_path / "zoneinfo" / "Europe" / "Paris"
    zone.parent.mkdir(parents=True)
    zone.write_bytes(b"TZif")
    (tmp_path / "localtime").symlink_to(zone)
    (tmp_path / "timezone").write_text("Africa/Cairo\n")
    assert local_timezone({}, tmp_path) == "Europe/Paris"


def test_else_the_file_that_names_it(tmp_path: Path) -> None:
    """C-04: where the clock is a copy, or a link to somewhere without zones."""
    (tmp_path / "localtime").write_bytes(b"TZif")
    (tmp_path / "timezone").write_text("# set by hand\n\nAfrica/Cairo\n")
    assert local_timezone({}, tmp_path) == "Africa/Cairo"
    (tmp_path / "localtime").unlink()
    (tmp_path / "localtime").symlink_to(tmp_path / "somewhere")
    assert local_timezone({}, tmp_path) == "Africa/Cairo"


def test_a_machine_that_says_nothing_is_in_utc(tmp_path: Path) -> None:
    """As the C library has it."""
    assert local_timezone({}, tmp_path) == "UTC"


def test_a_clock_without_a_name_is_refused(tmp_path: Path) -> None:
    """Guessing by its content would name one of many equal zones."""
    (tmp_path / "localtime").write_bytes(b"TZif")
    with pytest.raises(InvalidPolicies, match="localtime does not say which zone it is"):
        local_timezone({}, tmp_path)
    (tmp_path / "timezone").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidPolicies, match="localtime does not say which zone it is"):
        local_timezone({}, tmp_path)


def test_a_file_that_names_no_zone_is_refused(tmp_path: Path) -> None:
    """What was read, and where."""
    (tmp_path / "timezone").write_text("Mars/Olympus\n")
    with pytest.raises(InvalidPolicies, match="names 'Mars/Olympus', which is not a known time zone"):
        local_timezone({}, tmp_path)
