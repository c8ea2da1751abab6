"""From the bytes of one file to the jobs it defines, or to all its mistakes.

A file stands or falls as a whole: a mistake in one job says that somebody is not done with it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from everytick.domain.config import NOT_OBEYED, Level, Overrides, not_obeyed, overrides
from everytick.domain.contradictions import surprises
from everytick.domain.job import Job, TaskDefinition, define_job, define_task
from everytick.domain.names import did_you_mean
from everytick.domain.values import value
from everytick.errors import EverytickError, InvalidSchedule, MissingExtra, shown
from everytick.schedules.combine import in_zone
from everytick.schedules.timezones import zone
from everytick.sources import yaml_models as models
from everytick.sources.yaml_calendars import Beside
from everytick.sources.yaml_reader import Mistake, Position, Several, Step, YamlNode, read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


FILE = "file"
"""The owner of jobs that files define."""

_TARGETS = ("call", "command", "http")
_IDLE = "has nothing to do: give it a call, a command or an http"
_NOTHING = Overrides(Level.APPLICATION)
_SHAPES = {
    "model_type": "must be a table of keys and values",
    "dict_type": "must be a table of keys and values",
    "list_type": "must be a list",
}


@value
class FileJob:
    """One job of a file: its definition, whether the file suspends it, and its line and column."""

    job: Job
    suspended: bool
    file: str
    place: Position


@value
class JobFile:
    """The content of one file: its jobs, or its mistakes and no jobs. Warnings do not invalidate it.

    `beside` are files that it names and that were read with it.
    """

    file: str
    jobs: tuple[FileJob, ...]
    mistakes: tuple[Mistake, ...] = ()
    warnings: tuple[Mistake, ...] = ()
    beside: tuple[Path, ...] = ()


def read_jobs(raw: bytes, file: str, *, owner: str = FILE) -> JobFile:
    """Return the jobs of a file, or all mistakes in it. It raises nothing."""
    document = read_yaml(raw, file)
    if document.root is None:
        return JobFile(file, (), document.mistakes)
    reader = _Reader(document.root, file, owner)
    file_jobs = reader.read()
    # Of two mistakes at one place, the first is the more precise.
    mistakes = {(mistake.line, mistake.column): mistake for mistake in reversed((*document.mistakes, *reader.mistakes))}
    told = tuple(mistakes[place] for place in sorted(mistakes))
    return JobFile(file, () if told else tuple(file_jobs), told, tuple(reader.warnings), tuple(reader.beside.files))


class _Reader:
    """Reads the jobs of one document and collects the mistakes."""

    def __init__(self, root: YamlNode, file: str, owner: str) -> None:
        self._root, self._file, self._owner = root, file, owner
        self.beside = Beside(file)
        self.mistakes: list[Mistake] = []
        self.warnings: list[Mistake] = []

    def read(self) -> list[FileJob]:
        """Return the valid jobs. The others are among the mistakes."""
        try:
            whole: Any = models.FileModel.model_validate(self._root.data, context=self.beside)
        except ValidationError as error:
            self._note_all(error)
            return self._made(*self._the_good_parts(error))
        return self._made(whole.jobs, whole.defaults)

    def _the_good_parts(self, error: ValidationError) -> tuple[Mapping[str, BaseModel], BaseModel | None]:
        """Return the jobs of valid shape. They may have other mistakes, which are told together with those of shape."""
        bad = {complaint["loc"][:2] for complaint in error.errors()}
        data = self._root.data
        if any(path[:1] == ("defaults",) or path in ((), ("jobs",)) for path in bad):
            # There are no jobs, or the defaults that they inherit are invalid.
            return {}, None
        jobs = {
            name: models.JobModel.model_validate(written, context=self.beside)
            for name, written in data["jobs"].items()
            if ("jobs", name) not in bad
        }
        return jobs, models.Defaults.model_validate(data.get("defaults") or {}, context=self.beside)

    def _made(self, jobs: Mapping[str, BaseModel], defaults: BaseModel | None) -> list[FileJob]:
        application = self._defaults(defaults)
        return [found for name, model in jobs.items() if (found := self._job(name, model, application))]

    def _defaults(self, model: BaseModel | None) -> Overrides:
        if model is None:
            return _NOTHING
        self._refuse_two_words(("defaults",), model)
        return overrides(Level.APPLICATION, models.said_by(model, Level.APPLICATION))

    def _job(self, name: str, model: Any, application: Overrides) -> FileJob | None:
        path = ("jobs", name)
        before = len(self.mistakes)
        self._refuse_two_words(path, model)
        tasks = tuple(filter(None, self._tasks(name, model)))
        if len(self.mistakes) > before:
            return None
        try:
            job = define_job(
                name,
                model.schedule,
                policies=models.said_by(model, Level.JOB),
                tasks=tasks,
                application=application,
                owner=self._owner,
                in_zone=lambda schedule, zone_name: in_zone(schedule, zone(zone_name)),
            )
        except InvalidSchedule as error:
            self._note((*path, "schedule"), models.sentence(error))
            return None
        except EverytickError as error:
            self._note(path, models.sentence(error), key=True)
            return None
        place = self._root.place_of(path, key=True)
        if any(task.target.startswith('{"http":') for task in job.tasks) and find_spec("httpx2") is None:
            text = f"job '{shown(name)}': {MissingExtra('an http task', 'http')}"
            self.warnings.append(Mistake(self._file, *place, text, is_warning=True))
        for surprise in surprises(job.settings):
            self.warnings.append(Mistake(self._file, *place, f"job '{shown(name)}': {surprise}", is_warning=True))
        return FileJob(job, bool(model.suspended), self._file, place)

    def _tasks(self, name: str, model: Any) -> Iterator[TaskDefinition | None]:
        """Give the tasks of a job: those it lists, or its own target as one task with the name of the job."""
        path = ("jobs", name)
        own = [key for key in _TARGETS if getattr(model, key) is not None]
        if model.tasks and own:
            self._note((*path, own[0]), f"a job with tasks does nothing itself: make this {own[0]} a task", key=True)
        elif model.tasks:
            for position, task in enumerate(model.tasks):
                target = self._target((*path, "tasks", position), task)
                if target is not None:
                    yield self._task(name, task.name, target, (*path, "tasks", position), task)
        elif not own and not model.env and not model.cwd:
            self._note(path, f"{_what(path)} {_IDLE}", key=True)
        else:
            target = self._target(path, model)
            if target is not None:
                yield self._task(name, name, target, path, None)

    def _task(self, job: str, name: str, target: str, path: Sequence[Step], model: Any) -> TaskDefinition | None:
        after, said = ((), {}) if model is None else (model.after, models.said_by(model, Level.TASK))
        try:
            return define_task(job, name, target=target, after=after, policies=said)
        except EverytickError as error:
            self._note(path, models.sentence(error))
            return None

    def _target(self, path: Sequence[Step], model: Any) -> str | None:
        """Return the text of the one target. None or several are a mistake."""
        own = [key for key in _TARGETS if getattr(model, key) is not None]
        if len(own) != 1:
            both = f"has {' and '.join(own)}: give one of them"
            self._note(path, f"{_what(path)} {both if own else _IDLE}", key=True)
            return None
        beside = [key for key in ("env", "cwd") if getattr(model, key) is not None]
        if own != ["command"]:
            for key in beside:
                self._note((*path, key), f"{key} belongs to a command, and this is a {own[0]}", key=True)
            return None if beside else str(getattr(model, own[0]))
        try:
            return models.command_of(model.command, model.env, model.cwd)
        except Several as several:
            for inside, said in several.found:
                self._note((*path, *inside), said)
        except ValueError as error:
            self._note((*path, "command"), str(error))
        return None

    def _refuse_two_words(self, path: Sequence[Step], model: BaseModel) -> None:
        """Note a mistake if an alias is set beside its policy: it is unclear which one counts."""
        for alias, policies in models.ALIASES.items():
            for policy in policies:
                if alias in model.model_fields_set and policy in model.model_fields_set:
                    self._note((*path, alias), f"{alias} is another word for {policy}: give one of them", key=True)

    def _note_all(self, error: ValidationError) -> None:
        for complaint in error.errors():
            path, kind = complaint["loc"], complaint["type"]
            cause = complaint.get("ctx", {}).get("error")
            if isinstance(cause, Several):
                for inside, said in cause.found:
                    self._note((*path, *inside), said)
            elif kind == "extra_forbidden":
                self._note(path, self._unknown(path, complaint["input"]), key=True)
            elif kind == "missing":
                example = "version: 1" if path == ("version",) else f"{path[-1]}:"
                self._note(path[:-1], f"{_what(path[:-1])} has no {path[-1]}: add `{example}`", key=True)
            elif path and path[-1] == "[key]":
                self._note(path[:-1], str(cause or complaint["msg"]), key=True)
            else:
                shape = _SHAPES.get(kind)
                self._note(path, f"{_what(path)} {shape}" if shape else str(cause or complaint["msg"]))

    def _unknown(self, path: Sequence[Step], written: object) -> str:
        key, known = str(path[-1]), list(_model_at(path[:-1]).model_fields)
        if key in NOT_OBEYED and len(path) > 1:
            return f"{_what(path[:-1])}: {models.sentence(not_obeyed(key, written))}"
        near = did_you_mean(key, known) or f"; it may have {', '.join(known)}"
        return f"{_what(path[:-1])}: unknown key '{shown(key, 60)}'{near}"

    def _note(self, path: Sequence[Step], said: str, *, key: bool = False) -> None:
        place = self._root.place_of(path, key=key)
        self.mistakes.append(Mistake(self._file, place.line, place.column, said))


def _model_at(path: Sequence[Step]) -> type[BaseModel]:
    match list(path):
        case []:
            return models.FileModel
        case ["defaults"]:
            return models.Defaults
        case ["jobs", _]:
            return models.JobModel
    return models.TaskModel


def _what(path: Sequence[Step]) -> str:
    """Return the path of a value in words."""
    match list(path):
        case []:
            return "the file"
        case ["jobs", str(name)]:
            return f"job '{shown(name, 60)}'"
        case ["jobs", str(name), "tasks", int(position)]:
            return f"task {position + 1} of job '{shown(name, 60)}'"
    return f"{path[-1]}"
