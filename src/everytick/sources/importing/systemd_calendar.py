"""The two notations of time that systemd has: calendar expressions (systemd.time(7)) and time spans.

systemd leaves out wall times that a change of the clock skips, and takes the first pass of those
that come twice, whatever the expression.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from everytick.errors import EverytickError, shown
from everytick.schedules.timezones import zone
from everytick.sources.importing.findings import Unsayable
from everytick.sources.importing.wall_rule import DAYS, HOURS, MINUTES, MONTHS, SECONDS, YEARS, FieldNumbers, WallRule

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORDS = {
    "minutely": "*-*-* *:*:00",
    "hourly": "*-*-* *:00:00",
    "daily": "*-*-* 00:00:00",
    "monthly": "*-*-01 00:00:00",
    "weekly": "Mon *-*-* 00:00:00",
    "yearly": "*-01-01 00:00:00",
    "annually": "*-01-01 00:00:00",
    "anually": "*-01-01 00:00:00",
    "quarterly": "*-01,04,07,10-01 00:00:00",
    "semiannually": "*-01,07-01 00:00:00",
    "bi-annually": "*-01,07-01 00:00:00",
    "biannually": "*-01,07-01 00:00:00",
    "semi-annually": "*-01,07-01 00:00:00",
}
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FULL = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_NUMBERS = {**{name: n for n, name in enumerate(_WEEKDAYS)}, **{name: n for n, name in enumerate(_FULL)}}
_CHAIN = re.compile(r"(\d{1,6})(?:\.\.(\d{1,6}))?(?:/(\d{1,6}))?", re.ASCII)
_TIME = re.compile(r"([^:\s]+):([^:\s]+)(?::([^:\s]+))?")
_DATE = re.compile(r"(?:([^-~\s]+)-)?([^-~\s]+)([-~])([^-~\s]+)")
_SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-zµμ]*)")
_UNITS = {
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("us", "usec", "µs", "μs"), 1e-6),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 86400.0),
    **dict.fromkeys(("M", "month", "months"), 2629800.0),
    **dict.fromkeys(("y", "year", "years"), 31557600.0),
}


def calendar_texts(written: str) -> list[str]:
    """Return the schedules that name the same instants as a calendar expression."""
    text, tz = _without_zone(written.strip())
    text = _WORDS.get(text.lower(), text)
    if text.startswith("@"):
        raise Unsayable(f"'{shown(written)}' is a moment in seconds since 1970: write it as once: …")
    rule = replace(_rule(written, text), dst_gap="skip", follows_clock=tz != "UTC")
    return rule.texts(tz=tz)


def _without_zone(text: str) -> tuple[str, str | None]:
    """Return the expression and the zone after it."""
    before, _, last = text.rpartition(" ")
    if not before or not last[:1].isalpha() or last.lower().rstrip(",") in _NUMBERS:
        return text, None
    try:
        return before.rstrip(), zone(last).name
    except EverytickError:
        raise Unsayable(f"'{shown(last)}' is not a known time zone") from None


def _rule(written: str, text: str) -> WallRule:
    words = text.split()
    rule = WallRule()
    if words and words[0][:1].isalpha():
        rule = replace(rule, weekday=_weekdays(written, words.pop(0)))
    if words and (date := _DATE.fullmatch(words[0])):
        words.pop(0)
        rule = _with_date(written, rule, date)
    if words and (time := _TIME.fullmatch(words[0])):
        words.pop(0)
        hour, minute, second = time.groups()
        rule = replace(
            rule,
            hour=_numbers(written, hour, HOURS),
            minute=_numbers(written, minute, MINUTES),
            second=frozenset({0}) if second is None else _numbers(written, second, SECONDS),
        )
    else:
        rule = replace(rule, hour=frozenset({0}), minute=frozenset({0}))
    if words or not text:
        raise Unsayable(f"'{shown(written)}' cannot be read as a calendar expression")
    return rule


def _with_date(written: str, rule: WallRule, date: re.Match[str]) -> WallRule:
    year, month, sign, day = date.groups()
    years = None if year is None else _numbers(written, year, (0, YEARS[1]))
    if years is not None:
        years = frozenset(year + (2000 if year < 70 else 1900 if year < 100 else 0) for year in years)
    rule = replace(rule, year=years, month=_numbers(written, month, MONTHS))
    if sign == "-":
        return replace(rule, day=_numbers(written, day, DAYS))
    return rule if day == "*" else replace(rule, from_end=frozenset(_from_end(written, day)))


def _from_end(written: str, text: str) -> Iterator[int]:
    """Give the days from the end of the month; a step runs towards its end."""
    for first, last, step in _chains(written, text, DAYS):
        if last is None:
            yield from range(first, 0, -step) if step else (first,)
        else:
            yield from range(last, first - 1, -(step or 1))


def _numbers(written: str, text: str, span: tuple[int, int]) -> FieldNumbers:
    if text == "*":
        return None
    found: set[int] = set()
    for first, last, step in _chains(written, text, span):
        end = last if last is not None else span[1] if step else first
        found.update(range(first, end + 1, step or 1))
    return frozenset(found)


def _chains(written: str, text: str, span: tuple[int, int]) -> Iterator[tuple[int, int | None, int]]:
    """Give the parts of a list: first, last and step; what is not given is None or 0."""
    for part in text.split(","):
        match = _CHAIN.fullmatch(part)
        if match is None:
            reason = "fractions of a second cannot be said here" if "." in part.replace("..", "") else "cannot be read"
            raise Unsayable(f"'{shown(part)}' in '{shown(written)}' {reason}")
        first, last, step = (None if group is None else int(group) for group in match.groups())
        assert first is not None, "the pattern has a number"
        if step == 0 or not all(span[0] <= number <= span[1] for number in (first, first if last is None else last)):
            raise Unsayable(f"'{shown(part)}' in '{shown(written)}' must lie in {span[0]} to {span[1]}")
        if last is not None and last < first:
            raise Unsayable(f"'{shown(part)}' in '{shown(written)}' runs backwards")
        yield first, last, step or 0


def _weekdays(written: str, text: str) -> FieldNumbers:
    found: set[int] = set()
    for part in text.rstrip(",").split(","):
        first, _, last = part.lower().replace("..", "-").partition("-")
        days = [_NUMBERS.get(day) for day in (first, last or first)]
        if None in days:
            raise Unsayable(f"'{shown(part)}' in '{shown(written)}' is no weekday")
        # Weeks begin on Monday there.
        begin, end = ((day or 7) for day in days)
        if end < begin:
            raise Unsayable(f"'{shown(part)}' in '{shown(written)}' runs backwards")
        found.update(day % 7 for day in range(begin, end + 1))
    return frozenset(found) if len(found) < 7 else None


def time_span(written: str) -> timedelta:
    """Return the length of `1h 30min`, `90` (seconds) or `1week`."""
    position, seconds, text = 0, 0.0, written.strip()
    while position < len(text):
        match = _SPAN.match(text, position)
        unit = None if match is None else _UNITS.get(match[2], _UNITS.get(match[2].lower()))
        if match is None or unit is None:
            raise Unsayable(f"'{shown(written)}' is no time span")
        seconds += float(match[1]) * unit
        position = match.end()
    if not text or seconds > timedelta(days=36500).total_seconds():
        raise Unsayable(f"'{shown(written)}' is no time span that can be kept")
    return timedelta(seconds=seconds)
