"""The dates of an iCalendar file: its events, repeated by the rules that holiday files use.

Only dates count here; an event with a time takes every date it touches. A rule this module
does not know is refused, because a holiday that is silently missing is found too late.
"""

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from everytick.domain.durations import duration
from everytick.errors import DefinitionError, InvalidSchedule

_DAY = timedelta(days=1)
_MAX_BYTES = 10_000_000
_LINE = re.compile(r"([A-Za-z-]+)((?:;[^:;\"]*(?:\"[^\"]*\")?)*):(.*)", re.DOTALL)
_STAMP = re.compile(r"(\d{8})(?:T(\d{6})Z?)?", re.ASCII)
_BYDAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_KNOWN = frozenset({"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYMONTH", "BYMONTHDAY", "BYDAY", "WKST"})


class _Event(NamedTuple):
    first: date
    days: int
    rule: dict[str, str]
    extra: frozenset[date]
    without: frozenset[date]


def read_ics(source: Path | str, since: date, until: date) -> set[date]:
    """Return the dates in `[since, until)` that the events of an ICS file touch."""
    text, name = _text(source)
    days: set[date] = set()
    try:
        for event in _events(text):
            for start in (_starts(event, until) | event.extra) - event.without:
                days.update(start + n * _DAY for n in range(event.days))
    except (ValueError, KeyError, OverflowError, DefinitionError) as error:
        raise InvalidSchedule(name, "ics", f"cannot be read: {error}") from error
    return {day for day in days if since <= day < until}


def _text(source: Path | str) -> tuple[str, str]:
    if isinstance(source, str):
        return source, "ICS text"
    try:
        if source.stat().st_size > _MAX_BYTES:
            raise InvalidSchedule(source.name, "ics", f"is larger than {_MAX_BYTES:,} bytes")
        return source.read_text(encoding="utf-8-sig"), source.name
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSchedule(source.name, "ics", f"cannot be read: {error}") from error


def _events(text: str) -> list[_Event]:
    if "BEGIN:VCALENDAR" not in text[:1000]:
        raise ValueError("it is not an iCalendar file: it does not begin with BEGIN:VCALENDAR")
    events: list[_Event] = []
    lines: list[tuple[str, str]] | None = None
    for line in re.sub(r"\r?\n[ \t]", "", text).splitlines():
        if line == "BEGIN:VEVENT":
            lines = []
        elif line == "END:VEVENT" and lines is not None:
            events.append(_event(lines))
            lines = None
        elif lines is not None and (match := _LINE.fullmatch(line)):
            lines.append((match[1].upper(), match[3]))
    return events


def _event(lines: list[tuple[str, str]]) -> _Event:
    fields = dict(lines)
    if "DTSTART" not in fields:
        raise ValueError("an event has no DTSTART")
    start = _stamp(fields["DTSTART"])
    last = start
    if "DTEND" in fields:
        # An end is exclusive: midnight belongs to the day before.
        last = max(start, _stamp(fields["DTEND"]) - timedelta(microseconds=1))
    elif "DURATION" in fields:
        last = max(start, start + duration(fields["DURATION"]) - timedelta(microseconds=1))
    rule = dict(part.split("=", 1) for part in fields.get("RRULE", "").split(";") if part)
    unknown = set(rule) - _KNOWN
    if unknown:
        raise ValueError(f"the rule part {sorted(unknown)[0]} is not supported")
    listed = {
        key: frozenset(_stamp(stamp).date() for name, text in lines if name == key for stamp in text.split(","))
        for key in ("RDATE", "EXDATE")
    }
    return _Event(start.date(), (last.date() - start.date()).days + 1, rule, listed["RDATE"], listed["EXDATE"])


def _stamp(text: str) -> datetime:
    match = _STAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a date")
    return datetime.strptime(match[1] + (match[2] or "000000"), "%Y%m%d%H%M%S").replace(tzinfo=UTC)


def _starts(event: _Event, until: date) -> set[date]:
    """The first dates of an event and its repetitions, found by looking at each day in turn."""
    if not event.rule:
        return {event.first}
    rule = _Rule(event.rule, event.first)
    last = min(until, rule.until) if rule.until else until
    starts = {event.first}
    day = event.first + _DAY
    while day <= last and len(starts) < rule.count:
        if rule.names(day):
            starts.add(day)
        day += _DAY
    return starts


class _Rule:
    """A recurrence rule asked day by day: slow beside a generator, and short enough to trust."""

    def __init__(self, parts: dict[str, str], first: date) -> None:
        self.first = first
        self.freq = parts["FREQ"]
        if self.freq not in ("DAILY", "WEEKLY", "MONTHLY", "YEARLY"):
            raise ValueError(f"the frequency {self.freq} is not supported")
        self.interval = int(parts.get("INTERVAL", "1"))
        self.count = int(parts.get("COUNT", str(2**31)))
        if self.interval < 1 or self.count < 1:
            raise ValueError("INTERVAL and COUNT must be at least 1")
        self.until = _stamp(parts["UNTIL"]).date() if "UNTIL" in parts else None
        self.week_start = _WEEKDAYS.index(parts.get("WKST", "MO"))
        self.months = _numbers(parts.get("BYMONTH"))
        self.days = _numbers(parts.get("BYMONTHDAY"))
        self.weekdays = [_nth_weekday(text) for text in parts.get("BYDAY", "").split(",") if text]
        self._fill_in()

    def _fill_in(self) -> None:
        """What the rule leaves open follows from the first date."""
        if self.freq == "WEEKLY" and not self.weekdays:
            self.weekdays = [(0, self.first.weekday())]
        if self.freq in ("MONTHLY", "YEARLY") and not self.weekdays and not self.days:
            self.days = {self.first.day}
            if self.freq == "YEARLY" and not self.months:
                self.months = {self.first.month}

    def names(self, day: date) -> bool:
        """Tell whether the rule names this date."""
        return (
            self._periods(day) % self.interval == 0
            and (not self.months or day.month in self.months)
            and (not self.days or day.day in self.days or day.day - _month_length(day) - 1 in self.days)
            and (not self.weekdays or any(self._is_nth(day, n, weekday) for n, weekday in self.weekdays))
        )

    def _periods(self, day: date) -> int:
        match self.freq:
            case "DAILY":
                return (day - self.first).days
            case "WEEKLY":
                return (self._week(day) - self._week(self.first)).days // 7
            case "MONTHLY":
                return (day.year - self.first.year) * 12 + day.month - self.first.month
            case _:
                return day.year - self.first.year

    def _week(self, day: date) -> date:
        return day - (day.weekday() - self.week_start) % 7 * _DAY

    def _is_nth(self, day: date, n: int, weekday: int) -> bool:
        if day.weekday() != weekday:
            return False
        if n == 0 or self.freq in ("DAILY", "WEEKLY"):
            return True
        if self.freq == "YEARLY" and not self.months:
            position, length = day.timetuple().tm_yday, date(day.year, 12, 31).timetuple().tm_yday
        else:
            position, length = day.day, _month_length(day)
        return n == (position - 1) // 7 + 1 if n > 0 else -n == (length - position) // 7 + 1


def _month_length(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def _numbers(text: str | None) -> set[int]:
    return {int(number) for number in text.split(",")} if text else set()


def _nth_weekday(text: str) -> tuple[int, int]:
    match = _BYDAY.fullmatch(text)
    if match is None:
        raise ValueError(f"BYDAY={text[:40]} is not a weekday")
    return int(match[1] or 0), _WEEKDAYS.index(match[2])
