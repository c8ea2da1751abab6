"""Everytick: where an application says which jobs it has.

Defining needs no store and no clock: everything that can be refused is refused here, on
the line that wrote it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from everytick.domain.config import UNSET, Level, overrides
from everytick.domain.contradictions import surprises
from everytick.domain.job import Job, TaskDefinition, define_job, define_task, is_schedule, refuse_contradicting_task
from everytick.domain.names import checked_name
from everytick.domain.texts import JOB_ALREADY_REGISTERED
from everytick.errors import (
    DefinitionWarning,
    DuplicateDefinition,
    InvalidName,
    InvalidPolicies,
    InvalidSchedule,
    shown,
)

if TYPE_CHECKING:
    from everytick.domain.keywords import JobPolicies, TaskPolicies
    from everytick.domain.schedule import Schedule
    from everytick.schedules.timezones import Zone

F = TypeVar("F", bound=Callable[..., Any])


class Everytick:
    """An application and its jobs.

    `timezone` is that of jobs and schedules which name none; `"local"` is the machine's,
    looked up once and kept by name. `name` says whose jobs these are in the store; it is
    the module that made the application unless given. `defaults` are policies for all jobs.
    """

    def __init__(
        self,
        *,
        timezone: str | tzinfo = "UTC",
        name: str | None = None,
        defaults: Mapping[str, object] | None = None,
    ) -> None:
        self.name = checked_name("application", _module_name(sys._getframe(1).f_globals) if name is None else name)
        self._defaults = overrides(Level.APPLICATION, _common(timezone, defaults or {}), what="application defaults")
        self._definitions: dict[str, Definition] = {}

    def __repr__(self) -> str:
        return f"Everytick(name={self.name!r}, {len(self._definitions)} jobs)"

    def define(
        self, name: str, schedule: Schedule | str, *, owner: str | None = None, **policies: Unpack[JobPolicies]
    ) -> Definition:
        """Define a job and return its handle, to which tasks and hooks are added."""
        return self._add(name, schedule, owner, policies)

    def job(
        self,
        schedule: Schedule | str,
        *,
        name: str | None = None,
        owner: str | None = None,
        **policies: Unpack[JobPolicies],
    ) -> Callable[[F], F]:
        """Make the decorated function a job of one task, named as the function unless `name` says otherwise.

        The function stays what it is: calling it runs it here and now, with no store.
        """

        # Read now: a decorator used without its parentheses must not swallow the function.
        found_schedule = _schedule(schedule)

        def decorate(function: F) -> F:
            found = _name_of("job", function) if name is None else name
            self._add(found, found_schedule, owner, policies).task(name=found)(function)
            return function

        return decorate

    def jobs(self) -> tuple[Job, ...]:
        """Return every job of this application, in the order they were defined."""
        return tuple(definition.job for definition in self._definitions.values())

    def _add(
        self, name: str, schedule: Schedule | str, owner: str | None, policies: Mapping[str, object]
    ) -> Definition:
        found = _schedule(schedule)
        # Read once: the job is built again with every task, and what was written may be used up or changed by then.
        looked_up = {key: _readable(key, written) for key, written in policies.items()}
        read = dict(overrides(Level.JOB, looked_up, checked_name("job", name)).items)

        def build(tasks: tuple[TaskDefinition, ...]) -> Job:
            whose = f"code:{self.name}" if owner is None else owner
            return define_job(
                name, found, policies=read, tasks=tasks, application=self._defaults, owner=whose, in_zone=_in_zone
            )

        definition = Definition(build)
        job = definition.job
        if job.id in self._definitions:
            raise DuplicateDefinition(JOB_ALREADY_REGISTERED.format(id=job.id))
        self._definitions[job.id] = definition
        for sentence in surprises(job.settings):
            # Three frames up: past here and `define` or `job`, to the line that wrote it.
            warnings.warn(f"job '{shown(job.name)}': {sentence}", DefinitionWarning, stacklevel=3)
        return definition


class Definition:
    """The handle of one job: adds tasks and hooks to it."""

    def __init__(self, build: Callable[[tuple[TaskDefinition, ...]], Job]) -> None:
        self._build = build
        self._tasks: tuple[TaskDefinition, ...] = ()
        self._functions: dict[str, Callable[..., Any]] = {}
        self._hooks: dict[str, Callable[..., Any]] = {}
        self._alone = build(())
        self._job: Job | None = self._alone
        self.name = self._alone.name

    def __repr__(self) -> str:
        return f"Definition(name={self.name!r}, tasks={list(self._functions)})"

    @property
    def job(self) -> Job:
        """The definition as it stands now; an `after` that names no task is refused here, since it might have come."""
        if self._job is None:
            self._job = self._build(self._tasks)
        return self._job

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """What to call for each task, by the task's name."""
        return MappingProxyType(self._functions)

    @property
    def hooks(self) -> Mapping[str, Callable[..., Any]]:
        """What to call at the start and the end of an occurrence: `on_start`, `on_complete`."""
        return MappingProxyType(self._hooks)

    @overload
    def task(self, function: F, /) -> F: ...

    @overload
    def task(
        self, /, *, name: str | None = None, after: object = (), **policies: Unpack[TaskPolicies]
    ) -> Callable[[F], F]: ...

    def task(
        self,
        function: F | None = None,
        /,
        *,
        name: str | None = None,
        after: object = (),
        **policies: Unpack[TaskPolicies],
    ) -> F | Callable[[F], F]:
        """Add the decorated function as a task, named as the function unless `name` says otherwise.

        Tasks run in the order they were added; with `after`, once the tasks named there ended
        well. The function stays what it is.
        """

        def decorate(function: F) -> F:
            found = _name_of("task", function) if name is None else name
            self._add(
                define_task(self.name, found, target=_target(function), after=after, policies=dict(policies)), function
            )
            return function

        return decorate if function is None else decorate(function)

    def on_start(self, function: F) -> F:
        """Call the function once per occurrence, before its first attempt; what it raises changes nothing."""
        return self._hook("on_start", function)

    def on_complete(self, function: F) -> F:
        """Call the function with the report of every occurrence that ended, at least once."""
        return self._hook("on_complete", function)

    def _add(self, task: TaskDefinition, function: Callable[..., Any]) -> None:
        if task.name in self._functions:
            text = f"job '{shown(self.name)}' has two tasks named '{shown(task.name)}': give one another name="
            raise DuplicateDefinition(text)
        tasks = (*self._tasks, task)
        refuse_contradicting_task(self._alone, tasks)
        self._tasks, self._functions[task.name], self._job = tasks, function, None

    def _hook(self, kind: str, function: F) -> F:
        if kind in self._hooks:
            raise DuplicateDefinition(f"job '{shown(self.name)}' has two {kind} hooks: call both from one function")
        self._hooks[kind] = function
        return function


def _common(timezone: str | tzinfo, defaults: Mapping[str, object]) -> dict[str, object]:
    """The policies of all jobs, with the application's zone among them where it is not UTC."""
    found = {key: _readable(key, written) for key, written in defaults.items()}
    if timezone not in ("UTC", UTC):
        own = _readable("timezone", timezone)
        if found.setdefault("timezone", own) != own:
            reason = f"timezone is given twice: '{shown(own)}', and '{shown(found['timezone'])}' in defaults"
            raise InvalidPolicies("", reason, ("one of them",))
    return found


def _readable(key: str, written: object) -> object:
    """What was written, with everything looked up that the domain cannot: texts of schedules, and zones."""
    if key in ("stop_schedule", "restart_schedule") and written is not None and written is not UNSET:
        return _schedule(written)
    if key == "timezone" and written is not UNSET:
        return _zone(written).name
    return written


def _schedule(given: object) -> Schedule:
    if isinstance(given, str):
        from everytick.schedules.codec import schedule

        return schedule(given)
    if not is_schedule(given):
        raise InvalidSchedule(given, "schedule", 'must be a schedule or its text, like every("10s") or "30 2 * * *"')
    return given


def _zone(given: object) -> Zone:
    from everytick.schedules.timezones import zone_of

    if given == "local":
        from everytick.config.host import local_timezone

        given = local_timezone()
    found = zone_of(given)
    if found is None:
        raise InvalidPolicies("", "timezone 'None' must be a name", ("UNSET, for the application's", 'timezone="UTC"'))
    return found


def _in_zone(schedule: Schedule, zone_name: str) -> Schedule:
    from everytick.schedules.combine import in_zone

    return in_zone(schedule, _zone(zone_name))


def _name_of(what: str, function: object) -> str:
    if not callable(function):
        raise InvalidName(what, function, "is not a function: decorate one, and give another name with name=")
    name = getattr(function, "__name__", "<lambda>")
    if name == "<lambda>":
        raise InvalidName(what, name, "says nothing: give it one with name=")
    return str(name)


def _target(function: object) -> str:
    """Where the function is found: `module:qualified.name`."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def _module_name(module: Mapping[str, Any]) -> str:
    """The module's name, also where it was started as a script and calls itself `__main__`."""
    name = str(module.get("__name__", "__main__"))
    if name != "__main__":
        return name
    spec = module.get("__spec__")
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = str(module.get("__file__", name))
    return file.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".py")
