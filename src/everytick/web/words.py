"""What pages say: times in the viewer's zone, lengths, numbers and sentences. Nothing here reads a clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from everytick.domain.values import value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, tzinfo

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SMALL = "no one two three four five six seven eight nine ten eleven twelve".split()
_SECOND, _MINUTE, _HOUR, _DAY = (timedelta(seconds=n) for n in (1, 60, 3600, 86400))
_WEEK = 7 * _DAY
LATE_AFTER = _MINUTE
"""A run that begins a minute after its instant, or later, is said to be late."""


@value(frozen=True)
class Viewer:
    """The person who looks: in which time zone and theme, and the store's time when the page was made."""

    zone: str
    info: tzinfo
    now: datetime
    theme: str = ""

    def local(self, moment: datetime) -> datetime:
        """Return the moment on the viewer's clock."""
        return moment.astimezone(self.info)

    def clock(self, moment: datetime, *, seconds: bool = False) -> str:
        """Return the time of day: `14:07`. An hour that the clock repeats has the zone's letters."""
        return _clock(self.local(moment), seconds=seconds)

    def planned_clock(self, moment: datetime) -> str:
        """Return the time of day of an instant, with seconds where it has some: `14:10`, `14:10:30`."""
        return self.clock(moment, seconds=moment.second > 0)

    def day(self, moment: datetime, *, year: bool | None = None) -> str:
        """Return the day: `Sat 24 Oct`, with the year where it is another one."""
        return day_of(self.local(moment).date(), self.local(self.now).year if year is None else None, year)

    def when(self, moment: datetime, *, seconds: bool = False) -> str:
        """Return the moment as short as it is clear: `14:07`, `Sat 02:30`, `24 Oct 02:30`, `24 Oct 2025`."""
        local, today = self.local(moment), self.local(self.now)
        text = _clock(local, seconds=seconds)
        apart = abs((local.date() - today.date()).days)
        if apart == 0:
            return text
        if apart < 7:
            return f"{WEEKDAYS[local.weekday()]} {text}"
        if local.year == today.year:
            return f"{local.day} {MONTHS[local.month - 1]} {text}"
        return f"{local.day} {MONTHS[local.month - 1]} {local.year}"

    def planned(self, moment: datetime) -> str:
        """Return when an instant comes: as `when`, and today with seconds where it has some: two may share a minute."""
        is_today = self.local(moment).date() == self.local(self.now).date()
        return self.when(moment, seconds=is_today and moment.second > 0)

    def stretch(self, begin: datetime, end: datetime) -> str:
        """Return from when to when: `08:00 to 12:00`, `Thu 02:30 to Fri 02:30`. Of two days, today has its name too."""
        days = {self.local(begin).date(), self.local(end).date()}
        return " to ".join(self._named(moment) if len(days) > 1 else self.when(moment) for moment in (begin, end))

    def _named(self, moment: datetime) -> str:
        local, text = self.local(moment), self.when(moment)
        is_today = local.date() == self.local(self.now).date()
        return f"{WEEKDAYS[local.weekday()]} {text}" if is_today else text

    def day_or_clock(self, moment: datetime) -> str:
        """Return the moment where there is little room: `14:07` today, else only its day, as `Sat` or `24 Oct`."""
        is_today = self.local(moment).date() == self.local(self.now).date()
        text = self.when(moment)
        return text if is_today else text.removesuffix(f" {self.clock(moment)}")

    def full(self, moment: datetime) -> str:
        """Return the moment with day, seconds and the zone's letters: `Fri 23 Oct 2026, 02:30:00 CEST`."""
        local = self.local(moment)
        return f"{day_of(local.date(), None, True)}, {local:%H:%M:%S %Z}"

    def ago(self, moment: datetime) -> str:
        """Return how far the moment is from now: `11 h ago`, `in 42 s`, `now`; beyond 24 hours its day."""
        apart = self.now - moment
        if abs(apart) >= _DAY:
            return self.when(moment)
        if abs(apart) < _SECOND:
            return "now"
        rough = _rough(abs(apart))
        return f"{rough} ago" if apart > timedelta(0) else f"in {rough}"

    def time(self, moment: datetime, text: str | None = None, *, seconds: bool = False) -> Markup:
        """Return the moment as an element: its UTC is machine-readable, and shown beside the pointer."""
        shown = self.when(moment, seconds=seconds) if text is None else text
        said = utc_text(moment)
        # No `Markup.format`: it takes ten times as long, and a page has a hundred of these.
        stamp = f"{said[:10]}T{said[11:]}Z"
        return Markup(f'<time datetime="{stamp}" title="{said} UTC">{escape(shown)}</time>')  # noqa: S704, all is escaped


def utc_text(moment: datetime) -> str:
    """Return the moment in UTC to the second: `2026-10-23 12:07:18`."""
    return moment.astimezone(UTC).isoformat(" ", "seconds")[:19]


def day_of(day: date, this_year: int | None = None, with_year: bool | None = None) -> str:
    """Return a day: `Sat 24 Oct`, with the year if it is asked for or is not this one."""
    shown = with_year if with_year is not None else day.year != this_year
    text = f"{WEEKDAYS[day.weekday()]} {day.day} {MONTHS[day.month - 1]}"
    return f"{text} {day.year}" if shown else text


def _clock(local: datetime, *, seconds: bool) -> str:
    """Return the time of day of a clock that shows this."""
    text = f"{local.hour:02}:{local.minute:02}:{local.second:02}" if seconds else f"{local.hour:02}:{local.minute:02}"
    # UTC repeats no hour: most stores and many readers have it, and the question takes as long as all the rest.
    return f"{text} {local:%Z}" if local.tzinfo is not UTC and _is_repeated(local) else text


def _is_repeated(local: datetime) -> bool:
    """Whether the clock shows this time twice on this day."""
    first, second = local.replace(fold=0).utcoffset(), local.replace(fold=1).utcoffset()
    return first is not None and second is not None and first > second


def length(of: timedelta) -> str:
    """Return a length as people say it: `40 ms`, `42 s`, `11 min 40 s`, `1 h 04 min`, `3 d 4 h`."""
    if of < timedelta(0):
        return f"−{length(-of)}"
    if of < _SECOND:
        return f"{of // timedelta(milliseconds=1)} ms"
    if of < timedelta(seconds=9.95):
        return f"{of / _SECOND:.1f}".rstrip("0").rstrip(".") + " s"
    seconds = round(of / _SECOND)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 1800 and seconds % 60:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 1440:
        return f"{minutes // 60} h {minutes % 60:02d} min" if minutes % 60 else f"{minutes // 60} h"
    days, hours = divmod(round(minutes / 60), 24)
    return f"{days} d {hours} h" if hours and days < 10 else f"{days} d"


def _rough(of: timedelta) -> str:
    """Return a length in its largest unit alone: `11 h`, `3 min`, `42 s`."""
    if of < _MINUTE:
        return f"{of // _SECOND} s"
    if of < _HOUR:
        return f"{of // _MINUTE} min"
    if of < _DAY:
        return f"{of // _HOUR} h"
    return f"{of // _DAY} d"


def number(of: float) -> str:
    """Return a number with thousands apart: `46,120`."""
    return f"{of:,}"


def short_number(of: float) -> str:
    """Return a number in four characters or so: `46,120`, `120k`, `2.5 M`."""
    if of < 100_000:
        return number(round(of))
    return f"{of / 1e3:.0f}k" if of < 999_500 else f"{of / 1e6:.1f}".removesuffix(".0") + " M"


def rate(a_hour: float) -> str:
    """Return how often something comes: `1,180/h`, `47k/h`, `3/d`."""
    if a_hour >= 10_000:
        return f"{a_hour / 1e3:.0f}k/h"
    if a_hour >= 1:
        return f"{number(round(a_hour))}/h"
    a_day = round(a_hour * 24)
    return f"{a_day}/d" if a_day else "–"


def plural(of: str) -> str:
    """Return the plural of one of our nouns: jobs, occurrences, retries."""
    return f"{of[:-1]}ies" if of.endswith("y") and of[-2:-1] not in "aeiou" else f"{of}s"


def count(of: int, noun: str, many: str = "") -> str:
    """Return so many of something: `1 job`, `214 jobs`."""
    return f"{number(of)} {noun if of == 1 else many or plural(noun)}"


def spelled(of: int, noun: str, many: str = "") -> str:
    """Return so many of something as a sentence has it: `three jobs`, `14 jobs`, `no job`."""
    return f"{spelled_number(of)} {noun if of in (0, 1) else many or plural(noun)}"


def spelled_number(of: int) -> str:
    """Return a number as a sentence has it: `three`, `14`, `no`."""
    return _SMALL[of] if of < len(_SMALL) else number(of)


def sentence(text: str) -> str:
    """Return the text with a capital letter, ended by a full stop. An address at its begin stays as it is written."""
    ended = text if text.endswith((".", "?", "!", "…")) else f"{text}."
    return ended if _WRITTEN.match(ended) else ended[:1].upper() + ended[1:]


_WRITTEN = re.compile(r"[\w.+-]*(?:://|[/_]\w|\.\w)")
"""A word that is an address, a path or a name of code: `postgresql://db`, `jobs/a.yaml`, `on_store_outage`."""


def listed(items: Sequence[str], most: int = 0) -> str:
    """Return the items as a sentence has them: `a, b and c`; beyond `most` of them, `a, b and 7 more`."""
    if most and len(items) > most:
        return f"{', '.join(items[:most])} and {number(len(items) - most)} more"
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def cut(text: str, most: int = 160) -> str:
    """Return the first line of a text, at most so long."""
    lines = text.strip().splitlines()
    line = lines[0] if lines else ""
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def without_zone(zone: str, schedule: str) -> str:
    """Return the words of a schedule without its zone, if that is the reader's: `every hour, Europe/Berlin time`."""
    return schedule.replace(f", {zone} time", "", 1)


def usually(p50: timedelta | None, p95: timedelta | None = None) -> str:
    """Return how long something takes: `usually 34 min, rarely over 41 min`; nothing where that is not known."""
    if p50 is None:
        return ""
    if p95 is None or length(p95) == length(p50):
        return f"usually {length(p50)}"
    return f"usually {length(p50)}, rarely over {length(p95)}"


_PROBLEMS = {
    401: ("Please sign in.", "Then come back to this page."),
    403: ("You may not do this.", "An admin can give you the role for it."),
    404: (
        "Nothing is here.",
        "It may have been removed or renamed: the list of jobs and the history show what there is.",
    ),
    405: ("This address does not take that.", "Use the links and buttons of the pages."),
    409: ("It has changed meanwhile.", "Look at it as it is now, then decide again."),
    412: ("It has changed meanwhile.", "Look at both versions, then send yours again."),
    413: ("That is too much at once.", "Send less of it."),
    422: ("That cannot be read.", "Go back, mend what is named below, and send it again."),
    429: ("Too many requests.", "Wait a moment, then go on."),
    500: ("Something of ours is broken.", "The log says more. Nothing was changed by halves."),
    503: ("The store does not answer.", "Nodes go on with what they hold. Try again in some seconds."),
}


def problem_said(status: int) -> str:
    """Return the sentence that stands above an error."""
    return _PROBLEMS.get(status, ("This does not work.", ""))[0]


def problem_todo(status: int) -> str:
    """Return what to do about an error."""
    return _PROBLEMS.get(status, ("", ""))[1]
