"""Adding tasks to what is being defined: a job, or a template of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from everytick.domain.job import TaskDefinition, define_task
from everytick.errors import InvalidName
from everytick.runners.places import stored_place_of

if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Self

    from everytick.domain.keywords import TaskPolicies
    from everytick.runners.targets import EnvironmentValue

F = TypeVar("F", bound=Callable[..., Any])


class TaskAdding:
    """The ways to add a task: a function, a program, a request, a function by its address, a target of an engine."""

    __slots__ = ()

    if TYPE_CHECKING:
        name: str

        def _add(self, task: TaskDefinition, function: Callable[..., Any] | None) -> Self:
            """Add the task, and return this handle."""

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
            called = name_of("task", function) if name is None else name
            self._add(function_task(self.name, called, function, after=after, policies=dict(policies)), function)
            return function

        return decorate if function is None else decorate(function)

    def command(
        self,
        name: str,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        after: object = (),
        **policies: Unpack[TaskPolicies],
    ) -> Self:
        """Add a program as a task, as a list of arguments or as text for `sh -c`, and return this handle.

        `{{ … }}` is filled in inside a list only; shell text reads EVERYTICK_… from its
        environment, so that nothing is ever pasted into it.
        """
        from everytick.runners.targets import command_target

        target = command_target(command, env=env, cwd=cwd, job=self.name)
        return self._add(define_task(self.name, name, target=target, after=after, policies=dict(policies)), None)

    def http(
        self,
        name: str,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str | EnvironmentValue] | None = None,
        json: object = None,
        expect: Iterable[int] = (),
        timeout: str | timedelta | None = None,
        after: object = (),
        **policies: Unpack[TaskPolicies],
    ) -> Self:
        """Add a request as a task and return this handle; without `expect` every 2xx is a success."""
        from everytick.runners.targets import http_target

        target = http_target(
            url, method=method, headers=headers, json=json, expect=expect, timeout=timeout, job=self.name
        )
        return self._add(define_task(self.name, name, target=target, after=after, policies=dict(policies)), None)

    def target(
        self,
        target: str,
        *,
        name: str | None = None,
        options: Mapping[str, object] | None = None,
        after: object = (),
        **policies: Unpack[TaskPolicies],
    ) -> Self:
        """Add a task that an engine carries out, by the engine's own name for it, and return this handle.

        `runner` says which: celery, dask or ray. It is named as the last part of the target unless
        `name` says otherwise. `options` say how Celery brings it to a worker (`queue`, `priority`), or what it takes
        of a Ray cluster (`num_cpus`, `num_gpus`).
        """
        from everytick.runners.targets import engine_target

        written = engine_target(target, options, job=self.name)
        called = target.rpartition(":")[2].rpartition(".")[2] if name is None else name
        return self._add(define_task(self.name, called, target=written, after=after, policies=dict(policies)), None)

    def call(self, path: str, *, name: str | None = None, after: object = (), **policies: Unpack[TaskPolicies]) -> Self:
        """Add a function by its address, `module:function`, as a task, and return this handle.

        It is named as the function unless `name` says otherwise. A node imports it for each run if
        its setting `allow_calls` names the module or a package of it, so that the job can be run
        after a restart too, when no code defines it any more.
        """
        from everytick.runners.targets import call_target

        target = call_target(path, job=self.name)
        called = path.rpartition(":")[2].rpartition(".")[2] if name is None else name
        return self._add(define_task(self.name, called, target=target, after=after, policies=dict(policies)), None)


def function_task(
    job: str,
    name: str,
    function: Callable[..., Any],
    *,
    after: object = (),
    policies: Mapping[str, object] | None = None,
) -> TaskDefinition:
    """Return the task that calls this function: its address, and what it takes from a payload."""
    from everytick.runners.signature import parameters_of

    target, parameters = stored_place_of(function), parameters_of(function)
    return define_task(job, name, target=target, after=after, policies=policies, parameters=parameters)


def name_of(what: str, function: object) -> str:
    """Return the function's own name. Raise InvalidName if it has none."""
    if not callable(function):
        raise InvalidName(what, function, "is not a function: decorate one, and give another name with name=")
    name = getattr(function, "__name__", "<lambda>")
    if name == "<lambda>":
        raise InvalidName(what, name, "says nothing: give it one with name=")
    return str(name)
