"""Definitions that come over HTTP: which targets they may name, and which parts of a document are left to files."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from everytick.app import Everytick
from everytick.domain.config import NOTICES
from everytick.domain.job import Job
from everytick.domain.policy_checks import as_data
from everytick.errors import shown
from everytick.runners.targets import CallTarget, CommandTarget, EngineTarget, HttpTarget, Target, read_target
from everytick.sources.job_files import FileJob, JobFile, read_jobs
from everytick.sources.yaml_reader import Mistake
from everytick.web.problems import Problem

API = "api"
_MISTAKES_SHOWN = 50
_REQUEST = "request"
"""What stands for the name of a file in a document that has none."""


def new_job(tick: Everytick, name: str, definition: Mapping[str, Any]) -> Job:
    """Return the job that a request defines. Raise 422 with every mistake."""
    [found] = jobs_of(tick, [read_document(json.dumps({"version": 1, "jobs": {name: definition}}), API)]).values()
    return found.job


def jobs_of(tick: Everytick, files: Iterable[JobFile]) -> dict[str, FileJob]:
    """Return the jobs of these files, each with targets that the service allows. Raise 422 with every mistake."""
    read = list(files)
    if mistakes := [_told(mistake) for file in read for mistake in file.mistakes]:
        first = mistakes[0]
        detail = f"{first['where']}: {first['why']}"
        raise Problem(422, "invalid_definition", detail, mistakes=mistakes[:_MISTAKES_SHOWN])
    jobs = {file_job.job.name: file_job for file in read for file_job in file.jobs}
    refuse_foreign_targets(tick, [file_job.job for file_job in jobs.values()])
    return jobs


def _told(mistake: Mistake) -> dict[str, str]:
    file = "" if mistake.file == _REQUEST else f"{mistake.file}:"
    return {"where": f"{file}{mistake.line}:{mistake.column}", "why": mistake.message}


def read_document(text: str, owner: str) -> JobFile:
    """Return what a document says. One that names files beside itself is refused: those would be files of this host."""
    _refuse_files(text)
    return read_jobs(text.encode(), _REQUEST, owner=owner)


def _refuse_files(text: str) -> None:
    from everytick.sources.yaml_reader import read_yaml

    root = read_yaml(text.encode(), _REQUEST).root
    data = root.data if root is not None and isinstance(root.data, dict) else {}
    calendars = data.get("calendars")
    named = calendars.values() if isinstance(calendars, dict) else ()
    if "use" in data or any(isinstance(calendar, dict) and "ics" in calendar for calendar in named):
        text = "a document over HTTP names no files: leave out `use` and the `ics` of calendars, or write a job file"
        raise Problem(422, "names_files", text)


def refuse_foreign_targets(tick: Everytick, jobs: Iterable[Job]) -> None:
    """Return if every target is a call that the service allows, or of a kind that is switched on. Else raise 422."""
    for job in jobs:
        for task in job.tasks:
            runner = task.settings.runner
            if (why := _why_foreign(tick, read_target(task.target, job.name), runner)) is not None:
                detail = f"job '{job.name}', task '{task.name}': {why}"
                raise Problem(422, _CODE, detail, job=job.name, task=task.name)
        refuse_foreign_receivers(tick, {key: as_data(getattr(job.settings, key)) for key in NOTICES})


_CODE = "target_not_registered"
_SWITCHED_OFF = (
    "{} is not taken over HTTP: apply its job file where the store is, "
    'or switch it on by name in the service, api_targets = ["{}"]'
)


def _why_foreign(tick: Everytick, target: Target, runner: str | None) -> str | None:
    """Return why a task over HTTP may not have this target; None if it may."""
    match target:
        case CallTarget(path=path):
            return _why_not_allowed(tick, path)
        case EngineTarget(target=path):
            assert runner is not None, "a target without an engine is refused before"
            if runner not in tick.api_targets:
                return _SWITCHED_OFF.format(f"a target of {runner}", runner)
            if getattr(tick.settings, runner) is None:
                return f"this service knows no {runner}: set {runner}, or EVERYTICK_{runner.upper()}"
            return None if runner == "celery" else _why_not_allowed(tick, path)
        case CommandTarget():
            return None if "command" in tick.api_targets else _SWITCHED_OFF.format("a command", "command")
        case HttpTarget():
            return None if "http" in tick.api_targets else _SWITCHED_OFF.format("a request", "http")
    return "only the application's own code names it: write call: and a function"


def _why_not_allowed(tick: Everytick, path: str) -> str | None:
    module = path.partition(":")[0]
    if any(module == allowed or module.startswith(f"{allowed}.") for allowed in tick.settings.allow_calls):
        return None
    return f"'{shown(path)}' is in no package that the setting allow_calls of this service names"


def refuse_foreign_receivers(tick: Everytick, policies: Mapping[str, Any]) -> None:
    """Return if the receivers of notices among these policies are switched on. Raise 422 for one that is not."""
    for key in NOTICES:
        for kind in _kinds(policies.get(key)):
            needed = _RECEIVERS.get(kind)
            if needed is not None and needed not in tick.api_targets:
                raise Problem(422, _CODE, f"{key}: {_SWITCHED_OFF.format('such a receiver', needed)}")


_RECEIVERS = {"command": "command", "http": "http", "webhook": "http", "ping": "http"}


def _kinds(given: Any) -> Iterator[str]:
    """Give every key of receivers, at any depth: the kinds are among them."""
    if isinstance(given, Mapping):
        yield from given
        for value in given.values():
            yield from _kinds(value)
    elif isinstance(given, (list, tuple)):
        for value in given:
            yield from _kinds(value)
