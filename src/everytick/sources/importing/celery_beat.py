"""Celery's `beat_schedule`, from JSON or from a Python file that is read and never run.

An entry is a task, a schedule and what the task is called with. Celery's crontab wants every
field to match, days of month and of week too.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from everytick.domain.durations import format_duration
from everytick.errors import shown
from everytick.sources.importing.celery_python import BeatSchedule, read_python
from everytick.sources.importing.findings import (
    Findings,
    UnreadableSource,
    Unsayable,
    decoded,
    refuse_template,
    seconds_of,
)
from everytick.sources.importing.json_lines import members
from everytick.sources.importing.literals import BeatEntry, LeftOut, LiteralCall, Unknown
from everytick.sources.importing.wall_rule import (
    DAYS,
    HOURS,
    MINUTES,
    MONTHS,
    WEEKDAYS,
    FieldNumbers,
    WallRule,
    meets_clock_change,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DEFAULTS: Mapping[str, object] = {"overlap": "allow", "recovery": "execute_last", "task_timeout": None}
"""Beat's policies: it sends a task whether or not the one before has ended, and once if it is late."""

_FIELDS = {
    "minute": MINUTES,
    "hour": HOURS,
    "day_of_month": DAYS,
    "month_of_year": MONTHS,
    "day_of_week": WEEKDAYS,
}
_ORDER = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTH_NAMES = ("", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DELTA = ("days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks")
_PART = re.compile(r"(?:(\*)|(\w{1,12}?)(?:-(\w{1,12}))?)(?:/(\w{1,9}))?", re.ASCII)
_PLACE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")
_KNOWN = ("task", "schedule", "args", "kwargs", "options", "relative")
_SENT = ("queue", "expires", "countdown", "serializer", "exchange", "routing_key")
_NIGHTS = (
    "Celery runs what the clock skips later by the length of the gap, and nothing in the second pass of an hour that "
    "comes twice; here it is right after the gap, and what follows elapsed time runs in both: see dst_gap and dst_fold"
)
_CONDITION = "it is known only when the file is run, so the job is suspended: take that away where it holds"
_NAMES = (
    "each was taken for its function's place, which Celery makes it unless told otherwise: "
    "give --send-with APP where tasks have names of their own"
)
_PHASE = "beat counts from its own start, and here it is from 1970 on: same period, other phase"


def read_beat(
    raw: bytes, file: str, *, send_with: str | None = None, timezone: str | None = None, taken: set[str] | None = None
) -> Findings:
    """Return the entries of a beat_schedule; with `send_with` each sends its task through that Celery application."""
    text = decoded(raw, file)
    beat = _from_json(text, file) if text.lstrip()[:1] == "{" else read_python(text, file)
    zone = timezone or beat.timezone or "UTC"
    findings = Findings(file, {"timezone": zone, **DEFAULTS}, taken)
    for place in beat.left:
        findings.leave(place.line, place.what, place.why)
    for entry in beat.entries:
        _Entry(entry, findings, send_with).read()
    if send_with is None and findings.jobs:
        findings.leave(findings.jobs[0].line, "the names of the tasks", _NAMES)
    if beat.is_local and timezone is None and beat.timezone is None:
        why = "without it and without a timezone Celery means its machine's zone, and here it is UTC: give --timezone"
        findings.leave(beat.is_local, "enable_utc = False", why)
    findings.left.sort(key=lambda left_out: left_out.line)
    return findings


class _Entry:
    """Converts one entry."""

    def __init__(self, entry: BeatEntry, found: Findings, send_with: str | None) -> None:
        self._entry, self._found, self._send_with = entry, found, send_with
        self._left: list[tuple[str, str]] = []

    def read(self) -> None:
        entry = self._entry
        try:
            parts = self._parts()
        except Unsayable as reason:
            self._found.leave(entry.line, f"entry '{entry.name}'", f"not imported: {reason}")
            return
        notes = [f"{shown(self._found.file, 200)}:{entry.line}"]
        if self._found.add(entry.name, parts, entry.line, notes=notes):
            for what, why in self._left:
                self._found.leave(entry.line, f"{what} of '{entry.name}'", why)

    def _parts(self) -> dict[str, object]:
        given = self._entry.given
        task = given.get("task")
        if not isinstance(task, str) or not task:
            raise Unsayable("it names no task")
        for key in given:
            if key not in _KNOWN:
                self._left.append((key, "beat does not know it either"))
        schedules = self._schedule(given.get("schedule"))
        work = self._sent(task) if self._send_with else self._called(task)
        return {"schedule": schedules[0] if len(schedules) == 1 else schedules, **self._state(), **work}

    def _state(self) -> dict[str, object]:
        if not self._entry.under:
            return {}
        self._left.append((f"the condition '{self._entry.under}'", _CONDITION))
        return {"suspended": True}

    # -------------------------------------------------------------------------------------------------- what to do

    def _called(self, task: str) -> dict[str, object]:
        given = self._entry.given
        if not _PLACE.fullmatch(task):
            raise Unsayable(f"'{shown(task)}' is not a module's function: give --send-with APP to send it by its name")
        if given.get("args"):
            raise Unsayable(
                "args stand in order and a payload has names: write them as kwargs, or give --send-with APP"
            )
        module, _, function = task.rpartition(".")
        parts: dict[str, object] = {"call": f"{module}:{function}"}
        if kwargs := self._table("kwargs"):
            parts["payload"] = _plain(kwargs, "kwargs")
        for key, option in self._table("options").items():
            if isinstance(option, Unknown):
                self._left.append((f"option {key}", option.why))
            elif key == "queue" and isinstance(option, str):
                parts["queue"] = option
            else:
                self._left.append((f"option {key}", "Celery's own, which a call does not have"))
        return parts

    def _sent(self, task: str) -> dict[str, object]:
        """Return the command that sends the task to the workers, as beat does."""
        given, words = self._entry.given, ["celery", "-A", str(self._send_with), "call", task]
        if args := given.get("args"):
            words += ["--args", json.dumps(_plain(args, "args"))]
        if kwargs := self._table("kwargs"):
            words += ["--kwargs", json.dumps(_plain(kwargs, "kwargs"))]
        for key, option in self._table("options").items():
            if isinstance(option, Unknown):
                self._left.append((f"option {key}", option.why))
            elif key in _SENT and isinstance(option, (str, int, float)):
                words += [f"--{key.replace('_', '-')}", str(option)]
            else:
                self._left.append((f"option {key}", "the command `celery call` does not take it"))
        refuse_template(words)
        return {"command": words}

    def _table(self, key: str) -> dict[str, Any]:
        given = self._entry.given.get(key) or {}
        if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
            raise Unsayable(f"its {key} are no table of names")
        return given

    # -------------------------------------------------------------------------------------------------------- when

    def _schedule(self, given: object) -> list[str]:
        if isinstance(given, (int, float)) and not isinstance(given, bool):
            return [self._every(seconds_of(given))]
        if not isinstance(given, LiteralCall):
            raise Unsayable("its schedule is neither a number of seconds nor a crontab, timedelta, schedule or solar")
        if given.name == "timedelta":
            return [self._every(_delta(given))]
        if given.name == "schedule":
            return [self._run_every(given)]
        if given.name == "crontab":
            return self._crontab(given)
        if given.name == "solar":
            raise Unsayable("solar: there is no schedule that follows the sun")
        raise Unsayable(f"there is no schedule '{shown(given.name)}' in Celery")

    def _every(self, length: timedelta | None, relative: bool = False) -> str:
        if length is None or length <= timedelta(0):
            raise Unsayable("its schedule has no length")
        if not (relative or self._entry.given.get("relative") is True):
            self._left.append((f"the phase of every {format_duration(length)}", _PHASE))
        return f"every {format_duration(length)}"

    def _run_every(self, call: LiteralCall) -> str:
        given = dict(zip(("run_every", "relative", "nowfun", "app"), call.args, strict=False)) | dict(call.kwargs)
        run_every = given.get("run_every")
        length = _delta(run_every) if isinstance(run_every, LiteralCall) else seconds_of(run_every)
        if length is None:
            raise Unsayable("schedule(): run_every is neither a timedelta nor a number of seconds")
        self._note_own(given)
        return self._every(length, given.get("relative") is True)

    def _crontab(self, call: LiteralCall) -> list[str]:
        given = dict(zip(_ORDER, call.args, strict=False)) | dict(call.kwargs)
        self._note_own(given)
        unknown = [key for key in given if key not in (*_FIELDS, "nowfun", "app")]
        if unknown or len(call.args) > len(_ORDER):
            raise Unsayable(f"crontab has no '{shown(next(iter(unknown), 'sixth field'))}'")
        fields = {key: _numbers(key, given.get(key, "*")) for key in _FIELDS}
        texts = WallRule(
            minute=fields["minute"],
            hour=fields["hour"],
            day=fields["day_of_month"],
            month=fields["month_of_year"],
            weekday=fields["day_of_week"],
        ).texts()
        if any(meets_clock_change(text, str(self._found.defaults["timezone"]), "moved", "doubled") for text in texts):
            self._left.append(("the nights when the clocks change", _NIGHTS))
        return texts

    def _note_own(self, given: Mapping[str, object]) -> None:
        if given.get("nowfun") is not None:
            raise Unsayable("nowfun: the time is always the store's")


def _delta(call: LiteralCall) -> timedelta:
    if call.name != "timedelta":
        raise Unsayable(f"'{shown(call.name)}' is no timedelta")
    given = dict(zip(_DELTA, call.args, strict=False)) | dict(call.kwargs)
    if any(key not in _DELTA or not isinstance(number, (int, float)) for key, number in given.items()):
        raise Unsayable("timedelta: it has other parts than numbers of days, seconds and so on")
    try:
        return timedelta(**{key: number for key, number in given.items() if isinstance(number, (int, float))})
    except (OverflowError, ValueError):
        raise Unsayable("timedelta: it is longer than can be kept") from None


def _numbers(key: str, given: object) -> FieldNumbers:
    """The numbers of one field: a number, a text or a collection of numbers."""
    least, most = _FIELDS[key]
    if isinstance(given, bool):
        raise Unsayable(f"crontab: {key} is no number")
    if isinstance(given, int):
        found = {given}
    elif isinstance(given, str):
        found = {number for part in given.split(",") for number in _expanded(key, part.strip(), least, most)}
    elif isinstance(given, (list, tuple, set, frozenset)) and all(isinstance(number, int) for number in given):
        found = set(given)
    else:
        raise Unsayable(f"crontab: {key} is neither a number nor text nor a list of numbers")
    if not found or not all(least <= number <= most for number in found):
        raise Unsayable(f"crontab: {key} '{shown(given)}' is not within {least} to {most}")
    return None if len(found) == most - least + 1 else frozenset(found)


def _expanded(key: str, part: str, least: int, most: int) -> Iterator[int]:
    """Give the numbers of one part of a list. A backwards range wraps around the end, as in Celery."""
    match = _PART.fullmatch(part)
    if match is None or (match[4] is not None and match[1] is None and match[3] is None):
        raise Unsayable(f"crontab: {key} '{shown(part)}' cannot be read")
    star, first, last, step = match.groups()
    if step is not None and (not step.isdigit() or not int(step)):
        raise Unsayable(f"crontab: {key} '{shown(part)}' has no step of 1 or more")
    if star:
        found = list(range(least, most + 1))
    else:
        begin = _number(key, first)
        end = begin if last is None else _number(key, last)
        found = list(range(begin, end + 1)) if begin <= end else [*range(begin, most + 1), *range(least, end + 1)]
    yield from found[:: int(step or 1)]


def _number(key: str, text: str) -> int:
    names = {"day_of_week": _DAY_NAMES, "month_of_year": _MONTH_NAMES}.get(key, ())
    if text.isdigit():
        return int(text)
    if text[:3].lower() in names and text[:3]:
        return names.index(text[:3].lower())
    raise Unsayable(f"crontab: {key} '{shown(text)}' is no number and no name")


def _plain(given: object, what: str) -> object:
    """Return the value if JSON can express it, else refuse it."""
    try:
        return json.loads(json.dumps(given, allow_nan=False))
    except (TypeError, ValueError):
        raise Unsayable(f"its {what} hold values that JSON has not") from None


# ---------------------------------------------------------------------------------------------------------------- JSON


def _from_json(text: str, file: str) -> BeatSchedule:
    """Read `{"beat_schedule": {…}, "timezone": …}`, or the table of entries alone."""
    try:
        whole = {member.key: member for member in members(text)}
    except ValueError as error:
        raise UnreadableSource(file, getattr(error, "lineno", 1), f"is not JSON: {shown(str(error))}") from None
    inner = whole.get("beat_schedule")
    entries = list(whole.values()) if inner is None else list(members(text, inner.start))
    beat = BeatSchedule()
    if inner is not None and (zone := whole.get("timezone")) is not None and isinstance(zone.value, str):
        beat.timezone = zone.value
    for entry in entries:
        if isinstance(entry.value, dict):
            given = {key: _call(part) if key == "schedule" else part for key, part in entry.value.items()}
            beat.entries.append(BeatEntry(entry.key, entry.line, given))
        else:
            beat.left.append(LeftOut(entry.line, f"entry '{entry.key}'", "not imported: it is no table"))
    return beat


def _call(given: object) -> object:
    """`{"crontab": {"minute": "0"}}`, or as RedBeat writes it, `{"__type__": "crontab", "minute": "0"}`."""
    if not isinstance(given, dict):
        return given
    parts = dict(given)
    if isinstance(kind := parts.pop("__type__", None), str):
        if kind == "interval":
            parts = {"run_every": parts.get("every"), "relative": parts.get("relative", False)}
            kind = "schedule"
        return LiteralCall(kind, (), tuple(parts.items()))
    if len(parts) == 1:
        [(kind, inside)] = parts.items()
        if isinstance(inside, dict):
            return LiteralCall(kind, (), tuple((key, _call(part)) for key, part in inside.items()))
    return given
