"""What both libraries and our engine are asked: calm days of many years, and nights on which clocks jump."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import NamedTuple
from zoneinfo import ZoneInfo

from tests.oracle import dice
from tests.oracle.moments import PLACES, Place, jump_at
from tests.oracle.zones import SECOND, offset

HOUR = timedelta(hours=1)


class Question(NamedTuple):
    """An expression, a zone and the moment after which instants are wanted."""

    text: str
    zone: str
    at: datetime


def on_calm_days(seed: int, count: int) -> Iterator[Question]:
    """Yield questions about zones without jumps in the years asked about."""
    chance = Random(seed)
    for _ in range(count):
        start = datetime(chance.choice([2009, 2015, 2020, 2024, 2025, 2099]), 1, 1, tzinfo=UTC)
        at = start + timedelta(minutes=chance.randrange(525_600))
        yield Question(dice.five_fields(chance), chance.choice(["UTC", "Asia/Kolkata", "America/Phoenix"]), at)


def near_jumps(seed: int, count: int, places: list[Place]) -> Iterator[Question]:
    """Yield questions about the hours before and after a jump."""
    chance = Random(seed)
    for _ in range(count):
        place = chance.choice(places)
        at = jump_at(place) + timedelta(minutes=chance.randrange(-30 * 60, 3 * 60))
        yield Question(dice.at_night(chance), place.zone, at)


def whole_hours(place: Place) -> bool:
    """Say whether the jump is of whole hours on a full hour of UTC."""
    zone, jump = ZoneInfo(place.zone), jump_at(place)
    return not any(offset(at, zone) % HOUR for at in (jump, jump - SECOND)) and jump.minute == jump.second == 0


EVERY_PLACE = list(PLACES)
WHOLE_HOURS = [place for place in PLACES if whole_hours(place)]
