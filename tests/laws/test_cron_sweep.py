"""Every zone and every jump of its clock from 1970 to 2037, under all policies; run with `-m sweep`."""

from datetime import UTC, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo, available_timezones

import pytest

from everytick import cron
from tests.oracle.cron import by_dates, read
from tests.oracle.zones import SECOND, jumps, offset

# Neither is a place: the first says that no zone was set, the second is whatever this machine has.
ZONES = sorted(available_timezones() - {"Factory", "localtime"})
FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2038, 1, 1, tzinfo=UTC)
REACH = timedelta(hours=26)
APART = timedelta(days=6)
EXPRESSIONS = [
    ("30 2 * * *", "vixie"),
    ("0 0 * * *", "vixie"),
    ("0,45 0-3,23 * * 0,6", "vixie"),
    ("20 */3 * * *", "vixie"),
    ("*/15 1 * * *", "vixie"),
    ("1 0,1 28-31 * *", "posix"),
    ("30 59 0,1,2,23 ? * *", "quartz"),
]
POLICIES = list(product(["skip", "fire_after"], ["both", "first", "second"]))
seen: dict[tuple[object, ...], list[datetime]] = {}


def expected(
    text: str, dialect: str, gap: str, fold: str, zone: ZoneInfo, jump: datetime, alone: bool
) -> list[datetime]:
    """Return the oracle's instants around a jump.

    Many zones jump together: where no other jump is near, the moment and the two offsets say it all.
    """
    offsets = offset(jump - SECOND, zone), offset(jump, zone)
    key = (text, dialect, gap, fold, jump, *offsets, None if alone else zone.key)
    if key not in seen:
        rule = read(text, dialect, gap=gap, fold=fold)
        seen[key] = by_dates(rule, zone, jump - REACH, jump + REACH)
    return seen[key]


@pytest.mark.sweep
@pytest.mark.parametrize("name", ZONES)
def test_around_every_jump_of_the_zone_the_instants_are_those_of_the_oracle(name: str) -> None:
    """C-03; A10 … A21, A26."""
    zone = ZoneInfo(name)
    found = jumps(zone, FIRST, LAST, stride=timedelta(hours=12))
    for jump in found:
        alone = not any(other != jump and abs(other - jump) < APART for other in found)
        for (text, dialect), (gap, fold) in product(EXPRESSIONS, POLICIES):
            schedule = cron(text, tz=name, dialect=dialect, dst_gap=gap, dst_fold=fold)
            answer = list(schedule.instants(jump - REACH, jump + REACH))
            assert answer == expected(text, dialect, gap, fold, zone, jump, alone), (text, dialect, gap, fold, jump)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ZONES)
def test_next_and_last_agree_with_the_list_around_every_jump(name: str) -> None:
    """A9, A11: asked before, inside and after every gap and fold."""
    schedules = [cron(text, tz=name, dialect=dialect) for text, dialect in EXPRESSIONS]
    for jump, schedule in product(jumps(ZoneInfo(name), FIRST, LAST, stride=timedelta(hours=12)), schedules):
        listed = list(schedule.instants(jump - 3 * REACH, jump + 3 * REACH))
        for minutes in (-61, -30, 0, 29, 30, 59, 60, 90):
            at = jump + timedelta(minutes=minutes)
            later, earlier = [i for i in listed if i > at], [i for i in listed if i <= at]
            assert not later or schedule.next_after(at) == later[0], (str(schedule), at)
            assert not earlier or schedule.last_at(at) == earlier[-1], (str(schedule), at)
