"""Cron by brute force: a grammar read literally, and two plain ways to list the instants.

`walk` looks at every UTC minute in turn and asks whether it is named. `by_dates` starts from
matching wall times and asks when the wall shows them. They share the reading of fields and
nothing else, and a test holds them equal.
"""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cache
from hashlib import sha1

from tests.oracle.zones import MINUTE, SECOND, gap_end, jump_within, offset, passes, wall

MONTHS = {name: n for n, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), start=1)}
SUNDAY_FIRST = "sun mon tue wed thu fri sat".split()
MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
DEFAULTS = {"posix": ("skip", "both"), "vixie": ("fire_after", "first"), "quartz": ("fire_after", "first")}


class Refused(Exception):
    """The text is not in the grammar."""


def need(condition: object) -> None:
    """Refuse unless the condition holds."""
    if not condition:
        raise Refused


@dataclass(frozen=True)
class Field:
    """A field of a dialect: its range, what `*` spans, and the names it knows."""

    name: str
    low: int
    high: int
    names: tuple[tuple[str, int], ...] = ()

    @property
    def everything(self) -> range:
        """What `*` means; weekday 7 is only another spelling of 0."""
        return range(self.low, 7 if (self.name, self.low) == ("weekday", 0) else self.high + 1)

    def number(self, text: str) -> int:
        """Return the value of plain ASCII digits or a name."""
        named = dict(self.names).get(text.lower()) if text.isascii() else None
        if named is not None:
            return named
        need(re.fullmatch("[0-9]{1,50}", text))
        need(self.low <= int(text) <= self.high)
        return int(text)

    def step(self, text: str) -> int:
        """Return the value of a step: at least one, at most the largest value of the field, or its 230 years."""
        need(re.fullmatch("[0-9]{1,50}", text))
        need(1 <= int(text) <= (230 if self.name == "year" else self.high))
        return int(text)

    def span(self, text: str) -> range:
        """Return the values of `n-m`, where n is not above m."""
        first, dash, last = text.partition("-")
        need(dash)
        low, high = self.number(first), self.number(last)
        need(low <= high)
        return range(low, high + 1)


_MONTH_NAMES = tuple(MONTHS.items())
_DAY_NAMES = tuple((name, n) for n, name in enumerate(SUNDAY_FIRST))
_QUARTZ_DAYS = tuple((name, n) for n, name in enumerate(SUNDAY_FIRST, start=1))
_CLOCK = (Field("minute", 0, 59), Field("hour", 0, 23))
_DAY = Field("day", 1, 31)
GRAMMAR = {
    "posix": (*_CLOCK, _DAY, Field("month", 1, 12), Field("weekday", 0, 6)),
    "vixie": (*_CLOCK, _DAY, Field("month", 1, 12, _MONTH_NAMES), Field("weekday", 0, 7, _DAY_NAMES)),
    "quartz": (
        Field("second", 0, 59),
        *_CLOCK,
        _DAY,
        Field("month", 1, 12, _MONTH_NAMES),
        Field("weekday", 1, 7, _QUARTZ_DAYS),
        Field("year", 1970, 2199),
    ),
}


def hashed(job_id: str, name: str, size: int) -> int:
    """Return the job's own number for a field: SHA-1 of `<job id>:<field name>`, its first 8 bytes, modulo the size."""
    return int.from_bytes(sha1(f"{job_id}:{name}".encode()).digest()[:8], "big") % size


def _hash_values(field: Field, text: str, job_id: str | None) -> range:
    parts = re.fullmatch(r"H(?:\(([^()]*)\))?(?:/([^/]*))?", text)
    need(parts)
    assert parts is not None
    whole = field.span(parts[1]) if parts[1] is not None else field.everything
    step = field.step(parts[2]) if parts[2] is not None else None
    assert job_id is not None, "a hashed field has no values before it knows its job"
    # A step longer than its range leaves one value, which must still lie in the range.
    first = whole[0] + hashed(job_id, field.name, min(step or len(whole), len(whole)))
    return range(first, whole[-1] + 1, step) if step else range(first, first + 1)


def _item(field: Field, text: str, dialect: str, job_id: str | None) -> range:
    if dialect == "vixie" and text.startswith("H"):
        return _hash_values(field, text, job_id)
    body, slash, stride = text.partition("/")
    need(not slash or dialect != "posix")
    if "-" in body:
        return field.span(body)[:: field.step(stride) if slash else 1]
    need(not slash or dialect == "quartz")
    first = field.number(body)
    return range(first, field.high + 1, field.step(stride)) if slash else range(first, first + 1)


@cache
def values(field: Field, text: str, dialect: str, job_id: str | None = None) -> frozenset[int]:
    """Return what a field of plain values names; weekday 7 comes back as 0 where 0 is Sunday."""
    if text == "*":
        return frozenset(field.everything)
    if text.startswith("*/") and dialect != "posix":
        return frozenset(field.everything[:: field.step(text[2:])])
    found = {value for item in text.split(",") for value in _item(field, item, dialect, job_id)}
    return frozenset(value % 7 for value in found) if (field.name, field.low) == ("weekday", 0) else frozenset(found)


@dataclass(frozen=True)
class Rule:
    """A cron expression that was understood."""

    texts: dict[str, str]
    dialect: str
    gap: str
    fold: str
    day_match: str = "or"
    job_id: str | None = None

    def __post_init__(self) -> None:
        for name in self.texts:
            if not (self.dialect == "quartz" and name in ("day", "weekday")):
                self.named(name)
        if self.dialect == "quartz":
            need((self.texts["day"] == "?") != (self.texts["weekday"] == "?"))
            self._matches_quartz_day(date(2024, 2, 29))

    def named(self, name: str) -> frozenset[int]:
        """Return the values of one plain field."""
        field = next(field for field in GRAMMAR[self.dialect] if field.name == name)
        return values(field, self.texts[name], self.dialect, self.job_id)

    @property
    def unit(self) -> timedelta:
        """The length of what the expression counts in."""
        return SECOND if self.dialect == "quartz" else MINUTE

    @property
    def wildcard(self) -> bool:
        """Whether the schedule follows elapsed time: its minute or hour begins with `*`."""
        return self.texts["minute"].startswith("*") or self.texts["hour"].startswith("*")

    def clock(self) -> list[time]:
        """Return the times of day that match, in order."""
        seconds = self.named("second") if self.dialect == "quartz" else {0}
        return sorted(time(h, m, s) for h in self.named("hour") for m in self.named("minute") for s in seconds)

    def matches_date(self, day: date) -> bool:
        """Say whether some time of this date can match."""
        if day.month not in self.named("month"):
            return False
        if self.dialect == "quartz":
            in_year = "year" not in self.texts or day.year in self.named("year")
            return in_year and self._matches_quartz_day(day)
        by_day = day.day in self.named("day")
        by_weekday = day.isoweekday() % 7 in self.named("weekday")
        both_restricted = not self.texts["day"].startswith("*") and not self.texts["weekday"].startswith("*")
        if both_restricted and self.day_match == "or":
            return by_day or by_weekday
        return by_day and by_weekday

    def _matches_quartz_day(self, day: date) -> bool:
        if self.texts["day"] == "?":
            return matches_quartz_weekday(self.texts["weekday"], day)
        return matches_quartz_day(self.texts["day"], day)

    def matches(self, shown: datetime) -> bool:
        """Say whether this wall time matches every field."""
        return shown.time() in set(self.clock()) and self.matches_date(shown.date())


def last_day(day: date) -> int:
    """Return the length of the date's month."""
    return calendar.monthrange(day.year, day.month)[1]


def nearest_weekday(day: date) -> date:
    """Return the date itself on Monday to Friday, else the nearest such date of the same month."""
    choices = [day.replace(day=n) for n in range(1, last_day(day) + 1)]
    return min((d for d in choices if d.isoweekday() <= 5), key=lambda d: (abs(d - day), d))


def _parts(text: str) -> list[str]:
    parts = text.split(",")
    need(not any(part.startswith("*") for part in parts))
    return parts


def matches_quartz_day(text: str, day: date) -> bool:
    """Say whether the date matches a quartz day field; in a list, one of its parts."""
    if "," in text:
        # A wrong part is refused, also after one that matches.
        return True in [matches_quartz_day(part, day) for part in _parts(text)]
    end = last_day(day)
    if text == "L":
        return day.day == end
    if text == "LW":
        return day == max(day.replace(day=n) for n in range(1, end + 1) if day.replace(day=n).isoweekday() <= 5)
    if text.startswith("L-"):
        need(re.fullmatch("[0-9]{1,50}", text[2:]) and 0 <= int(text[2:]) <= 30)
        return day.day == end - int(text[2:])
    if text.endswith("W"):
        wanted = _DAY.number(text[:-1])
        return wanted <= end and day == nearest_weekday(day.replace(day=wanted))
    return day.day in values(_DAY, text, "quartz")


def matches_quartz_weekday(text: str, day: date) -> bool:
    """Say whether the date matches a quartz weekday field, where 1 is Sunday; in a list, one of its parts."""
    if "," in text:
        # A wrong part is refused, also after one that matches.
        return True in [matches_quartz_weekday(part, day) for part in _parts(text)]
    field = GRAMMAR["quartz"][5]
    number = day.isoweekday() % 7 + 1
    if text == "L":
        return number == 7
    if text.endswith("L"):
        return number == field.number(text[:-1]) and day.day + 7 > last_day(day)
    if "#" in text:
        wanted, _, which = text.partition("#")
        need(re.fullmatch("0{0,50}[1-5]", which))
        return number == field.number(wanted) and (day.day - 1) // 7 + 1 == int(which)
    return number in values(field, text, "quartz")


def read(
    text: str,
    dialect: str = "vixie",
    *,
    gap: str | None = None,
    fold: str | None = None,
    day_match: str = "or",
    job_id: str | None = None,
) -> Rule:
    """Return the rule, or raise `Refused` if the text is not in the dialect's grammar."""
    default_gap, default_fold = DEFAULTS[dialect]
    need(not re.search(r"[^\x20-\x7e\t]", text))
    text = text.strip(" \t")
    if dialect == "vixie":
        text = MACROS.get(text, text)
    parts = re.split(r"[ \t]+", text)
    names = [field.name for field in GRAMMAR[dialect]]
    need(len(parts) in ({6, 7} if dialect == "quartz" else {5}))
    texts = dict(zip(names, parts, strict=False))
    return Rule(texts, dialect, gap or default_gap, fold or default_fold, day_match, job_id)


def accepts(text: str, dialect: str) -> bool:
    """Say whether the text is in the grammar."""
    try:
        read(text, dialect, job_id="job_any")
    except Refused:
        return False
    return True


def _whole_units(after: datetime, through: datetime, zone: tzinfo, unit: timedelta) -> Iterator[datetime]:
    """Yield each instant of `(after, through]` at which the wall shows a whole minute or second."""
    minute = after.replace(second=0, microsecond=0)
    while minute <= through:
        seconds: range = range(60)
        if unit == MINUTE and not any(offset(at, zone) % MINUTE for at in (minute, minute + MINUTE)):
            seconds = range(1)
        for second in seconds:
            at = minute + second * SECOND
            if after < at <= through and (unit == SECOND or wall(at, zone).second == 0):
                yield at
        minute += MINUTE


def walk(rule: Rule, zone: tzinfo, after: datetime, through: datetime) -> list[datetime]:
    """Return the instants in `(after, through]` by asking every single minute (second) of it."""
    clock = set(rule.clock())
    return [at for at in _whole_units(after, through, zone, rule.unit) if _names(rule, clock, zone, at)]


def _names(rule: Rule, clock: set[time], zone: tzinfo, at: datetime) -> bool:
    shown = wall(at, zone)
    if shown.time() in clock and rule.matches_date(shown.date()) and _pass_counts(rule, passes(shown, zone), at):
        return True
    return rule.gap == "fire_after" and not rule.wildcard and _stands_in_for_a_gap(rule, clock, zone, at)


def _pass_counts(rule: Rule, seen: tuple[datetime, ...], at: datetime) -> bool:
    if rule.wildcard or rule.fold == "both":
        return True
    return at == (seen[0] if rule.fold == "first" else seen[-1])


def _stands_in_for_a_gap(rule: Rule, clock: set[time], zone: tzinfo, at: datetime) -> bool:
    jump = jump_within(at - rule.unit, at, zone)
    if jump is None or offset(jump, zone) <= offset(jump - SECOND, zone):
        return False
    missing = jump.replace(tzinfo=None) + offset(jump - SECOND, zone)
    until = jump.replace(tzinfo=None) + offset(jump, zone)
    while missing < until:
        if missing.time() in clock and rule.matches_date(missing.date()) and not passes(missing, zone):
            return True
        missing += SECOND if rule.unit == SECOND or missing.second else MINUTE
    return False


def by_dates(rule: Rule, zone: tzinfo, after: datetime, through: datetime) -> list[datetime]:
    """Return the instants in `(after, through]` by placing every matching wall time of its dates."""
    found: set[datetime] = set()
    clock = rule.clock()
    day = after.astimezone(UTC).date() - timedelta(days=3)
    while day <= through.astimezone(UTC).date() + timedelta(days=3):
        if rule.matches_date(day):
            for at in clock:
                found |= _placed(rule, zone, datetime.combine(day, at))
        day += timedelta(days=1)
    return sorted(at for at in found if after < at <= through)


def _placed(rule: Rule, zone: tzinfo, shown: datetime) -> set[datetime]:
    seen = passes(shown, zone)
    if not seen:
        return {gap_end(shown, zone, rule.unit)} if rule.gap == "fire_after" and not rule.wildcard else set()
    return {at for at in seen if _pass_counts(rule, seen, at)}


def next_after(rule: Rule, zone: tzinfo, at: datetime, days: int) -> datetime | None:
    """Return the first instant later than `at` within so many days, searched week by week."""
    for week in range(0, days, 7):
        found = by_dates(rule, zone, at + timedelta(days=week), at + timedelta(days=week + 7))
        if found:
            return found[0]
    return None


def last_at(rule: Rule, zone: tzinfo, at: datetime, days: int) -> datetime | None:
    """Return the last instant not later than `at` within so many days, searched week by week."""
    for week in range(0, days, 7):
        found = by_dates(rule, zone, at - timedelta(days=week + 7), at - timedelta(days=week))
        if found:
            return found[-1]
    return None
