"""APScheduler 3: a listing of its jobs as JSON, which a script writes where the application runs.

Its job stores hold pickles, and reading a pickle runs the code in it: we never do.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from everytick.domain.durations import format_duration
from everytick.errors import EverytickError, shown
from everytick.schedules.timezones import zone
from everytick.sources.importing.findings import Findings, UnreadableSource, Unsayable, decoded, seconds_of
from everytick.sources.importing.json_lines import JsonMember, members
from everytick.sources.importing.wall_rule import (
    DAYS,
    HOURS,
    MINUTES,
    MONTHS,
    SECONDS,
    WEEKDAYS,
    YEARS,
    FieldNumbers,
    WallRule,
    meets_clock_change,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULTS: Mapping[str, object] = {"overlap": "skip", "task_timeout": None}
"""APScheduler's policies: beyond max_instances a run is skipped, and nothing is stopped."""

_FIELDS = {"year": YEARS, "month": MONTHS, "hour": HOURS, "minute": MINUTES, "second": SECONDS, "day_of_week": WEEKDAYS}
_WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_YEAR = ("", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMES = {"day_of_week": _WEEK, "month": _YEAR}
_WHICH = {"1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "5th": 5, "last": 0}
_PART = re.compile(r"(?:\*|(\w{1,9})(?:-(\w{1,9}))?)(?:/(\d{1,9}))?", re.ASCII)
_POSITION = re.compile(r"(1st|2nd|3rd|4th|5th|last) +(\w+)", re.ASCII | re.IGNORECASE)
_NIGHTS = (
    "APScheduler runs what the clock skips later by the length of the gap, and what comes twice on both passes; "
    "here it is right after the gap, and the first pass: see dst_gap and dst_fold"
)
_GRACE = timedelta(seconds=60)
_MADE_UP = re.compile(r"[0-9a-f]{32}")


def script() -> str:
    """Return the script that lists the jobs of a scheduler."""
    return files("everytick.sources.importing").joinpath("apscheduler_script.txt").read_text(encoding="utf-8")


def read_listing(raw: bytes, file: str, *, taken: set[str] | None = None) -> Findings:
    """Return the jobs of a listing."""
    text = decoded(raw, file)
    try:
        whole = {member.key: member for member in members(text)}
        jobs = list(members(text, whole["jobs"].start)) if "jobs" in whole else None
    except ValueError as error:
        raise UnreadableSource(file, getattr(error, "lineno", 1), f"is not JSON: {shown(str(error))}") from None
    if jobs is None:
        why = "is no listing of jobs: write one with the script that everytick import apscheduler --script prints"
        raise UnreadableSource(file, 1, why)
    findings = Findings(file, DEFAULTS, taken)
    for job in jobs:
        _Listed(job, findings).read()
    return findings


class _Listed:
    """Converts one job of a listing."""

    def __init__(self, member: JsonMember, found: Findings) -> None:
        self._line, self._found = member.line, found
        self._job: dict[str, Any] = member.value if isinstance(member.value, dict) else {}
        self._left: list[tuple[str, str]] = []
        self._named = self._name()

    def read(self) -> None:
        try:
            trigger = self._job.get("trigger")
            schedules = _schedules(trigger if isinstance(trigger, dict) else {})
            parts = {"schedule": schedules[0] if len(schedules) == 1 else schedules, **self._policies(), **self._work()}
        except Unsayable as reason:
            self._found.leave(self._line, f"job '{self._named}'", f"not imported: {reason}")
            return
        if any(meets_clock_change(schedule, None, "moved", "silenced") for schedule in schedules):
            self._left.append(("the nights when the clocks change", _NIGHTS))
        if self._found.add(self._named, parts, self._line, notes=[f"{shown(self._found.file, 200)}:{self._line}"]):
            for what, why in self._left:
                self._found.leave(self._line, f"{what} of '{self._named}'", why)

    def _name(self) -> str:
        """The id or, if APScheduler generated it, the name of the function."""
        id_, function = str(self._job.get("id", "job")), self._job.get("func")
        if not _MADE_UP.fullmatch(id_) or not isinstance(function, str):
            return id_
        name = function.rpartition(":")[2].replace(".", "-")
        self._left.append((f"the id {id_}", f"APScheduler made it up, so the job is called '{shown(name)}'"))
        return name

    def _work(self) -> dict[str, object]:
        job, function = self._job, self._job.get("func")
        if not isinstance(function, str):
            raise Unsayable("it calls no function of a module")
        if job.get("executor", "default") != "default":
            why = "a runner is chosen by the kind of task, or with the policy runner"
            self._left.append((f"executor {shown(job['executor'])}", why))
        payload = job.get("named")
        if not isinstance(payload, dict) or "not_json" in payload:
            raise Unsayable("some of its arguments have no name, or are not JSON: a payload has both")
        return {"call": function, **({"payload": payload} if payload else {})}

    def _policies(self) -> dict[str, object]:
        job, parts = self._job, dict[str, object]()
        if job.get("name") not in (None, self._named, str(job.get("func", "")).rpartition(":")[2]):
            parts["description"] = str(job["name"])
        if isinstance(instances := job.get("max_instances"), int) and instances > 1:
            parts["max_concurrent"] = instances
        parts |= _recovery(job.get("coalesce") is not False, job.get("misfire_grace_time"))
        if jitter := seconds_of((job.get("trigger") or {}).get("jitter")):
            parts["jitter"] = format_duration(jitter)
        if job.get("paused") is True:
            parts["suspended"] = True
        return parts


def _recovery(coalesce: bool, given: object) -> dict[str, object]:
    """Return the policies for late runs: how late one may be, and how many late ones run."""
    allowed = seconds_of(given)
    if allowed is None:
        return {"recovery": "execute_last" if coalesce else "execute_all"}
    window: dict[str, object] = {"strategy": "bounded_window", "max_duration": format_duration(allowed)}
    if coalesce:
        window["max_occurrences"] = 1
    shorter: dict[str, object] = {"grace": format_duration(max(allowed, timedelta(seconds=1)))}
    return {"recovery": window, **(shorter if allowed < _GRACE else {})}


# ------------------------------------------------------------------------------------------------------------ triggers


def _schedules(trigger: Mapping[str, Any]) -> list[str]:
    kind = trigger.get("type")
    if kind == "CronTrigger":
        return _cron(trigger)
    if kind == "IntervalTrigger":
        return [_interval(trigger)]
    if kind == "DateTrigger":
        return [f"once: {_moment(trigger, 'run_date')}"]
    if kind == "CalendarIntervalTrigger":
        return [_calendar_interval(trigger)]
    if kind == "OrTrigger" and isinstance(parts := trigger.get("triggers"), list):
        if trigger.get("jitter") or any(isinstance(part, dict) and part.get("jitter") for part in parts):
            raise Unsayable("a part of an OrTrigger has a jitter of its own")
        return [text for part in parts for text in _schedules(part if isinstance(part, dict) else {})]
    if kind == "AndTrigger":
        raise Unsayable("AndTrigger: there is no schedule of what several name together")
    raise Unsayable(f"there is no trigger '{shown(kind)}' in APScheduler 3")


def _moment(trigger: Mapping[str, Any], key: str) -> str:
    given = trigger.get(key)
    if not isinstance(given, str):
        raise Unsayable(f"its trigger has no {key}")
    return given


def _window(trigger: Mapping[str, Any]) -> dict[str, str | None]:
    return {key: trigger.get(f"{key}_date") for key in ("start", "end")}


def _zone(trigger: Mapping[str, Any]) -> str:
    try:
        return zone(trigger.get("timezone")).name
    except EverytickError as error:
        raise Unsayable(f"the time zone of its trigger is not one by name: {error}") from None


def _interval(trigger: Mapping[str, Any]) -> str:
    length = seconds_of(trigger.get("seconds"))
    if length is None:
        raise Unsayable("its interval has no length")
    end = f"; end={trigger['end_date']}" if trigger.get("end_date") else ""
    return f"every {format_duration(length)}; start={_moment(trigger, 'start_date')}{end}"


def _calendar_interval(trigger: Mapping[str, Any]) -> str:
    try:
        years, months, weeks, days = (int(number) for number in trigger["interval"])
        start, day = f"{trigger['start_date']}T{trigger['time']}", int(str(trigger["start_date"])[8:10])
    except (KeyError, TypeError, ValueError):
        raise Unsayable("its calendar interval cannot be read") from None
    if (years or months) and (weeks or days or day > 28):
        raise Unsayable("a calendar interval of months and days, or from a day that not every month has")
    period = f"P{years * 12 + months}M" if years or months else f"P{weeks * 7 + days}D"
    end = f"; end={trigger['end_date']}T23:59:59" if trigger.get("end_date") else ""
    return f"every: {period}; start={start}; tz={_zone(trigger)}{end}"


def _cron(trigger: Mapping[str, Any]) -> list[str]:
    fields = trigger.get("fields")
    if not isinstance(fields, dict) or not all(isinstance(field, str) for field in fields.values()):
        raise Unsayable("its cron trigger has no fields")
    if fields.get("week", "*") != "*":
        raise Unsayable("a week of the year cannot be said here")
    rule = _rule(fields)
    days, places = _days(fields.get("day", "*"))
    rules = [replace(rule, day=days)] if days is None or days else []
    if places:
        last = frozenset({1}) if "last" in places else frozenset[int]()
        nth = frozenset(place for place in places if not isinstance(place, str))
        rules.append(replace(rule, from_end=last, nth=nth))
    return [text for rule in rules for text in rule.texts(tz=_zone(trigger), **_window(trigger))]


def _rule(fields: Mapping[str, str]) -> WallRule:
    """Everything but the days of the month."""
    found = {key: _numbers(key, fields.get(key, "*"), span) for key, span in _FIELDS.items()}
    weekday = found["day_of_week"]
    return WallRule(
        year=found["year"],
        month=found["month"],
        hour=found["hour"],
        minute=found["minute"],
        second=found["second"],
        weekday=None if weekday is None else frozenset((day + 1) % 7 for day in weekday),
    )


def _days(text: str) -> tuple[FieldNumbers, set[tuple[int, int] | str]]:
    """The numbers of the days, and the days by their place in the month: pairs of weekday and number, or `last`."""
    numbers: set[int] | None = set()
    places: set[tuple[int, int] | str] = set()
    for part in text.split(","):
        position = _POSITION.fullmatch(part.strip())
        if part.strip().lower() == "last":
            places.add("last")
        elif position is not None:
            places.add(((_named("day_of_week", position[2]) + 1) % 7, _WHICH[position[1].lower()]))
        else:
            found = _numbers("day", part, DAYS)
            numbers = None if found is None or numbers is None else numbers | found
    return None if numbers is None else frozenset(numbers), places


def _numbers(key: str, text: str, span: tuple[int, int]) -> FieldNumbers:
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise Unsayable(f"{key} '{shown(part)}' cannot be read")
        first, last, step = match.groups()
        if first is None and step in (None, "1"):
            return None
        begin = span[0] if first is None else _named(key, first)
        end = _named(key, last) if last is not None else begin if first is not None and step is None else span[1]
        if not span[0] <= begin <= end <= span[1] or step == "0":
            raise Unsayable(f"{key} '{shown(part)}' is not within {span[0]} to {span[1]}")
        found.update(range(begin, end + 1, int(step or 1)))
    return frozenset(found)


def _named(key: str, text: str) -> int:
    if text.isdigit():
        return int(text)
    names = _NAMES.get(key, ())
    if text.lower() not in names or not text:
        raise Unsayable(f"{key} '{shown(text)}' is no number and no name")
    return names.index(text.lower())
