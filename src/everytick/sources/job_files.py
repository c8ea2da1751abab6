"""From the bytes of one file to the jobs it defines, or to all its mistakes.

A file is taken as a whole or not at all: a mistake in one job says that its author is still editing.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel, ValidationError

from everytick.domain.config import Level, Overrides, nothing, overrides
from everytick.domain.contradictions import surprises
from everytick.domain.job import Job, TaskDefinition, define_job, define_task
from everytick.domain.names import did_you_mean
from everytick.domain.templates import (
    SCHEDULE,
    TASKS,
    Combined,
    Template,
    combine,
    find_templates,
    named_tasks,
    template_key,
)
from everytick.domain.values import value
from everytick.errors import EverytickError, InvalidSchedule, MissingExtra, shown
from everytick.schedules.combine import in_zone
from everytick.schedules.templates import built_in
from everytick.schedules.timezones import zone
from everytick.sources import yaml_models as models
from everytick.sources.yaml_calendars import Beside, SharedParts, Unusable
from everytick.sources.yaml_reader import Mistake, PathStep, Position, Several, YamlNode, read_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from everytick.sources.file_texts import FileTexts


FILE = "file"
"""The owner of jobs that files define."""

_DEEPEST_USE = 20
"""How deep texts may use each other. Each level takes some 20 frames of the interpreter's stack of 1,000."""

_TARGETS = ("call", "command", "http", "target")
_PARTS = ("env", "cwd")
_Models: TypeAlias = "Mapping[str, BaseModel]"
_UNSCHEDULED = "has no schedule: add `schedule:`"
_IDLE = "has nothing to do: give it a call, a command, an http or a target"
_TWICE = "a job with tasks does nothing itself: make this {} a task"
_NOTHING = Overrides(Level.APPLICATION)
_SHAPES = {
    "model_type": "must be a table of keys and values",
    "dict_type": "must be a table of keys and values",
    "list_type": "must be a list",
}


_TABLES = ("model_type", "dict_type")
_EMPTY = "is empty: write its keys in the lines below it, further to the right"


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

    `beside` are files that it names and that were read with it; `shared` is what it offers to files that use it.
    """

    file: str
    jobs: tuple[FileJob, ...]
    mistakes: tuple[Mistake, ...] = ()
    warnings: tuple[Mistake, ...] = ()
    beside: tuple[Path, ...] = ()
    shared: SharedParts = SharedParts()


def read_jobs(
    raw: bytes, file: str, *, owner: str = FILE, users: tuple[Path, ...] = (), texts: FileTexts | None = None
) -> JobFile:
    """Return the jobs of a file, or all mistakes in it. It raises nothing.

    `users` are the files that use this one, and may not be used by it. With `texts`, the files that it names are
    looked up there, and nothing is read from the disk.
    """
    document = read_yaml(raw, file)
    if document.root is None:
        return JobFile(file, (), document.mistakes)
    share = _share((*users, Path(file).absolute())) if texts is None else _share_text((*users, Path(file)), texts)
    reader = _JobFileReader(document.root, file, owner, Beside(file, share, texts))
    file_jobs = reader.read()
    # Of two mistakes at one place, the first is the more precise.
    mistakes = {(mistake.line, mistake.column): mistake for mistake in reversed((*document.mistakes, *reader.mistakes))}
    told = tuple(mistakes[place] for place in sorted(mistakes))
    beside = tuple(reader.beside.files)
    shared = SharedParts() if told else reader.shared
    return JobFile(file, () if told else tuple(file_jobs), told, tuple(reader.warnings), beside, shared)


def _share(users: tuple[Path, ...]) -> Callable[[Path], SharedParts]:
    """Return what reads a file that the last of these files uses."""

    def read(path: Path) -> SharedParts:
        if path.resolve() in {user.resolve() for user in users}:
            raise Unusable("it uses this file itself, directly or through others")
        # Imported here: a folder of files imports this module.
        from everytick.sources.files import read_bytes

        try:
            raw = read_bytes(path)
        except OSError as error:
            raise Unusable(f"cannot be read: {error.strerror or error}") from None
        return _good(raw if isinstance(raw, JobFile) else _read_once(raw, str(path), users))

    return read


def _share_text(users: tuple[Path, ...], texts: FileTexts) -> Callable[[Path], SharedParts]:
    """Return what reads a file that the last of these files uses, from the texts that came with it."""

    def read(path: Path) -> SharedParts:
        place, text = texts.place(path), texts.text(path)
        if place in map(texts.place, users):
            raise Unusable("it uses this file itself, directly or through others")
        if text is None:
            raise Unusable("it did not come with this file")
        if len(users) > _DEEPEST_USE:
            raise Unusable(f"files use each other more than {_DEEPEST_USE} deep")
        if place not in texts.shared:
            texts.shared[place] = _good(read_jobs(text.encode(), str(place), users=users, texts=texts))
        return texts.shared[place]

    return read


def _good(found: JobFile) -> SharedParts:
    """Return what a file offers. Raise if it has a mistake."""
    if found.mistakes:
        more = len(found.mistakes) - 1
        raise Unusable(f"has a mistake, {found.mistakes[0]}" + (f" (and {more} more)" if more else ""))
    return found.shared


@lru_cache(maxsize=64)
def _read_plain(raw: bytes, file: str) -> JobFile:
    return read_jobs(raw, file)


def _read_once(raw: bytes, file: str, users: tuple[Path, ...]) -> JobFile:
    """Return the content of a file that many files may use: one that uses no files itself is read once."""
    if b"use:" in raw or b"ics:" in raw:
        return read_jobs(raw, file, users=users)
    return _read_plain(raw, file)


class _JobFileReader:
    """Reads the jobs of one document and collects the mistakes."""

    def __init__(self, root: YamlNode, file: str, owner: str, beside: Beside) -> None:
        self._root, self._file, self._owner = root, file, owner
        self.beside = beside
        self._unreadable: set[str] = set()
        self.mistakes: list[Mistake] = []
        self.warnings: list[Mistake] = []

    def read(self) -> list[FileJob]:
        """Return the valid jobs. The others are among the mistakes."""
        try:
            whole: Any = models.FileModel.model_validate(self._root.data, context=self.beside)
        except ValidationError as error:
            self._note_all(error)
            self._note_missing({complaint["loc"][:2] for complaint in error.errors()})
            return self._made(*self._valid_parts(error))
        if not whole.model_fields_set & {"jobs", *models.SHARED_KEYS}:
            self._note((), f"{_what(())} has no jobs: add `jobs:`", key=True)
        return self._made(whole.templates, whole.jobs, whole.defaults)

    def _note_missing(self, bad: set[tuple[PathStep, ...]]) -> None:
        """Note what else jobs of invalid shape lack, or say twice. The others are looked at when they are made."""
        jobs = self._root.data.get("jobs") if isinstance(self._root.data, dict) else None
        for name, written in jobs.items() if isinstance(jobs, dict) else ():
            path = ("jobs", name)
            if path not in bad or not isinstance(written, dict):
                continue
            own = [key for key in _TARGETS if key in written]
            if "template" not in written:
                lacks = {_UNSCHEDULED: "schedule" not in written, _IDLE: not own and "tasks" not in written}
                if any(lacks.values()):
                    said = "; it ".join(said for said, is_so in lacks.items() if is_so)
                    self._note(path, f"{_what(path)} {said}", key=True)
            if own and written.get("tasks"):
                self._note((*path, own[0]), _TWICE.format(own[0]), key=True)

    @property
    def shared(self) -> SharedParts:
        """What the file offers to files that use it."""
        beside = self.beside
        return SharedParts(tuple(beside.calendars.values()), tuple(beside.templates.values()), tuple(beside.files))

    def _valid_parts(self, error: ValidationError) -> tuple[_Models, _Models, BaseModel | None]:
        """Return the templates and jobs of valid shape.

        They may have other mistakes, which are told together with those of shape.
        """
        bad = {complaint["loc"][:2] for complaint in error.errors()}
        data = self._root.data
        if any(path[:1] in (("defaults",), ("use",)) or path in ((), ("jobs",), ("templates",)) for path in bad):
            # There are no jobs, or what they inherit is invalid.
            return {}, {}, None
        self._unreadable = {template_key(str(path[1])) for path in bad if path[0] == "templates"}
        templates, jobs = (
            {
                name: model.model_validate(written, context=self.beside)
                for name, written in (data.get(key) or {}).items()
                if (key, name) not in bad
            }
            for key, model in (("templates", models.TemplateModel), ("jobs", models.JobModel))
        )
        return templates, jobs, models.Defaults.model_validate(data.get("defaults") or {}, context=self.beside)

    def _made(self, templates: _Models, jobs: _Models, defaults: BaseModel | None) -> list[FileJob]:
        self._add_templates(templates)
        application = self._defaults(defaults)
        return [found for name, model in jobs.items() if (found := self._job(name, model, application))]

    def _add_templates(self, given: _Models) -> None:
        known: dict[str, str] = {}
        for name, model in given.items():
            key, before = template_key(name), len(self.mistakes)
            if key in known:
                self._note(("templates", name), f"template '{known[key]}' has this name already", key=True)
            known[key] = name
            template = self._template(name, model)
            if len(self.mistakes) > before:
                self._unreadable.add(key)
            self.beside.add_templates([template])

    def _template(self, name: str, model: Any) -> Template:
        path, before = ("templates", name), len(self.mistakes)
        self._refuse_two_words(path, model)
        said = models.said_by(model, Level.JOB)
        description = str(said.pop("description", ""))
        tasks = tuple(filter(None, self._tasks(path, "", model)))
        place = f"{self._file}:{self._root.place_of(path, key=True).line}"
        template = Template(name, description, model.schedule, overrides(Level.TEMPLATE, said), tasks, place)
        if not template.parts and len(self.mistakes) == before:
            self._note(path, f"{_what(path)} says nothing: give it a schedule, policies or something to do", key=True)
        return template

    def _defaults(self, model: BaseModel | None) -> Overrides:
        if model is None:
            return _NOTHING
        self._refuse_two_words(("defaults",), model)
        return overrides(Level.APPLICATION, models.said_by(model, Level.APPLICATION))

    def _job(self, name: str, model: Any, application: Overrides) -> FileJob | None:
        path = ("jobs", name)
        before = len(self.mistakes)
        self._refuse_two_words(path, model)
        inherited = self._inherited(name, model)
        schedule = model.schedule or inherited.schedule
        if schedule is None and not self._is_unclear(model):
            self._note(path, f"{_what(path)} {_UNSCHEDULED}", key=True)
        tasks = self._work(name, model, inherited)
        if len(self.mistakes) > before or self._is_unclear(model) or schedule is None:
            return None
        said = models.said_by(model, Level.JOB)
        said_here = [part for part, found in ((SCHEDULE, model.schedule), (TASKS, self._is_own(model))) if found]
        try:
            job = define_job(
                name,
                schedule,
                policies=said,
                tasks=tasks,
                application=application,
                owner=self._owner,
                in_zone=lambda schedule, zone_name: in_zone(schedule, zone(zone_name)),
                templates=inherited.origin.without(*said_here, *said) if model.template else None,
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

    def _is_unclear(self, model: Any) -> bool:
        """Whether a template of this job has mistakes, so that what the job inherits is not known."""
        return any(template_key(name) in self._unreadable for name in model.template)

    def _inherited(self, name: str, model: Any) -> Combined:
        """Return what the templates of a job say together. One that is not known is a mistake."""
        known = {template_key(template.name): template for template in built_in()} | self.beside.templates
        wanted = [template for template in model.template if template_key(template) not in self._unreadable]
        try:
            return combine(find_templates(name, wanted, known))
        except EverytickError as error:
            self._note(("jobs", name, "template"), models.sentence(error))
            self._unreadable.update(key for key in map(template_key, wanted) if key not in known)
            return combine(())

    def _is_own(self, model: Any) -> bool:
        """Whether the job says itself what it does."""
        return bool(model.tasks) or any(getattr(model, key) is not None for key in _TARGETS)

    def _work(self, name: str, model: Any, inherited: Combined) -> tuple[TaskDefinition, ...]:
        """Return the tasks of a job, which are its own or those of its templates."""
        path = ("jobs", name)
        if self._is_own(model) or not inherited.tasks:
            if self._is_unclear(model) and not self._is_own(model):
                return ()
            found = tuple(filter(None, self._tasks(path, name, model)))
            if not found and not self._is_own(model) and not model.env and not model.cwd:
                self._note(path, f"{_what(path)} {_IDLE}", key=True)
            return found
        tasks = named_tasks(name, inherited.tasks)
        beside = {key: getattr(model, key) for key in _PARTS if getattr(model, key) is not None}
        return self._with_parts(path, tasks, beside) if beside else tasks

    def _with_parts(
        self, path: Sequence[PathStep], tasks: tuple[TaskDefinition, ...], beside: Mapping[str, Any]
    ) -> tuple[TaskDefinition, ...]:
        """Return the one command of a template with another environment or folder."""
        parts = json.loads(tasks[0].target) if tasks[0].target.startswith("{") else {}
        if len(tasks) > 1 or "command" not in parts:
            for key in beside:
                self._note((*path, key), f"{key} belongs to a command, and its template has none alone", key=True)
            return tasks
        changed = {**parts, **beside}
        return (
            TaskDefinition(
                tasks[0].name,
                models.command_of(changed["command"], changed.get("env"), changed.get("cwd")),
                tasks[0].after,
                tasks[0].overrides,
            ),
        )

    def _tasks(self, path: Sequence[PathStep], name: str, model: Any) -> Iterator[TaskDefinition | None]:
        """Give the tasks of a job or template: those it lists, or its own target as one task of this name."""
        own = [key for key in _TARGETS if getattr(model, key) is not None]
        if model.tasks and own:
            self._note((*path, own[0]), _TWICE.format(own[0]), key=True)
        elif model.tasks:
            for position, task in enumerate(model.tasks):
                target = self._target((*path, "tasks", position), task)
                if target is not None:
                    yield self._task(name, task.name, target, (*path, "tasks", position), task)
        elif own or model.env or model.cwd:
            target = self._target(path, model)
            if target is not None:
                yield TaskDefinition(name, target, (), nothing(Level.TASK))

    def _task(self, job: str, name: str, target: str, path: Sequence[PathStep], model: Any) -> TaskDefinition | None:
        try:
            said = models.said_by(model, Level.TASK)
            return define_task(job, name, target=target, after=model.after, policies=said)
        except EverytickError as error:
            self._note(path, models.sentence(error))
            return None

    def _target(self, path: Sequence[PathStep], model: Any) -> str | None:
        """Return the text of the one target. None or several are a mistake."""
        own = [key for key in _TARGETS if getattr(model, key) is not None]
        if len(own) != 1:
            both = f"has {' and '.join(own)}: give one of them"
            self._note(path, f"{_what(path)} {both if own else _IDLE}", key=True)
            return None
        if own == ["target"]:
            return models.engine_target_of(model.target, model.options)
        if model.options is not None:
            self._note((*path, "options"), f"options belong to a target, and this is a {own[0]}", key=True)
            return None
        beside = [key for key in _PARTS if getattr(model, key) is not None]
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

    def _refuse_two_words(self, path: Sequence[PathStep], model: BaseModel) -> None:
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
                self._note(path, self._unknown(path), key=True)
            elif kind == "missing":
                example = "version: 1" if path == ("version",) else f"{path[-1]}:"
                self._note(path[:-1], f"{_what(path[:-1])} has no {path[-1]}: add `{example}`", key=True)
            elif path and path[-1] == "[key]":
                self._note(path[:-1], str(cause or complaint["msg"]), key=True)
            else:
                shape = _EMPTY if kind in _TABLES and complaint["input"] is None else _SHAPES.get(kind)
                self._note(path, f"{_what(path)} {shape}" if shape else str(cause or complaint["msg"]))

    def _unknown(self, path: Sequence[PathStep]) -> str:
        key, known = str(path[-1]), list(_model_at(path[:-1]).model_fields)
        near = did_you_mean(key, known) or f"; it may have {', '.join(known)}"
        return f"{_what(path[:-1])}: unknown key '{shown(key, 60)}'{near}"

    def _note(self, path: Sequence[PathStep], said: str, *, key: bool = False) -> None:
        place = self._root.place_of(path, key=key)
        self.mistakes.append(Mistake(self._file, place.line, place.column, said))


def _model_at(path: Sequence[PathStep]) -> type[BaseModel]:
    match list(path):
        case []:
            return models.FileModel
        case ["defaults"]:
            return models.Defaults
        case ["jobs", _]:
            return models.JobModel
        case ["templates", _]:
            return models.TemplateModel
    return models.TaskModel


def _what(path: Sequence[PathStep]) -> str:
    """Return the path of a value in words."""
    match list(path):
        case []:
            return "the file"
        case ["jobs", str(name)]:
            return f"job '{shown(name, 60)}'"
        case ["templates", str(name)]:
            return f"template '{shown(name, 60)}'"
        case ["jobs" | "templates" as kind, str(name), "tasks", int(position)]:
            return f"task {position + 1} of {kind.removesuffix('s')} '{shown(name, 60)}'"
    return f"{path[-1]}"
