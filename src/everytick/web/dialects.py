"""One cron expression in other dialects: how to write it there, or what it would mean there."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from everytick.domain.values import value
from everytick.errors import EverytickError
from everytick.schedules.cron import Cron, cron
from everytick.schedules.cron_fields import MACROS, Masks, read

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

_INSTANTS_COMPARED = 40
_NAMES = "Sun Mon Tue Wed Thu Fri Sat".split()
_EVERY_WEEKDAY, _EVERY_MONTH, _EVERY_DAY = 0x7F, 0x1FFE, 0xFFFFFFFE
_COMPARED_SPAN = timedelta(days=366 * 8)
"""Eight years: two leap days are among them."""


@value(frozen=True)
class Elsewhere:
    """What an expression is in another dialect: a sentence, and how to write the same there if there is a way."""

    dialect: str
    said: str
    text: str = ""


def elsewhere(rule: Cron, now: datetime) -> list[Elsewhere]:
    """Return what the expression means in the dialects that it is not written in, and for systemd."""
    found = [_read_as(rule, dialect, now) for dialect in ("vixie", "posix", "quartz") if dialect != rule.dialect]
    masks = read(rule.expression, rule.dialect, rule.day_match)
    text = systemd_text(masks)
    zone = f" {rule.tz}" if rule.tz is not None else ""
    if text is None:
        return [*found, Elsewhere("systemd", "has no single line for this: write two timers, or one for each rule")]
    return [*found, Elsewhere("systemd", "OnCalendar, for systemd.timer", f"{text}{zone}")]


def _read_as(rule: Cron, dialect: str, now: datetime) -> Elsewhere:
    name = {"vixie": "cron"}.get(dialect, dialect)
    there = _same_in(rule, dialect, now)
    try:
        other = cron(rule.expression, tz=rule.tz, dialect=dialect)
    except EverytickError as error:
        reason = getattr(error, "reason", str(error))
        field = getattr(error, "field", "")
        return Elsewhere(name, f"refused: {field + ' ' if field not in ('', 'format') else ''}{reason}", there)
    assert isinstance(other, Cron), "without a window it is plain"
    if _next(other, now) != _next(rule, now):
        return Elsewhere(name, f"means something else: {other.describe()}", there)
    differing = [difference for difference in (_gap_words(rule, other), _fold_words(rule, other)) if difference]
    said = "the same days and times" if not differing else f"the same days; {' and '.join(differing)}"
    return Elsewhere(name, said)


def _gap_words(rule: Cron, other: Cron) -> str:
    if rule.dst_gap == other.dst_gap or rule._wall_times.wildcard:
        return ""
    return "a time that the clock skips is left out" if other.dst_gap == "skip" else "one that is skipped runs after it"


def _fold_words(rule: Cron, other: Cron) -> str:
    if rule.dst_fold == other.dst_fold or rule._wall_times.wildcard:
        return ""
    return "one that comes twice runs twice" if other.dst_fold == "both" else "one that comes twice runs once"


def _next(rule: Cron, now: datetime) -> Sequence[datetime]:
    return rule.instants(now, now + _COMPARED_SPAN, _INSTANTS_COMPARED)


def _same_in(rule: Cron, dialect: str, now: datetime) -> str:
    """Return how to write the same in this dialect; nothing if there is no way that was checked."""
    texts = MACROS.get(rule.expression, rule.expression).split(" ")
    masks = read(rule.expression, rule.dialect, rule.day_match)
    try:
        written = _as_quartz(texts, masks) if dialect == "quartz" else _as_five(texts, masks, dialect)
        if written is None:
            return ""
        other = cron(written, tz=rule.tz, dialect=dialect, dst_gap=rule.dst_gap, dst_fold=rule.dst_fold)
    except EverytickError:
        return ""
    is_same = isinstance(other, Cron) and _next(other, now) == _next(rule, now)
    return written if is_same and written != rule.expression else ""


def _as_quartz(texts: list[str], masks: Masks) -> str | None:
    if len(texts) != 5 or masks.either:
        return None
    minute, hour, day, month, _ = texts
    if masks.weekdays == _EVERY_WEEKDAY:
        return f"0 {minute} {hour} {'*' if day == '*' else day} {month} ?"
    if masks.days & _EVERY_DAY != _EVERY_DAY:
        return None
    return f"0 {minute} {hour} ? {month} {_weekday_list(masks.weekdays, '-').upper()}"


def _as_five(texts: list[str], masks: Masks, dialect: str) -> str | None:
    """From quartz to five fields, or to posix, which has numbers alone."""
    if masks.specials or masks.years is not None or masks.seconds != 1:
        return None
    fields = texts[1:6] if len(texts) > 5 else texts
    minute, hour, day, month, _ = ("*" if text == "?" else text for text in fields)
    weekday = "*" if masks.weekdays == _EVERY_WEEKDAY else ",".join(map(str, _bits(masks.weekdays)))
    if dialect == "posix":
        minute, hour, day, month = (
            _numbers(text, mask)
            for text, mask in (
                (minute, masks.minutes),
                (hour, masks.hours),
                (day, masks.days),
                (month, masks.months),
            )
        )
    return f"{minute} {hour} {day} {month} {weekday}"


def _numbers(text: str, mask: int) -> str:
    return text if text == "*" else ",".join(map(str, _bits(mask)))


def systemd_text(masks: Masks) -> str | None:
    """Return the OnCalendar expression that means the same on the wall clock, None if there is no single one."""
    if masks.either or masks.specials or masks.years is not None:
        return None
    weekdays = "" if masks.weekdays == _EVERY_WEEKDAY else f"{_weekday_list(masks.weekdays, '..')} "
    month = "*" if masks.months == _EVERY_MONTH else _spans(masks.months, 12)
    day = "*" if masks.days & _EVERY_DAY == _EVERY_DAY else _spans(masks.days, 31)
    hours = "*" if masks.hours == (1 << 24) - 1 else _spans(masks.hours, 23)
    minutes = "*" if masks.minutes == (1 << 60) - 1 else _spans(masks.minutes, 59)
    seconds = "*" if masks.seconds == (1 << 60) - 1 else _spans(masks.seconds, 59)
    return f"{weekdays}*-{month}-{day} {hours}:{minutes}:{seconds}"


def _spans(mask: int, last: int) -> str:
    """Return the numbers of a mask as systemd writes them: `09..17`, `00/15`, `01,15`."""
    numbers = list(_bits(mask))
    if len(numbers) > 2:
        step = numbers[1] - numbers[0]
        if all(later - earlier == step for earlier, later in pairwise(numbers)):
            if step == 1:
                return f"{numbers[0]:02}..{numbers[-1]:02}"
            if numbers[-1] + step > last:
                return f"{numbers[0]:02}/{step}"
    return ",".join(f"{number:02}" for number in numbers)


def _weekday_list(mask: int, dash: str) -> str:
    """Return the weekdays of a mask by name, from Monday on: `Mon-Fri`, `Mon,Wed`."""
    numbers = [day for day in (1, 2, 3, 4, 5, 6, 0) if mask >> day & 1]
    places = [(1, 2, 3, 4, 5, 6, 0).index(day) for day in numbers]
    is_span = len(numbers) > 2 and places[-1] - places[0] == len(places) - 1
    if is_span and not (dash == "-" and numbers[-1] == 0):
        return f"{_NAMES[numbers[0]]}{dash}{_NAMES[numbers[-1]]}"
    return ",".join(_NAMES[day] for day in numbers)


def _bits(mask: int) -> list[int]:
    return [number for number in range(mask.bit_length()) if mask >> number & 1]
