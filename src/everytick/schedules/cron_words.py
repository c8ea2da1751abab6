"""Cron expressions in plain English, put together from their text, so that every dialect reads as written."""

from collections.abc import Callable

from everytick.schedules.cron_fields import MACROS

_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "",
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
_MOST_TIMES_LISTED = 6
"""Up to six times of day are listed one by one; more are described by their fields."""


def cron_words(expression: str, dialect: str, day_match: str) -> str:
    """Say a cron expression in one line: when in the day, on which days, in which months."""
    texts = MACROS.get(expression, expression).split(" ")
    second, year = "0", "*"
    if dialect == "quartz":
        second, *texts = texts
        year = texts.pop() if len(texts) == 6 else "*"
    texts = ["*" if text in ("?", "*/1") else text for text in texts]
    minute, hour, day, month, weekday = texts
    parts = [_time(second, minute, hour), _date(day, weekday, day_match, quartz=dialect == "quartz")]
    if month != "*":
        parts.append(f"in {_listed(month, _month, 'months')}")
    if year != "*":
        parts.append(f"in {_listed(year, str, 'years')}")
    return " ".join(filter(None, parts))


def field_words(expression: str, dialect: str) -> list[tuple[str, str, str]]:
    """Return each field of an expression: its name, its text, and what it says on its own."""
    texts = MACROS.get(expression, expression).split(" ")
    is_quartz = dialect == "quartz"
    names = ("second", *_FIELDS, "year") if is_quartz else _FIELDS
    return [
        (name, text, _field_words(name, text, 1 if is_quartz else 0)) for name, text in zip(names, texts, strict=False)
    ]


_FIELDS = ("minute", "hour", "day of month", "month", "weekday")


def _field_words(name: str, text: str, base: int) -> str:
    unit = "day" if name == "day of month" else name
    if text == "?":
        return "left to the other field"
    if text in ("*", "*/1"):
        return "any day of the week" if name == "weekday" else f"every {unit}"
    if name == "weekday":
        return _listed(text, lambda day: _weekday(day, base), "days")
    if name == "day of month":
        return _days(text).removesuffix(" of the month")
    if name == "month":
        return _listed(text, _month, "months")
    if name == "hour":
        return _listed(text, lambda hour: f"{int(hour):02}" if hour.isdigit() else hour, "hours")
    return _listed(text, str, f"{unit}s")


def _time(second: str, minute: str, hour: str) -> str:
    times = _clock_times(second, minute, hour)
    if times:
        return f"at {_and(times)}"
    seconds = "" if second == "0" else _seconds(second)
    if hour == "*":
        return _joined(seconds, _minutes(minute))
    if minute == "0" and _step(hour):
        return _joined(seconds, _paced(hour, 24, "hour", "midnight"))
    if minute.startswith("H") and hour.isdigit():
        return _joined(seconds, f"at a minute after {int(hour):02}:00 that the job's id chooses")
    return _joined(seconds, f"{_minutes(minute)}, {_hours(hour)}")


def _clock_times(second: str, minute: str, hour: str) -> list[str]:
    fields = [text.split(",") for text in (hour, minute, second)]
    if not all(part.isdigit() for parts in fields for part in parts):
        return []
    hours, minutes, seconds = (sorted({int(part) for part in parts}) for parts in fields)
    if len(hours) * len(minutes) * len(seconds) > _MOST_TIMES_LISTED:
        return []
    tail = "" if second == "0" else ":{:02}"
    return [f"{h:02}:{m:02}" + tail.format(s) for h in hours for m in minutes for s in seconds]


def _minutes(minute: str) -> str:
    if minute == "*":
        return "every minute"
    if _step(minute):
        return _paced(minute, 60, "minute", "each full hour")
    if minute == "0":
        return "every hour"
    return f"at minute {_listed(minute, str, 'minutes')} of every hour"


def _hours(hour: str) -> str:
    if _step(hour):
        return f"in every {_ordinal(_step(hour))} hour" + _counted_from(hour, 24, "midnight")
    low, dash, high = hour.partition("-")
    if dash and low.isdigit() and high.isdigit():
        return f"between {int(low):02}:00 and {int(high):02}:59"
    return f"in hour {_listed(hour, str, 'hours')}"


def _seconds(second: str) -> str:
    if second == "*":
        return "every second"
    if _step(second):
        return _paced(second, 60, "second", "each full minute")
    return f"at second {_listed(second, str, 'seconds')}"


def _paced(text: str, whole: int, unit: str, start: str) -> str:
    """A step in words; one that does not divide the whole begins anew at every start, so it is not even."""
    return f"every {_step(text)} {unit}{'s' * (_step(text) != '1')}" + _counted_from(text, whole, start)


def _counted_from(text: str, whole: int, start: str) -> str:
    return f", counted from {start}" if whole % int(_step(text)) else ""


def _joined(seconds: str, rest: str) -> str:
    if not seconds:
        return rest
    return seconds if rest == "every minute" and seconds.startswith("every") else f"{seconds}, {rest}"


def _date(day: str, weekday: str, day_match: str, *, quartz: bool) -> str:
    days = f"on {_days(day)}" if day != "*" else ""
    base = 1 if quartz else 0
    weekdays = f"on {_listed(weekday, lambda text: _weekday(text, base), 'days')}" if weekday != "*" else ""
    if not (days and weekdays):
        return days or weekdays
    either = day_match == "or" and not day.startswith("*") and not weekday.startswith("*")
    return f"{days} or {weekdays}" if either else f"{days} if it is also {weekdays}"


def _days(day: str) -> str:
    if _step(day):
        return f"every {_ordinal(_step(day))} day of the month"
    plain = [part for part in day.split(",") if not any(c in part for c in "LW")]
    special = [_special_day(part) for part in day.split(",") if any(c in part for c in "LW")]
    named = [f"day {_listed(','.join(plain), str, 'days')} of the month"] if plain else []
    return _and(named + special)


def _special_day(part: str) -> str:
    if part == "L":
        return "the last day of the month"
    if part == "LW":
        return "the last weekday of the month"
    if part.startswith("L-"):
        return f"the day {part[2:]} before the last of the month"
    return f"the weekday nearest day {part[:-1]} of the month"


def _weekday(text: str, base: int) -> str:
    if text == "L":
        return "Saturday"
    if "#" in text:
        name, which = text.split("#")
        return f"the {_ORDINALS[int(which)]} {_weekday(name, base)} of the month"
    if text.endswith("L"):
        return f"the last {_weekday(text[:-1], base)} of the month"
    if text.isdigit():
        return _WEEKDAYS[int(text) - base]
    return next((name for name in _WEEKDAYS if name.lower().startswith(text.lower())), text)


def _month(text: str) -> str:
    if text.isdigit():
        return _MONTHS[int(text)]
    return next((name for name in _MONTHS if name.lower().startswith(text.lower()) and name), text)


def _listed(text: str, name: Callable[[str], str], unit: str) -> str:
    """A comma list in words, each number or name said by `name`."""
    if _step(text):
        return f"every {_ordinal(_step(text))} of the {unit}"
    return _and([_part(part, name) for part in text.split(",")])


def _part(part: str, name: Callable[[str], str]) -> str:
    if part.startswith("H"):
        return _hash_words(part)
    span, _, step = part.partition("/")
    low, dash, high = span.partition("-")
    if not dash:
        return name(low) + (f" and every {_ordinal(step)} after it" if step else "")
    return f"{name(low)} through {name(high)}" + (f", every {_ordinal(step)} of them" if step else "")


def _hash_words(part: str) -> str:
    inside = part[part.find("(") + 1 : part.find(")")].replace("-", " to ") if "(" in part else ""
    step = part.partition("/")[2]
    words = "one chosen by the job" + (f" from {inside}" if inside else "")
    return words + (f" and every {_ordinal(step)} after it" if step else "")


def _step(text: str) -> str:
    return text[2:].lstrip("0") if text.startswith("*/") else ""


def _ordinal(number: str) -> str:
    n = int(number)
    if n == 1:
        return "one"
    ending = "th" if 10 < n % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
