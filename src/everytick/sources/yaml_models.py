"""The shape of a file of jobs, as pydantic models: every mistake is found at once, and editors get a JSON Schema.

    version: 1
    defaults: {timezone: Europe/Berlin}
    jobs:
      nightly-backup:
        schedule: "30 2 * * 1-5"
        tasks:
          - {name: dump, command: "pg_dump app"}

The values of policies are read by the policies themselves, as from Python: a file and a program
that say the same mean the same, and are refused with the same words.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    create_model,
)

from everytick.domain.config import NOTICES, POLICIES, SCHEDULES, Level
from everytick.domain.durations import duration
from everytick.domain.names import LONGEST_NAME, checked_name
from everytick.domain.policies import LateOverlap, Overlap, Recovery, Strategy, bounded_window, timezone
from everytick.domain.policy_checks import names, switch
from everytick.domain.policy_readers import DURATION, NAMES, SCHEDULE, SWITCH, TEXT, Schema, described
from everytick.domain.templates import template_names
from everytick.errors import EverytickError, InvalidPolicies, shown
from everytick.runners.receivers import checked_receivers
from everytick.runners.targets import call_target, command_target, engine_target, read_target
from everytick.schedules.codec import schedule
from everytick.schedules.combine import any_of
from everytick.schedules.timezones import zone
from everytick.sources.target_schemas import (
    CALL,
    COMMAND,
    ENGINE_OPTIONS,
    ENGINE_TARGET,
    ENVIRONMENT,
    FOLDER,
    HTTP,
)
from everytick.sources.yaml_calendars import Beside
from everytick.sources.yaml_calendars import schema as calendar_schema
from everytick.sources.yaml_reader import Several

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from everytick.domain.schedule import Schedule
    from everytick.schedules.calendars import Calendar

JOB_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}")

_REQUEST = {"url": "https://example.org/"}
_CACHED = 1000
"""Most values that a reader of values caches."""

_SETTING = re.compile(r"(\w+)=(.*)", re.DOTALL)


def sentence(error: EverytickError, key: str = "") -> str:
    """Return the reason and the alternatives in the notation of files."""
    if not isinstance(error, InvalidPolicies):
        return f"{key}: {error}" if key else str(error)
    reason = error.reason.removeprefix("target: ")
    if reason.endswith("?)"):
        # The reason names the alternative already.
        return reason
    instead = ", or ".join(filter(None, map(_as_yaml, error.alternatives)))
    return f"{reason}; instead: {instead}" if instead else reason


def _as_yaml(alternative: str) -> str:
    """Return `overlap="skip"` as `overlap: "skip"`. What only Python can say is left out."""
    written = _SETTING.match(alternative)
    if written is None:
        return alternative
    return "" if "(" in written[2] else f"{written[1]}: {written[2].replace('None', 'null')}"


# ------------------------------------------------------------------------------------------------------- the values


def _checked(read: Callable[[Any], Any], key: str, given: Any) -> Any:
    """Read one value. A refusal is worded for files."""
    try:
        return read(given)
    except EverytickError as error:
        raise ValueError(sentence(error, key)) from None


def _by_parts(read: Callable[[Any], Any], key: str, base: Mapping[str, object], given: Any) -> Any:
    """Read a table. If it is refused, read it part by part, so that one mistake does not hide another."""
    try:
        return read(given)
    except EverytickError as error:
        whole = error
    found: list[tuple[tuple[str | int, ...], str]] = []
    for part, written in given.items() if isinstance(given, dict) else ():
        try:
            read({**base, part: written})
        except EverytickError as error:
            found.append(((part,), sentence(error, f"{key} {part}")))
    raise Several(found) if found else ValueError(sentence(whole, key))


def _policy(key: str, given: Any) -> Any:
    reader = POLICIES[key].reader
    read = _READERS.get(key) or partial(reader.read, key)
    return _checked(read, key, given) if reader.base is None else _by_parts(read, key, reader.base, given)


class _Once:
    """A reader with a cache: the files of one folder have many equal values."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self._read = read
        self._known: dict[object, Any] = {}

    def __call__(self, given: Any) -> Any:
        key = _frozen(given)
        if key in self._known:
            return self._known[key]
        found = self._read(given)
        if len(self._known) >= _CACHED:
            self._known.clear()
        self._known[key] = found
        return found


def _frozen(given: Any) -> object:
    """Return the value as a cache key: 1, 1.0 and true are equal in Python, but not the same in a file."""
    if isinstance(given, dict):
        return dict, tuple((key, _frozen(part)) for key, part in given.items())
    if isinstance(given, list):
        return list, tuple(map(_frozen, given))
    return given.__class__, given


def _schedule(calendars: Mapping[str, Calendar], given: Any) -> Schedule:
    """Return the schedule of a text, or of several together."""
    if isinstance(given, list) and given:
        parts = [schedule(text, calendars=calendars) for text in given]
        return any_of(*parts) if len(parts) > 1 else parts[0]
    return schedule(given, calendars=calendars)


def _scheduled(key: str) -> Callable[[Any, ValidationInfo], Schedule | None]:
    """Return the reader of a schedule, which knows the calendars of its file. A policy may be null."""

    def read(given: Any, info: ValidationInfo) -> Schedule | None:
        if given is None and key != "schedule":
            return None
        found: Schedule = _checked(partial(_schedule, _beside(info).calendars), key, given)
        return found

    return read


def _calendars(given: Any, info: ValidationInfo) -> None:
    """Read the calendars, before the schedules that name them."""
    _beside(info).read_calendars(given)


def _use(given: Any, info: ValidationInfo) -> None:
    """Read the files that this one uses, before its jobs name what is in them."""
    if given is not None:
        _beside(info).use_files(given)


def _template_name(given: str) -> str:
    return str(_checked(partial(checked_name, "template"), "templates", given))


def _beside(info: ValidationInfo) -> Beside:
    assert isinstance(info.context, Beside), "a file is validated with what stands beside it"
    return info.context


def _timezone(given: Any) -> object:
    if given == "local":
        reason = "timezone 'local' would be another one on every machine that reads the file"
        raise InvalidPolicies("", reason, ('timezone="Europe/Berlin"',))
    return zone(timezone(given)).name


def _receivers(key: str, given: Any) -> object:
    """Read who is told; null takes back what the defaults of the file say."""
    return None if given is None else checked_receivers(key, given)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "timezone": _timezone,
    **{key: partial(_receivers, key) for key in NOTICES},
}


def _window(given: Any) -> dict[str, object]:
    """`catchup_window`: late instants that are not older than this run. A window of 0 runs none."""
    length = duration("0s" if given == 0 and given is not False else given)
    return {"recovery": bounded_window(max_duration=length) if length else Recovery(Strategy.MARK_AS_MISSED)}


def _overlap_policy(given: Any) -> dict[str, object]:
    """`overlap_policy`: `skip` skips instants while the job is busy, late or not; `all` queues them."""
    if given == "skip":
        return {"overlap": Overlap.SKIP, "late_overlap": LateOverlap.SKIP}
    if given == "all":
        return {"overlap": Overlap.QUEUE, "late_overlap": LateOverlap.QUEUE}
    reason = f"overlap_policy '{shown(given)}' is not known"
    raise InvalidPolicies("", reason, ('overlap_policy="skip"', 'overlap_policy="all"'))


def _version(given: Any) -> int:
    if given != 1 or given is True:
        raise ValueError(f"version '{shown(given)}' is not known here: write version: 1")
    return 1


def _job_name(given: str) -> str:
    if not JOB_NAME.fullmatch(given):
        reason = f"must have 1 to {LONGEST_NAME} letters, digits, underscores or hyphens, and nothing else"
        raise ValueError(f"job name '{shown(given)}' {reason}")
    return given


def _call(given: Any) -> str:
    return call_target(given)


def _command(parts: Mapping[str, Any]) -> str:
    command = parts["command"]
    if not isinstance(command, (str, list)):
        reason = f"command '{shown(command)}' is neither shell text nor a list of arguments"
        raise InvalidPolicies("", reason, ('command=["program", "argument"]',))
    return command_target(command, env=parts.get("env"), cwd=parts.get("cwd"))


def _request(parts: Mapping[str, Any]) -> str:
    said = {key: part for key, part in parts.items() if part is not None}
    try:
        text = json.dumps({"http": said}, ensure_ascii=False, allow_nan=False, sort_keys=True)
    except ValueError:
        raise InvalidPolicies("", "http: a number without end cannot be sent as JSON") from None
    read_target(text)
    return text


def _http(given: Any) -> str:
    parts = {"url": given} if isinstance(given, str) else given
    if not isinstance(parts, dict):
        raise ValueError(f"http '{shown(given)}' must be an address or a table with its url")
    found: str = _by_parts(_request, "http", _REQUEST, parts)
    return found


def _part(key: str, given: Any) -> Any:
    """Return one part of a command as it was written, if it is valid in one."""
    if given is not None:
        _checked(_alone, key, {"command": ["true"], key: given})
    return given


_alone = _Once(_command)


def _engine_part(key: str) -> Callable[[Any], Any]:
    """Return what reads one part of a task for an engine, and refuses what could be in none."""

    def read(given: Any) -> Any:
        parts = {"target": given} if key == "target" else {"target": "any", "options": given}
        return given if given is None else _checked(lambda parts: (engine_target(**parts), given)[1], key, parts)

    return read


def engine_target_of(target: str, options: Any) -> str:
    """Return the target of a task for an engine."""
    return engine_target(target, options)


def command_of(command: Any, env: Any, cwd: Any) -> str:
    """Return the target of a command, or refuse all its mistakes."""
    if env is None and cwd is None:
        plain: str = _checked(_alone, "command", {"command": command})
        return plain
    given = {"command": command, "env": env, "cwd": cwd}
    found: str = _by_parts(_command, "command", {"command": ["true"]}, given)
    return found


# ------------------------------------------------------------------------------------------------------- the models


def _field(read: Callable[..., Any], schema: Schema) -> Any:
    return Annotated[Any, PlainValidator(read), WithJsonSchema(schema)]


def _policies(level: Level) -> dict[str, Any]:
    """The fields of the policies that one level may set."""
    return {
        key: (_field(_reader(key), described(policy.reader.schema, policy.sentence)), None)
        for key, policy in POLICIES.items()
        if level in policy.levels
    }


def _reader(key: str) -> Callable[..., Any]:
    return _scheduled(key) if key in SCHEDULES else _Once(partial(_policy, key))


def _read_by(read: Callable[[Any], Any], key: str, schema: Schema) -> Any:
    return _field(partial(_checked, read, key), schema)


SHARED_KEYS = ("templates", "calendars")
"""The keys of a file that has no jobs and is there for others to use."""

ALIASES = {"catchup_window": ("recovery",), "overlap_policy": ("overlap", "late_overlap")}
"""Other names of policies, each with the policies that it sets."""

_NAMED = (
    "The templates that it begins with; what it says itself counts more, and a later template more than an earlier."
)
_WHEN = "When: a cron expression, every 10s, R…/…, once: …, after: …; several are a list."
_USED = "Files, by their path from this one, whose calendars and templates its jobs may name."
_STRICT = ConfigDict(extra="forbid")
_ALIASES: dict[str, Any] = {
    "catchup_window": (
        _read_by(_window, "catchup_window", described(DURATION, "Another word for recovery by a window.")),
        None,
    ),
    "overlap_policy": (
        _read_by(
            _overlap_policy,
            "overlap_policy",
            {"enum": ["skip", "all"], "description": "Another word for overlap and late_overlap together."},
        ),
        None,
    ),
}
_TARGETS: dict[str, Any] = {
    "call": (_read_by(_call, "call", CALL), None),
    "command": (_field(partial(_part, "command"), COMMAND), None),
    "http": (_field(_http, HTTP), None),
    "target": (_field(_engine_part("target"), ENGINE_TARGET), None),
    "options": (_field(_engine_part("options"), ENGINE_OPTIONS), None),
    "env": (_field(partial(_part, "env"), ENVIRONMENT), None),
    "cwd": (_field(partial(_part, "cwd"), FOLDER), None),
}

Defaults: type[BaseModel] = create_model("Defaults", __config__=_STRICT, **_policies(Level.APPLICATION), **_ALIASES)
"""The defaults of all jobs of the file."""

TaskModel: type[BaseModel] = create_model(
    "Task",
    __config__=_STRICT,
    name=(_read_by(partial(checked_name, "task"), "name", described(TEXT, "The task's name, unique in its job.")), ...),
    after=(_read_by(partial(names, "after"), "after", described(NAMES, "The tasks that must succeed before.")), ()),
    **_TARGETS,
    **_policies(Level.TASK),
)
"""One task of a job."""

# The models are created at run time, so that type checkers cannot read them.
_WORK: dict[str, Any] = {
    "schedule": (_field(_scheduled("schedule"), described(SCHEDULE, _WHEN)), None),
    "tasks": (
        Annotated[list[TaskModel] | None, Field(description="In order; with after, once others ended well.")],  # type: ignore[valid-type]
        None,
    ),
}
_JOB: dict[str, Any] = {
    **_WORK,
    "template": (_read_by(template_names, "template", described(NAMES, _NAMED)), ()),
    "suspended": (
        _read_by(partial(switch, "suspended"), "suspended", described(SWITCH, "Paused by this file.")),
        None,
    ),
}
JobModel: type[BaseModel] = create_model(
    "Job", __config__=_STRICT, **_JOB, **_TARGETS, **_policies(Level.JOB), **_ALIASES
)
"""One job."""

TemplateModel: type[BaseModel] = create_model(
    "Template", __config__=_STRICT, **_WORK, **_TARGETS, **_policies(Level.JOB), **_ALIASES
)
"""One template: what a job may say. Its description is the template's own."""

_FILE: dict[str, Any] = {
    "version": (_field(_version, {"const": 1}), ...),
    # Before the jobs: fields are read in this order, and schedules refer to calendars.
    "use": (_field(_use, described(NAMES, _USED)), None),
    "calendars": (_field(_calendars, calendar_schema(TEXT)), None),
    "templates": (
        Annotated[
            dict[Annotated[str, AfterValidator(_template_name)], TemplateModel],  # type: ignore[valid-type]
            Field(description="Parts of jobs by name: a job takes them over with template."),
        ],
        {},
    ),
    "defaults": (Annotated[Defaults | None, Field(description="Policies of all jobs of this file.")], None),
    "jobs": (dict[Annotated[str, AfterValidator(_job_name)], JobModel], {}),  # type: ignore[valid-type]
}
FileModel: type[BaseModel] = create_model("JobFile", __config__=_STRICT, **_FILE)
"""One file."""


def said_by(model: BaseModel, level: Level) -> dict[str, object]:
    """Return the policies that were set, aliases replaced by their policies."""
    found = {
        key: getattr(model, key) for key in model.model_fields_set if key in POLICIES and level in POLICIES[key].levels
    }
    for alias in ALIASES:
        if alias in model.model_fields_set:
            found.update(getattr(model, alias))
    return found


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a file of jobs."""
    found: dict[str, Any] = _tidied(FileModel.model_json_schema())
    found["properties"]["jobs"]["propertyNames"] = {"pattern": f"^{JOB_NAME.pattern}$"}
    found["$defs"]["Job"]["anyOf"] = [{"required": ["schedule"]}, {"required": ["template"]}]
    found["anyOf"] = [{"required": [key]} for key in ("jobs", *SHARED_KEYS)]
    return {"title": "everytick job file", **found}


def _tidied(schema: Any) -> Any:
    """Return the schema without pydantic's titles and null defaults."""
    if isinstance(schema, list):
        return [_tidied(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _tidied(inner) for name, inner in part.items()} if key in ("properties", "$defs") else _tidied(part)
        for key, part in schema.items()
        if key != "title" and not (key == "default" and part in (None, [], {}, ()))
    }
