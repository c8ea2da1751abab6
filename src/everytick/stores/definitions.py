"""Definitions as the text that stores keep: JSON that reads back to an equal Job, on any node.

A schedule is stored as its text, beside the dates of every calendar that it names. A schedule without a text is
refused when the job is stored, not when a node first reads it.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from everytick.domain.config import SCHEDULES, Level, Overrides, Settings, nothing, overrides
from everytick.domain.job import Job, TaskDefinition, restored_job
from everytick.domain.parameters import Parameters
from everytick.domain.policy_checks import as_data
from everytick.domain.schedule import Schedule
from everytick.domain.templates import FromTemplates
from everytick.errors import InvalidSchedule, shown
from everytick.schedules.codec import schedule
from everytick.schedules.combine import Combinable, calendars_of, in_zone, parts_of
from everytick.schedules.timezones import zone

if TYPE_CHECKING:
    from everytick.schedules.calendars import Calendar

FORMAT = 1
"""The version of the text's form. It goes up with a change that older code cannot read."""

# A schedule may name a calendar, and a payload may be large and is seldom another job's too.
_UNSHARED = (*SCHEDULES, "payload")
_NONE: Mapping[str, "Calendar"] = {}


def write_definition(job: Job) -> str:
    """Return the definition as JSON text without its id, version and times; equal definitions give equal text."""
    refuse_unwritable(job)
    named = {calendar.name: calendar for rule in _schedules(job) for calendar in calendars_of(rule)}
    data = {
        "format": FORMAT,
        "name": job.name,
        "schedule": str(job.schedule),
        "calendars": [named[name].to_json() for name in sorted(named)],
        "application": job.application.as_data(),
        "policies": job.overrides.as_data(),
        "owner": job.owner,
        "code": job.code,
        "reports": job.reports,
        "tasks": [
            {
                "name": task.name,
                "target": task.target,
                "after": list(task.after),
                "policies": task.overrides.as_data(),
                **({} if task.parameters is None else {"parameters": dict(task.parameters)}),
            }
            for task in job.tasks
        ],
    }
    if job.templates is not None:
        data["templates"] = _templates_data(job.templates)
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _templates_data(given: FromTemplates) -> dict[str, object]:
    """Return what the job has from templates: for people, since the definition is whole without the templates."""
    return {"names": list(given.names), "policies": given.overrides.as_data(), "parts": dict(given.parts)}


def effective_config(job: Job) -> str:
    """Return every policy in force and its origin, as JSON. Jobs with equal settings share one text."""
    try:
        return _effective(job.settings)
    except TypeError:  # a user's own schedule or value cannot be hashed
        return _effective.__wrapped__(job.settings)


@lru_cache(maxsize=512)
def _effective(settings: Settings) -> str:
    effective = {
        key: {"value": as_data(setting.value), "origin": str(setting.origin)}
        for key, setting in settings.effective().items()
    }
    return json.dumps(effective, sort_keys=True)


def refuse_unwritable(job: Job) -> None:
    """Raise InvalidSchedule unless every schedule of the job reads back equal from its text."""
    for part in (part for rule in _schedules(job) for part in parts_of(rule)):
        if not isinstance(part, Combinable) and not _reads_back(part):
            reason = (
                f"of job '{shown(job.name)}' is a {type(part).__name__}, which has no text form and cannot be stored: "
                "let its str() be a word, a colon and the rest, let two of the same text be equal, "
                "and call schedule_kind(word, read) before"
            )
            raise InvalidSchedule(str(part), "schedule", reason)


def _schedules(job: Job) -> Iterator[Schedule]:
    yield from filter(None, (job.schedule, job.settings.stop_schedule, job.settings.restart_schedule))


def _reads_back(part: Schedule) -> bool:
    try:
        return bool(schedule(str(part)) == part)
    except InvalidSchedule:
        return False


def read_definition(
    text: str, *, id: str, version: int, created_at: datetime | None = None, updated_at: datetime | None = None
) -> Job:
    """Return the definition that `write_definition` wrote."""
    data: dict[str, Any] = json.loads(text)
    calendars = _read_calendars(data["calendars"]) if data["calendars"] else {}
    return restored_job(
        id=id,
        name=data["name"],
        schedule=schedule(data["schedule"], calendars=calendars) if calendars else _schedule(data["schedule"]),
        tasks=[_task(task) for task in data["tasks"]],
        overrides=_overrides(Level.JOB, data["policies"], calendars),
        application=_overrides(Level.APPLICATION, data["application"], calendars),
        version=version,
        owner=data["owner"],
        in_zone=lambda rule, name: in_zone(rule, zone(name)),
        created_at=created_at,
        updated_at=updated_at,
        reports=data["reports"],
        code=data["code"],
        templates=_templates(data["templates"], calendars) if "templates" in data else None,
    )


def _templates(data: Mapping[str, Any], calendars: Mapping[str, "Calendar"]) -> FromTemplates:
    read = _overrides(Level.TEMPLATE, data["policies"], calendars)
    return FromTemplates(tuple(data["names"]), read, tuple(sorted(data["parts"].items())))


def _read_calendars(stored: list[dict[str, Any]]) -> dict[str, "Calendar"]:
    # Loaded only here: few definitions have calendars.
    from everytick.schedules.calendars import Calendar

    return {data["name"]: Calendar.from_json(data) for data in stored}


def _task(data: Mapping[str, Any]) -> TaskDefinition:
    taken = data.get("parameters")
    parameters = None if taken is None else _parameters(tuple(sorted(taken.items())))
    policies = _overrides(Level.TASK, data["policies"])
    return TaskDefinition(data["name"], data["target"], tuple(data["after"]), policies, parameters)


@lru_cache(maxsize=1024)
def _parameters(taken: Parameters) -> Parameters:
    """Return these parameters. Tasks with the same ones share one value."""
    return taken


@lru_cache(maxsize=4096)
def _schedule(text: str) -> Schedule:
    """Return the schedule of a text that names no calendar. Jobs with the same text share one value."""
    return schedule(text)


@lru_cache(maxsize=1024)
def _shared(level: Level, text: str) -> Overrides:
    """Return the policies in this JSON text. Jobs with the same text share one value."""
    return overrides(level, json.loads(text))


def _overrides(level: Level, data: Mapping[str, Any], calendars: Mapping[str, "Calendar"] = _NONE) -> Overrides:
    if not any(key in data for key in _UNSHARED):
        return _shared(level, json.dumps(data)) if data else nothing(level)
    read = {
        key: schedule(value, calendars=calendars) if key in SCHEDULES and value is not None else value
        for key, value in data.items()
    }
    return overrides(level, read)
