"""Zones: the schedule's own decides, not the process's, and the data in use decides, not what was known before."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from everytick import any_of, cron, every, once, repeat

ASKED = datetime(2025, 3, 29, 12, tzinfo=UTC)
ZONES = ["UTC", "Pacific/Honolulu", "Pacific/Kiritimati", "America/New_York", "Asia/Kathmandu"]
PROGRAM = """
from datetime import UTC, datetime
from everytick import schedule
found = schedule("cron: 30 2 * * *; tz=Europe/Berlin").next_after(datetime(2025, 3, 29, 12, tzinfo=UTC))
print(found.isoformat())
"""


@pytest.fixture(params=ZONES)
def process_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The process believes to be in this zone."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


@pytest.mark.parametrize("zone", ZONES)
def test_the_zone_of_the_process_changes_no_instant(zone: str, process_zone: str) -> None:
    """A16: process zone × schedule zone; what is asked at noon UTC has one answer everywhere."""
    begin = "R/2025-03-28T09:00:00/P1D"
    schedule = any_of(cron("30 2 * * *", tz=zone), repeat(begin, tz=zone), every("P1D", tz=zone), once(ASKED))

    shown = ASKED.astimezone()
    found = schedule.instants(shown, shown + timedelta(days=3))

    assert shown.utcoffset() == ASKED.astimezone(ZoneInfo(process_zone)).utcoffset()
    clocks = [at.astimezone(ZoneInfo(zone)).strftime("%H:%M") for at in found]
    assert (clocks.count("00:00"), clocks.count("09:00"), clocks.count("02:30")) == (3, 3, 3)


@pytest.mark.parametrize(
    ("rules_of", "instant"),
    [
        ("Europe/Berlin", "2025-03-30T01:00:00+00:00"),  # 02:30 is missing, 03:00 in summer time
        ("Asia/Tokyo", "2025-03-29T17:30:00+00:00"),  # as if Berlin had gone over to Japan's time
        ("Etc/UTC", "2025-03-30T02:30:00+00:00"),  # as if it had given up its own
    ],
)
def test_the_same_text_follows_the_zone_data_in_use(rules_of: str, instant: str, tmp_path: Path) -> None:
    """A30: nothing of the old rules is kept in a schedule's text; a country that changes its rules is followed."""
    swapped = tmp_path / "Europe" / "Berlin"
    swapped.parent.mkdir()
    swapped.write_bytes(files("tzdata").joinpath("zoneinfo", *rules_of.split("/")).read_bytes())

    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONTZPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert answer.stdout.strip() == instant
