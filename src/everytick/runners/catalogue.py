"""The catalogue: finds the body of a task from its target, on this node.

A store may hold any text as a target. Only this module decides what it means: a function of the application itself, a
command, a request, or a function of a package that the node allows. Nothing else is ever looked up, imported or run
(threat model, S10).

Modules that only some tasks need are imported with the first such task: most applications have neither commands nor
requests, and the first job should not wait for them.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from everytick.errors import EverytickError, shown
from everytick.runners.function import FunctionBody, LoopBody
from everytick.runners.places import place_of, stored_place_of
from everytick.runners.signature import is_async

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from everytick.domain.job import Job, Task
    from everytick.runners.addresses import AddressRules
    from everytick.runners.base import Body
    from everytick.runners.engine_desk import EngineDesk
    from everytick.runners.engines import EngineAdapter
    from everytick.runners.guard import Guard
    from everytick.runners.mail import MailServer
    from everytick.runners.process import ProcessPool
    from everytick.runners.receivers import Receiver
    from everytick.runners.scratch import Scratch
    from everytick.runners.targets import Target
    from everytick.runners.thread import ThreadPool

_REMEMBERED = 20_000
"""Most versions of jobs whose bodies are cached. Beyond that the oldest is dropped."""

_PROCESSES = 32
_GRACE = timedelta(seconds=30)
"""Those of a catalogue without settings, as in tests and notebooks: a node gives its own."""

_PLUGINS = "everytick.runners"


class CannotRun(Exception):
    """Why a task cannot be run on this node."""


class Catalogue:
    """Finds the body of every task, and owns the threads and processes in which they run.

    `functions` are the application's own, by job id and task name. `allow_calls` names
    packages whose functions a definition may name by their place. `allow_addresses` are
    networks that requests may reach although they are not public, and `mail` is the server
    that takes e-mail; without `sends_notices` a notice only counts as sent. A runner of another
    package, from the entry-point group `everytick.runners`, is called with the task and,
    if there is one, its function, and returns a Body. `engines` says by runner where an engine is.
    """

    def __init__(
        self,
        functions: Mapping[str, Mapping[str, Callable[..., Any]]],
        *,
        threads: int = 32,
        processes: int = _PROCESSES,
        grace: timedelta = _GRACE,
        allow_calls: Iterable[str] = (),
        allow_addresses: Iterable[str] = (),
        scratch: Path | None = None,
        mail: MailServer | None = None,
        sends_notices: bool = True,
        engines: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        self._engines, self._desks = engines, cast("dict[str, EngineDesk]", {})
        self._functions, self._grace = functions, grace
        self._thread_count, self._process_count = threads, processes
        self._allow_calls, self._allow_addresses = tuple(allow_calls), tuple(allow_addresses)
        self._scratch_folder, self._mail, self._sends_notices = scratch, mail, sends_notices
        self._known: dict[tuple[str, int], tuple[Body, ...]] = {}
        self._is_closed = False
        if self._allow_addresses:
            _ = self._addresses  # what is no network is refused here, not with the first request

    @cached_property
    def _threads(self) -> ThreadPool:
        from everytick.runners.thread import ThreadPool

        return ThreadPool(self._thread_count)

    @cached_property
    def _processes(self) -> ProcessPool:
        from everytick.runners.process import ProcessPool

        return ProcessPool(self._process_count, self._guard, self._grace)

    @cached_property
    def _guard(self) -> Guard:
        from everytick.runners.guard import Guard

        return Guard()

    @cached_property
    def _scratch(self) -> Scratch:
        from everytick.runners.scratch import Scratch

        return Scratch(self._scratch_folder)

    @cached_property
    def _addresses(self) -> AddressRules:
        from everytick.runners.addresses import AddressRules

        return AddressRules(self._allow_addresses)

    def _has(self, part: str) -> bool:
        """Whether this part has been made."""
        return part in self.__dict__

    @property
    def abandoned(self) -> int:
        """How many threads were abandoned since the start, because their task did not end in time."""
        return self._threads.abandoned if self._has("_threads") else 0

    @property
    def stuck(self) -> int:
        """How many of them still run."""
        return self._threads.stuck if self._has("_threads") else 0

    def bodies(self, job: Job) -> tuple[Body, ...] | None:
        """Return a body for each task of the job, in their order; None if one of them cannot be run here."""
        bodies = self._known.get((job.id, job.version))
        if bodies is not None:
            return bodies
        try:
            return self._look_up(job)
        except CannotRun:
            return None

    def why(self, job: Job) -> str:
        """Return why the job cannot be run here, an empty text if it can."""
        try:
            self._look_up(job)
        except CannotRun as error:
            return str(error)
        return ""

    def forget(self, occurrence_id: str) -> None:
        """Remove the scratch folder of an occurrence that has ended on this node."""
        if self._has("_scratch"):
            self._scratch.forget(occurrence_id)

    def relearn(self, job_id: str) -> None:
        """Look the functions of this job up again: they may be others, though its definition says the same."""
        for known in [key for key in self._known if key[0] == job_id]:
            del self._known[known]

    def close(self) -> None:
        """End idle threads and all processes. Busy threads run on."""
        if self._is_closed:
            return
        self._is_closed = True
        # The guard after the processes that it watches, the folders after the threads that write to them.
        for desk in self._desks.values():
            desk.close()
        for part in ("_processes", "_threads", "_guard", "_scratch"):
            if self._has(part):
                getattr(self, part).close()

    def _look_up(self, job: Job) -> tuple[Body, ...]:
        """Make and cache the bodies. A failure is not cached: the missing module may be installed later."""
        bodies = tuple(self._body(job, task) for task in sorted(job.tasks, key=lambda task: task.order))
        if len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[(job.id, job.version)] = bodies
        return bodies

    def _body(self, job: Job, task: Task) -> Body:
        try:
            return self._made(job, task)
        except EverytickError as error:
            raise CannotRun(f"task '{shown(task.name)}': {error}") from None
        except CannotRun as error:
            raise CannotRun(f"task '{shown(task.name)}': {error}") from None

    def _made(self, job: Job, task: Task) -> Body:
        function = self._functions.get(job.id, {}).get(task.name)
        if function is not None:
            return self._function_body(task, function, place_of(function))
        from everytick.runners.targets import CallTarget, FunctionTarget, read_target

        target = read_target(task.target, job.name)
        match target:
            case FunctionTarget(path):
                return self._function_body(task, self._own(path), path)
            case CallTarget(path):
                return self._function_body(task, self._imported(path), path)
        return self._other_body(task, target)

    def _function_body(self, task: Task, function: Callable[..., Any], place: str) -> Body:
        runner = task.settings.runner or ("function" if is_async(function) else "thread")
        match runner:
            case "function":
                return FunctionBody(function) if is_async(function) else LoopBody(function)
            case "thread":
                if is_async(function):
                    raise CannotRun('an async function does not run in a thread: leave out runner="thread"')
                from everytick.runners.thread import ThreadBody

                return ThreadBody(function, self._threads, self._grace)
            case "process":
                from everytick.runners.process import ProcessBody, unreachable

                if reason := _no_processes() or unreachable(place):
                    raise CannotRun(reason)
                return ProcessBody(function, place, self._processes)
        return self._plugin(runner, task, function)

    def _other_body(self, task: Task, target: Target) -> Body:
        from everytick.runners.targets import CommandTarget, EngineTarget, HttpTarget, NoticeTarget

        runner = task.settings.runner
        match target:
            case EngineTarget(name, options) if runner is not None:
                return self._engine_body(runner, name, dict(options))
            case CommandTarget() if runner in (None, "command"):
                if reason := _no_processes():
                    raise CannotRun(reason)
                from everytick.runners.command import CommandBody

                return CommandBody(target, self._scratch, self._guard, self._grace)
            case HttpTarget() if runner in (None, "http"):
                from everytick.runners.http import HttpBody

                return HttpBody(target, self._addresses)
            case NoticeTarget(receiver) if runner is None:
                return self._notice_body(receiver)
        assert runner is not None, "a target without a runner is a command or a request"
        return self._plugin(runner, task, None)

    def _notice_body(self, receiver: Receiver) -> Body:
        from everytick.runners import notices
        from everytick.runners.receivers import EmailTarget, PingTarget, WebhookTarget
        from everytick.runners.targets import CommandTarget, HttpTarget

        match receiver:
            case _ if not self._sends_notices:
                return notices.Unsent()
            case CommandTarget():
                if reason := _no_processes():
                    raise CannotRun(reason)
                return notices.NoticeCommand(receiver, self._scratch, self._guard, self._grace)
            case HttpTarget():
                from everytick.runners.http import HttpBody

                HttpBody(receiver, self._addresses)  # says now if the library for requests is missing
                return notices.NoticeRequest(receiver, lambda target: HttpBody(target, self._addresses))
            case WebhookTarget():
                return notices.Webhook(receiver, self._addresses)
            case PingTarget():
                return notices.Ping(receiver, self._addresses)
            case EmailTarget():
                if self._mail is None:
                    raise CannotRun("this node sends no e-mail: set smtp, or EVERYTICK_SMTP, to a server's address")
                from everytick.runners.mail import Email

                return Email(receiver, self._mail)

    def _engine_body(self, runner: str, target: str, options: dict[str, Any]) -> Body:
        """Return the body that hands the target over. Where the engine is, and its package, are looked at now."""
        if runner not in self._engines:
            raise CannotRun(f"this node hands nothing over to {runner}: set {runner}, or EVERYTICK_{runner.upper()}")
        if runner not in self._desks:
            from everytick.runners.engine_desk import EngineDesk

            self._desks[runner] = EngineDesk(self._adapter(runner))
        if runner != "celery":
            self._refuse_unallowed(target.partition(":")[0])
        from everytick.runners.engines import EngineBody

        return EngineBody(target, options, self._desks[runner])

    def _adapter(self, runner: str) -> EngineAdapter:
        places = self._engines[runner]
        match runner:
            case "celery":
                from everytick.runners.celery import celery_engine

                return celery_engine(*places)
            case "dask":
                from everytick.runners.dask import DaskEngine

                return DaskEngine(places[0], self._allow_calls)
            case "ray":
                from everytick.runners.ray import RayEngine

                return RayEngine(places[0], self._allow_calls)
        raise CannotRun(f"there is no engine '{shown(runner)}'")

    def _plugin(self, runner: str, task: Task, function: Callable[..., Any] | None) -> Body:
        from importlib.metadata import entry_points

        plugins = entry_points(group=_PLUGINS)
        names = sorted(plugins.names)
        if runner not in names:
            known = ", ".join(("function", "thread", "process", *names))
            raise CannotRun(f"there is no runner '{shown(runner)}' for it here: known are {known}")
        try:
            body: Body = plugins[runner].load()(task, function)
        except Exception as error:
            raise CannotRun(f"runner '{shown(runner)}' could not be loaded: {shown(str(error))}") from error
        return body

    def _own(self, path: str) -> Callable[..., Any]:
        """Return the application's function with this address, of any job. Two different ones are ambiguous."""
        functions = {
            id(function): function
            for tasks in self._functions.values()
            for function in tasks.values()
            if path in (place_of(function), stored_place_of(function))
        }
        if len(functions) == 1:
            return next(iter(functions.values()))
        number = "several functions" if functions else "no function"
        raise CannotRun(f"this application has {number} '{shown(path)}'")

    def _imported(self, path: str) -> Callable[..., Any]:
        module, _, names = path.partition(":")
        self._refuse_unallowed(module)
        try:
            function: Any = import_module(module)
            for name in names.split("."):
                function = getattr(function, name)
        except BaseException as error:  # noqa: BLE001 - importing runs code, which may raise anything
            raise CannotRun(f"'{shown(path)}' could not be imported: {type(error).__name__}: {error}") from None
        if not callable(function) or getattr(function, "__module__", None) is None:
            raise CannotRun(f"'{shown(path)}' is not a function")
        if not _is_of(function, self._allow_calls):
            raise CannotRun(f"'{shown(path)}' is only borrowed there: it belongs to '{shown(function.__module__)}'")
        return function  # type: ignore[no-any-return]

    def _refuse_unallowed(self, module: str) -> None:
        """Return if the node allows calls of this module."""
        if not any(module == allowed or module.startswith(f"{allowed}.") for allowed in self._allow_calls):
            package = shown(module.partition(".")[0])
            wanted = f'add "{package}" to' if self._allow_calls else f'write allow_calls = ["{package}"] into'
            advice = f"{wanted} {'allow_calls in ' if self._allow_calls else ''}everytick.toml"
            raise CannotRun(f"calls of '{shown(module)}' are not allowed here: {advice}")


def _is_of(function: Any, allowed: tuple[str, ...]) -> bool:
    """Whether an allowed package defines the function. `myapp.jobs:os.system` is imported there, not defined."""
    home = str(function.__module__)
    return any(home == prefix or home.startswith(f"{prefix}.") for prefix in allowed)


def _no_processes() -> str | None:
    return None if os.name == "posix" else f"processes and commands do not run on {sys.platform}"
