"""Reads texts that the domain cannot: schedules, time zones, moments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from everytick.domain.config import NOTICES, SCHEDULES, UNSET
from everytick.domain.durations import instant
from everytick.domain.job import is_schedule
from everytick.errors import InvalidInstant, InvalidPolicies, InvalidSchedule, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everytick.domain.schedule import Schedule
    from everytick.schedules.timezones import Zone


JUST_NOW = timedelta(minutes=1)
"""How far a caller's clock may lag behind the store's: a moment up to this old counts as now."""


def common(timezone: str | tzinfo, defaults: Mapping[str, object]) -> dict[str, object]:
    """Return the policies of all jobs, with the application's time zone unless it is UTC."""
    found = {key: readable(key, written) for key, written in defaults.items()}
    if timezone not in ("UTC", UTC):
        own = readable("timezone", timezone)
        if found.setdefault("timezone", own) != own:
            reason = f"timezone is given twice: '{shown(own)}', and '{shown(found['timezone'])}' in defaults"
            raise InvalidPolicies("", reason, ("one of them",))
    return found


def readable(key: str, written: object) -> object:
    """Return the value of a policy as the domain reads it: schedules as values, zones as names, checked receivers."""
    if key in SCHEDULES and written is not None and written is not UNSET:
        return schedule_of(written)
    if key == "timezone" and written is not UNSET:
        return zone_named(written).name
    if key in NOTICES and written is not None and written is not UNSET:
        from everytick.runners.receivers import checked_receivers

        return checked_receivers(key, written)
    return written


def policy_pair(text: str) -> tuple[str, Any] | None:
    """Return the policy that `priority=5` names and its value, JSON or else text; None for a text that is no pair."""
    from json import loads

    key, sign, written = text.partition("=")
    if not sign or not key.strip():
        return None
    try:
        return key.strip(), loads(written)
    except ValueError:
        return key.strip(), written.strip()


def schedule_of(given: object) -> Schedule:
    """Return the schedule, or the one that the text describes."""
    if isinstance(given, str):
        from everytick.schedules.codec import schedule

        return _shared(schedule(given))
    if not is_schedule(given):
        raise InvalidSchedule(given, "schedule", 'must be a schedule or its text, like every("10s") or "30 2 * * *"')
    return _shared(given)


def _shared(schedule: Schedule) -> Schedule:
    """Return the first schedule that is equal to this one: thousands of jobs may share one value."""
    given: Any = schedule
    try:
        return _first(given)
    except TypeError:  # a schedule of the user's own class may not be hashable
        return schedule


@lru_cache(maxsize=4096)
def _first(schedule: Schedule) -> Schedule:
    return schedule


def zone_named(given: object) -> Zone:
    """Return the zone; `"local"` is the machine's, looked up now."""
    from everytick.schedules.timezones import zone_of

    if given == "local":
        from everytick.config.host import local_timezone

        given = local_timezone()
    zone = zone_of(given)
    if zone is None:
        raise InvalidPolicies("", "timezone 'None' must be a name", ("UNSET, for the application's", 'timezone="UTC"'))
    return zone


def in_zone(schedule: Schedule, zone_name: str) -> Schedule:
    """Return the schedule in the zone of this name, unless it has one of its own."""
    from everytick.schedules import combine

    return _shared(combine.in_zone(schedule, zone_named(zone_name)))


def moment_of(given: object) -> datetime:
    """Return the UTC instant of an aware datetime, or of a text with its offset or its zone in brackets."""
    if not isinstance(given, str) or "[" not in given:
        return instant(given)
    from everytick.schedules.timezones import instant_of, read_moment

    return instant_of(*read_moment(given, None))


def now_or_later(what: str, given: object, now: datetime) -> datetime:
    """Return the instant if it is not past. One of the last minute is now, since clocks differ."""
    found = moment_of(given)
    return now if now - JUST_NOW <= found <= now else future(what, found, now)


def future(what: str, given: object, now: datetime) -> datetime:
    """Return the instant if it is not past by the store's clock."""
    found = moment_of(given)
    if found <= now:
        raise InvalidInstant(given, f"must be later than the store's time, {now.isoformat()} ({what})")
    return found
