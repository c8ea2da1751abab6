"""The handle of one job, and the decorated function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from functools import wraps
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from everytick.app.adding_tasks import TaskAdding
from everytick.domain.job import Job, TaskDefinition, refuse_contradicting_task
from everytick.domain.schedule import is_on_request
from everytick.errors import DuplicateDefinition, shown

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from typing import Self

    from everytick.app.definition_places import DefinitionPlace
    from everytick.app.handle import Handle
    from everytick.runners.context import Context
    from everytick.stores.base import JobRecord

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
Called = ParamSpec("Called")
Asked = ParamSpec("Asked")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class JobFunction(Protocol[Called, Asked, R_co]):
    """A decorated function: calling it runs it here and now, `trigger` asks for an occurrence of its job."""

    @property
    def definition(self) -> Definition:
        """The job it is the only task of."""
        ...

    def __call__(self, *args: Called.args, **kwargs: Called.kwargs) -> R_co:
        """Run the function here and now, with no store."""
        ...

    @overload
    async def trigger(self, *args: Asked.args, **kwargs: Asked.kwargs) -> Handle: ...

    @overload
    async def trigger(self, *args: Any, at: datetime | str, **kwargs: Any) -> Handle: ...

    @overload
    async def trigger(self, *args: Any, after: timedelta | str, **kwargs: Any) -> Handle: ...

    async def trigger(self, *args: Any, **kwargs: Any) -> Handle:
        """Ask for an occurrence that is called with these arguments, and return its handle.

        `at` asks for it at a time, `after` so long from now. A parameter of the function that has one
        of these names is meant instead: then ask with `tick.trigger`.
        """
        ...


class JobMaker:
    """What `tick.job(...)` returns: a decorator that makes jobs. Awaited, it gives the job of that name.

    The node passes the Context if it is the function's first parameter, so `trigger` does not take it.
    """

    def __init__(
        self, define: Callable[[Callable[..., Any]], Any], ask: Callable[[], Coroutine[Any, Any, JobRecord]]
    ) -> None:
        self._define, self._ask = define, ask

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> JobFunction[Concatenate[Context, P], P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> JobFunction[P, P, R]: ...

    def __call__(self, function: Callable[..., Any], /) -> Any:
        """Make the function a job, and return it with `trigger`."""
        return self._define(function)

    def __await__(self) -> Generator[Any, Any, JobRecord]:
        return self._ask().__await__()


_NO_HOOKS: Mapping[str, Callable[..., Any]] = MappingProxyType({})


class Definition(TaskAdding):
    """The handle of one job: adds tasks and hooks to it."""

    __slots__ = ("__weakref__", "_build", "_functions", "_hooks", "_inherited", "_job", "_tasks", "name", "place")

    def __init__(
        self,
        build: Callable[[tuple[TaskDefinition, ...], bool], Job],
        place: DefinitionPlace,
        inherited: tuple[tuple[str, Callable[..., Any]], ...] = (),
    ) -> None:
        self._build, self.place = build, place
        # The functions of its template, which are its own as long as it has no task.
        self._inherited = inherited
        self._tasks: tuple[TaskDefinition, ...] = ()
        # A tuple, not a dict, to save memory: most of ten thousand jobs have one function and no hook.
        self._functions: tuple[tuple[str, Callable[..., Any]], ...] = ()
        self._hooks: Mapping[str, Callable[..., Any]] = _NO_HOOKS
        self._job: Job | None = build((), False)
        self.name = self._job.name

    def __repr__(self) -> str:
        return f"Definition(name={self.name!r}, tasks={[task.name for task in self._tasks]})"

    @property
    def job(self) -> Job:
        """The definition as of now. It refuses an `after` that names no task: until now the task could be added."""
        if self._job is None:
            self._job = self._build(self._tasks, "on_complete" in self._hooks)
        return self._job

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The function of each task that has one, by the task's name."""
        return MappingProxyType(dict(self._functions if self._tasks else self._inherited))

    @property
    def hooks(self) -> Mapping[str, Callable[..., Any]]:
        """The functions for the start and the end of an occurrence: `on_start`, `on_complete`."""
        return self._hooks

    def on_start(self, function: F) -> F:
        """Call the function once per occurrence, before its first attempt; what it raises changes nothing."""
        return self._hook("on_start", function)

    def on_complete(self, function: F) -> F:
        """Call the function with the report of every occurrence that ended, at least once."""
        return self._hook("on_complete", function)

    def _add(self, task: TaskDefinition, function: Callable[..., Any] | None) -> Self:
        if any(defined.name == task.name for defined in self._tasks):
            text = f"job '{shown(self.name)}' has two tasks named '{shown(task.name)}': give one another name="
            if self.place.is_typed:
                text += "; to replace it in a notebook, run the cell that defines the job again first"
            raise DuplicateDefinition(text)
        tasks = (*self._tasks, task)
        alone = self._job if self._job is not None and not self._tasks else self._build((), False)
        refuse_contradicting_task(alone, tasks)
        if function is not None:
            refuse_unfilled_tasks(alone, [(task.name, function)])
            self._functions = (*self._functions, (task.name, function))
        self._tasks, self._job = tasks, None
        return self

    def _hook(self, kind: str, function: F) -> F:
        if kind in self._hooks:
            raise DuplicateDefinition(f"job '{shown(self.name)}' has two {kind} hooks: call both from one function")
        self._hooks, self._job = MappingProxyType({**self._hooks, kind: function}), None
        return function


def refuse_unfilled_tasks(job: Job, functions: Iterable[tuple[str, Callable[..., Any]]]) -> None:
    """Return if the payload of the job fills the parameters of the functions of these tasks."""
    from everytick.runners.signature import refuse_unfilled

    on_request = is_on_request(job.schedule)
    for task, function in functions:
        refuse_unfilled(job.name, task, function, job.settings.payload, is_on_request=on_request)


def job_function(function: Callable[..., Any], definition: Definition, ask: Callable[..., Awaitable[Handle]]) -> Any:
    """Return a function that calls the given one and has `trigger` and `definition`.

    It is a new function, since one function may be several jobs.
    """
    if iscoroutinefunction(function):

        @wraps(function)
        async def run(*args: Any, **kwargs: Any) -> Any:
            return await function(*args, **kwargs)
    else:

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

    async def trigger(*args: Any, **kwargs: Any) -> Handle:
        """Ask for an occurrence that is called with these arguments, and return its handle."""
        when = {name: kwargs.pop(name) for name in _times(function) if name in kwargs}
        return await ask(definition.name, arguments(function, args, kwargs), **when)

    # A call that is not awaited does nothing, and Python warns of it by this name.
    trigger.__qualname__ = f"{definition.name}.trigger"
    decorated: Any = run
    decorated.trigger, decorated.definition = trigger, definition
    return decorated


def _times(function: Callable[..., Any]) -> list[str]:
    """Return the names by which a call may say when it runs: those that are no parameter of the function."""
    from inspect import signature

    own = signature(function).parameters
    return [name for name in ("at", "after") if name not in own]


def arguments(function: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call without its context, by parameter name. Raise TypeError if they do not fit."""
    from inspect import Parameter, signature

    from everytick.runners.signature import signature_of

    context, whole = signature_of(function).context, signature(function)
    others = [parameter for parameter in whole.parameters.values() if parameter.name != context]
    by_name: dict[str, Any] = {}
    for name, passed in whole.replace(parameters=others).bind(*args, **kwargs).arguments.items():
        kind = whole.parameters[name].kind
        if kind is Parameter.VAR_POSITIONAL:
            raise TypeError(f"what is passed as *{name} has no name, and a payload fills by name: pass it by keyword")
        by_name.update(passed if kind is Parameter.VAR_KEYWORD else {name: passed})
    return by_name
