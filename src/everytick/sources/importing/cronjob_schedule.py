"""Schedules of CronJobs as their controller reads them, with robfig's cron, version 3.

Five fields or a macro, a zone before them, `?` for `*`, `5/15` through to the end, steps beyond
the end, a day field of `*/2` that counts as restricted; wall times that the clock skips are left
out, and those that come twice come twice. Compared with the library itself, answer by answer.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from everytick.domain.durations import duration, format_duration
from everytick.domain.values import value
from everytick.errors import EverytickError, shown
from everytick.schedules.timezones import zone
from everytick.sources.importing.findings import Unsayable
from everytick.sources.importing.wall_rule import DAYS, HOURS, MINUTES, MONTHS, SOME_YEARS, WEEKDAYS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everytick.schedules.timezones import Zone

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_SPANS = (MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS)
_NAMED = (3, 4)
_ZONE = re.compile(r"(?:CRON_)?TZ=(\S+)\s+")
_PART = re.compile(r"(?P<first>[*?]|\w+)(?:-(?P<last>\w+))?(?:/(?P<step>\d{1,9}))?", re.ASCII)
_NO_CHANGES = ("UTC", "Etc/UTC")
_SECOND = timedelta(seconds=1)

_PHASE = "the controller counts from the last run, and here it is from 1970 on: same period, other phase"
_MISSING_DAY = "where the clock skips midnight the controller passes over that whole day, and here it does not"
_HALF_HOURS = "the day after the clock moves by less than an hour the controller loses runs, and here it does not"


@value
class CronJobSchedule:
    """The converted schedule, whether the manifest names its zone, and where the controller differs."""

    text: str
    has_zone: bool
    left: tuple[tuple[str, str], ...] = ()


def read_schedule(written: str, named: object, timezone: str | None) -> CronJobSchedule:
    """Return the schedule of a CronJob; `named` is its timeZone, `timezone` the one that counts without it."""
    prefix = _ZONE.match(written)
    if prefix is not None:
        written, named = written[prefix.end() :], prefix[1]
    tz = None if named is None else str(named)
    expression = written.strip()
    if expression.startswith("@every "):
        text = _every(expression.removeprefix("@every "))
        return CronJobSchedule(text, True, ((f"the phase of {text}", _PHASE),))
    if expression.startswith("@") and expression not in _MACROS:
        raise Unsayable(f"there is no macro '{shown(expression)}'")
    fields = _fields(_MACROS.get(expression, expression))
    changes = "" if tz in _NO_CHANGES else "; dst_gap=skip; dst_fold=both"
    text = f"{' '.join(fields)}{'' if tz is None else f'; tz={tz}'}{changes}"
    return CronJobSchedule(text, tz is not None, tuple(_otherwise(fields, tz or timezone)))


def _every(written: str) -> str:
    """The period, of whole seconds and not less than one."""
    try:
        length = duration(written.strip())
    except EverytickError as error:
        raise Unsayable(str(error)) from None
    return f"every {format_duration(max(length // _SECOND, 1) * _SECOND)}"


def _fields(written: str) -> list[str]:
    fields = written.split()
    if len(fields) != len(_SPANS):
        raise Unsayable(f"'{shown(written)}' has not five fields")
    read = [",".join(_part(part, number) for part in field.split(",")) for number, field in enumerate(fields)]
    days, weekdays = read[2], read[4]
    if days.startswith("*/") and weekdays != "*":
        read[2] = f"{DAYS[0]}-{DAYS[1]}{days[1:]}"
    if weekdays.startswith("*/") and days != "*":
        read[4] = f"{WEEKDAYS[0]}-{WEEKDAYS[1]}{weekdays[1:]}"
    return read


def _part(part: str, number: int) -> str:
    """One part of a field: `?` is `*`, `5/15` goes through to the end, and a step beyond it leaves the first."""
    least, most = _SPANS[number]
    match = _PART.fullmatch(part)
    if match is None:
        raise Unsayable(f"'{shown(part)}' cannot be read by the controller")
    first, last, step = match["first"], match["last"], match["step"]
    _refuse_strange(number, *(value for value in (first, last) if value is not None))
    if first in ("*", "?"):
        first, last = "*", None
    if step is None or (first == "*" and int(step) == 1):
        return first if last is None else f"{first}-{last}"
    if first == "*":
        return f"*/{step}" if int(step) <= most - least else str(least)
    if int(step) > most - least:
        return first
    return f"{first}-{most if last is None else last}/{step}"


def _refuse_strange(number: int, *words: str) -> None:
    """Names are for months and weekdays, and there is no weekday 7."""
    for word in words:
        is_name = not word.isdigit() and word not in ("*", "?")
        if (is_name and number not in _NAMED) or (number == 4 and word.isdigit() and int(word) > WEEKDAYS[1]):
            raise Unsayable(f"'{shown(word)}' cannot be read by the controller, which would refuse the CronJob")


def _otherwise(fields: list[str], tz: str | None) -> Iterator[tuple[str, str]]:
    """Give the controller's effects of clock changes that are not reproduced."""
    if tz is None or tz in _NO_CHANGES:
        return
    try:
        changes = list(_changes(zone(tz)))
    except EverytickError:
        # The schedule is refused with its reason when the job is added.
        return
    if any(length % timedelta(hours=1) for length, _ in changes):
        yield "the days when the clocks change", _HALF_HOURS
    if any(skips for _, skips in changes) and any(field != "*" for field in fields[2:]):
        yield "the days when the clocks change at midnight", _MISSING_DAY


def _changes(tz: Zone) -> Iterator[tuple[timedelta, bool]]:
    """Give by how much each change of some years moves the clock, and whether it skips a midnight."""
    stretch = tz.stretch(SOME_YEARS[0])
    while stretch.end <= SOME_YEARS[1] and (following := tz.after(stretch)) is not None:
        midnight = following.wall_start.replace(hour=0, minute=0, second=0, microsecond=0)
        yield following.offset - stretch.offset, stretch.wall_end <= midnight < following.wall_start
        stretch = following
