"""The bodies of an application's tasks in a test: its functions, called on the event loop one after another."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from everytick.app import Everytick
from everytick.domain.job import Job
from everytick.runners.base import Body
from everytick.runners.function import FunctionBody, LoopBody
from everytick.runners.signature import is_async

Functions = Mapping[str, Callable[..., Any]]


def functions_of(app: Everytick, jobs: Sequence[Job], instead: Functions) -> dict[str, dict[str, Callable[..., Any]]]:
    """Return the functions of these jobs, by id and task. `instead` has replacements by job, or by `job.task`."""
    own = {definition.name: definition.functions for definition in app.definitions}
    known = {f"{job.name}.{task.name}" for job in jobs for task in job.tasks} | {job.name for job in jobs}
    for name in instead:
        if name not in known:
            raise LookupError(
                f"instead={{{name!r}: …}} names no job and no task; there are: {', '.join(sorted(known))}"
            )
    return {
        job.id: {
            task.name: body
            for task in job.tasks
            if (body := _function(job.name, task.name, own.get(job.name, {}), instead)) is not None
        }
        for job in jobs
    }


def _function(job: str, task: str, own: Functions, instead: Functions) -> Callable[..., Any] | None:
    return instead.get(f"{job}.{task}") or instead.get(job) or own.get(task)


class Inline:
    """Runs functions on the event loop, where time is virtual: no threads, no processes, nothing random."""

    def __init__(self, app: Everytick, jobs: Sequence[Job], instead: Functions) -> None:
        self._functions = functions_of(app, jobs, instead)
        for job in jobs:
            for task in job.tasks:
                if task.name not in self._functions[job.id]:
                    name = f"{job.name}.{task.name}"
                    raise LookupError(
                        f"task '{task.name}' of job '{job.name}' is no function, and a simulation runs only "
                        f'those: say what to call in its place with instead={{"{name}": function}}'
                    )
        self._bodies: dict[str, tuple[Body, ...]] = {}

    def bodies(self, job: Job) -> tuple[Body, ...] | None:
        """Return a body for each task of the job, in their order. None for a job that was stored later."""
        if job.id not in self._functions:
            return None
        if job.id not in self._bodies:
            own = self._functions[job.id]
            tasks = sorted(job.tasks, key=lambda task: task.order)
            self._bodies[job.id] = tuple(_body(own[task.name]) for task in tasks)
        return self._bodies[job.id]

    def why(self, job: Job) -> str:
        """Return why the job cannot run here."""
        return f"'{job.name}' was not there when the simulation began"

    def forget(self, occurrence_id: str) -> None:
        """Return: there are no files to remove."""

    def close(self) -> None:
        """Return: there are no threads or processes to end."""


def _body(function: Callable[..., Any]) -> Body:
    return FunctionBody(function) if is_async(function) else LoopBody(function)
