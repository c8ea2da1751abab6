"""Where clocks jump: the transitions worth asking about, found near dates that are known by name."""

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from tests.oracle.zones import jumps


class Place(NamedTuple):
    """A zone and a date within two days of which its clock jumps."""

    zone: str
    near: str


PLACES = (
    Place("Europe/Berlin", "2025-03-30"),
    Place("Europe/Berlin", "2025-10-26"),
    Place("America/New_York", "2025-03-09"),
    Place("America/New_York", "2025-11-02"),
    Place("Australia/Lord_Howe", "2025-04-05"),  # thirty minutes
    Place("Australia/Lord_Howe", "2025-10-04"),
    Place("Antarctica/Troll", "2025-03-30"),  # two hours
    Place("Antarctica/Troll", "2025-10-26"),
    Place("Pacific/Apia", "2011-12-30"),  # a whole day is missing
    Place("Pacific/Kwajalein", "1993-08-21"),
    Place("Pacific/Kiritimati", "1994-12-31"),
    Place("Africa/Cairo", "2024-04-26"),  # midnight does not exist
    Place("Africa/Cairo", "2024-10-31"),
    Place("America/Santiago", "2024-09-08"),
    Place("America/Santiago", "2024-04-07"),
    Place("Asia/Beirut", "2025-03-30"),
    Place("Asia/Beirut", "2025-10-26"),
    Place("America/Havana", "2025-03-09"),
    Place("America/Havana", "2025-11-02"),
    Place("Asia/Tehran", "2022-03-22"),
    Place("Asia/Tehran", "2022-09-21"),
    Place("America/Sao_Paulo", "2018-11-04"),
    Place("America/Sao_Paulo", "2018-02-18"),
    Place("Asia/Pyongyang", "2018-05-05"),  # thirty minutes, just before midnight
    Place("Asia/Pyongyang", "2015-08-15"),
    Place("America/Caracas", "2016-05-01"),
    Place("America/Caracas", "2007-12-09"),
    Place("America/St_Johns", "2010-03-14"),  # one minute past midnight
    Place("America/St_Johns", "2010-11-07"),
    Place("America/St_Johns", "1988-04-03"),  # two hours at once
    Place("Atlantic/Azores", "2025-03-30"),  # midnight is missing in spring and comes twice in autumn
    Place("Atlantic/Azores", "2025-10-26"),
    Place("America/Nuuk", "2024-03-30"),  # the missing hour is the last of Saturday
    Place("Africa/Casablanca", "2025-02-23"),  # winter time is the exception
    Place("Europe/Dublin", "2025-10-26"),
    Place("Africa/Monrovia", "1972-01-07"),  # 44 minutes and 30 seconds
    Place("Asia/Kathmandu", "1986-01-01"),  # fifteen minutes
    Place("Europe/Volgograd", "2020-12-27"),
    Place("Asia/Gaza", "2024-04-20"),
    Place("Antarctica/Casey", "2018-03-11"),  # three hours
    Place("Pacific/Bougainville", "2014-12-28"),
    Place("America/Metlakatla", "2015-11-01"),
)


@cache
def jump_at(place: Place) -> datetime:
    """Return the moment at which the clock of this place jumps."""
    near = datetime.fromisoformat(place.near).replace(tzinfo=UTC)
    reach = timedelta(days=2)
    [*_, found] = jumps(ZoneInfo(place.zone), near - reach, near + reach, stride=timedelta(minutes=30))
    return found
