"""Turns wall times, given as sets of numbers that must all match, into the text of a schedule.

systemd, Celery and APScheduler each write such rules in their own way; what is left of them once
the numbers are known is the same, and so is what our two kinds of cron can say of it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from everytick.domain.values import value
from everytick.errors import EverytickError
from everytick.schedules.codec import schedule
from everytick.schedules.combine import in_zone
from everytick.schedules.cron import Cron
from everytick.schedules.timezones import zone
from everytick.sources.importing.findings import Unsayable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

FieldNumbers = frozenset[int] | None
"""The numbers that match; None where all do."""

SECONDS = MINUTES = (0, 59)
HOURS, DAYS, MONTHS, WEEKDAYS, YEARS = (0, 23), (1, 31), (1, 12), (0, 6), (1970, 2199)

_WEEK = 7
"""Days."""

SOME_YEARS = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))
"""Long enough for every zone to change its clocks, if it does."""

_ON_THE_MINUTE = frozenset({0})
_WEEKDAYS_AND_DAYS = "seconds, years or days from the end of the month cannot stand beside weekdays and days here"


@value
class WallRule:
    """Which wall times match; Sunday is weekday 0.

    `from_end` counts days from the end of the month, the last being 1; `nth` are pairs of a
    weekday and its number in the month, the last being 0. Where either is given it stands in
    the place of `day`. `follows_clock` says that a repeated hour comes only once.
    """

    minute: FieldNumbers = None
    hour: FieldNumbers = None
    day: FieldNumbers = None
    month: FieldNumbers = None
    weekday: FieldNumbers = None
    second: FieldNumbers = _ON_THE_MINUTE
    year: FieldNumbers = None
    from_end: frozenset[int] = frozenset()
    nth: frozenset[tuple[int, int]] = frozenset()
    dst_gap: str = ""
    dst_fold: str = ""
    follows_clock: bool = False

    def texts(self, **options: str | None) -> list[str]:
        """Return the schedules that together name these times. Times that they cannot express are refused."""
        ends = "".join(f"; {key}={given}" for key, given in self._options(options).items() if given)
        return [text + ends for text in self._bodies()]

    def _options(self, options: dict[str, str | None]) -> dict[str, str | None]:
        both = self.day is not None and self.weekday is not None
        day_match = "and" if both and not self._needs_quartz else None
        last = {key: options.pop(key, None) for key in ("start", "end")}
        return {"dst_gap": self.dst_gap, "dst_fold": self.dst_fold, "day_match": day_match, **options, **last}

    @property
    def _needs_quartz(self) -> bool:
        return bool(self.second != _ON_THE_MINUTE or self.year is not None or self.from_end or self.nth)

    def _bodies(self) -> list[str]:
        if self._needs_quartz:
            return self._quartz()
        fields = [
            self._clock(self.minute, MINUTES),
            self._clock(self.hour, HOURS),
            numbers(self.day, DAYS),
            numbers(self.month, MONTHS),
            numbers(self.weekday, WEEKDAYS),
        ]
        return [" ".join(fields)]

    def _clock(self, given: FieldNumbers, span: tuple[int, int]) -> str:
        """A field of the clock; one that begins with * would fire in both passes of a repeated hour."""
        found = numbers(given, span)
        if found.startswith("*") and self.follows_clock:
            return f"{span[0]}-{span[1]}{found[1:]}"
        return found

    def _quartz(self) -> list[str]:
        clock = f"{numbers(self.second, SECONDS)} {self._clock(self.minute, MINUTES)} {self._clock(self.hour, HOURS)}"
        month = numbers(self.month, MONTHS)
        year = "" if self.year is None else f" {numbers(self.year, YEARS)}"
        return [f"quartz: {clock} {day} {month} {weekday}{year}" for day, weekday in self._quartz_days()]

    def _quartz_days(self) -> Iterable[tuple[str, str]]:
        """The fields of day and weekday, of which one decides and the other is `?`."""
        if self.nth and (self.weekday is not None or self.day is not None):
            raise Unsayable(_WEEKDAYS_AND_DAYS)
        if self.from_end or self.nth:
            return [*self._days_from_end(), *(_position(weekday, which) for weekday, which in sorted(self.nth))]
        if self.weekday is None:
            return [(numbers(self.day, DAYS), "?")]
        if self.day is not None:
            raise Unsayable(_WEEKDAYS_AND_DAYS)
        return [("?", ",".join(str(day + 1) for day in sorted(self.weekday)))]

    def _days_from_end(self) -> list[tuple[str, str]]:
        if self.day is not None:
            raise Unsayable(_WEEKDAYS_AND_DAYS)
        if self.weekday is None:
            return [("L" if position == 1 else f"L-{position - 1}", "?") for position in sorted(self.from_end)]
        if self.from_end and self.from_end != frozenset(range(1, _WEEK + 1)):
            raise Unsayable(_WEEKDAYS_AND_DAYS)
        # The last seven days hold each weekday once, and it is the month's last.
        return [_position(day, 0) for day in sorted(self.weekday)] if self.from_end else []


def _position(weekday: int, which: int) -> tuple[str, str]:
    return "?", f"{weekday + 1}#{which}" if which else f"{weekday + 1}L"


def numbers(given: FieldNumbers, span: tuple[int, int]) -> str:
    """Return a field of cron: `*`, `*/15`, `1-5`, `8-18/2` or `1,2,10-12`."""
    least, most = span
    if given is None:
        return "*"
    if not given:
        raise Unsayable("a field matches no number")
    if outside := [number for number in given if not least <= number <= most]:
        raise Unsayable(f"{outside[0]} lies outside of {least} to {most}")
    found = sorted(given)
    if found == list(range(least, most + 1)):
        return "*"
    steps = {later - earlier for earlier, later in pairwise(found)}
    if len(found) > 2 and len(steps) == 1 and (step := steps.pop()) > 1:
        whole = found[0] == least and found[-1] + step > most
        return f"*/{step}" if whole else f"{found[0]}-{found[-1]}/{step}"
    return ",".join(_ranges(found))


def _ranges(found: Collection[int]) -> Iterable[str]:
    """Give the numbers, those that follow each other as one range."""
    first = last = None
    for number in [*sorted(found), None]:
        if first is not None and last is not None and number != last + 1:
            yield str(first) if first == last else f"{first}-{last}" if last > first + 1 else f"{first},{last}"
            first = None
        first, last = number if first is None else first, number


def meets_clock_change(text: str, tz: str | None, *kinds: str) -> bool:
    """Tell whether a change of the clock does any of these to what a text names; `tz` is for one without a zone."""
    try:
        rule = schedule(text)
    except EverytickError:
        # The schedule is refused with its reason when the job is added.
        return False
    inside = rule if tz is None else in_zone(rule, zone(tz))
    return isinstance(inside, Cron) and any(change.what in kinds for change in inside.clock_changes(*SOME_YEARS))
