"""The command runner: a program, told about its occurrence by its environment.

It runs in a session of its own; a stop reaches everything it started: TERM to the group,
and KILL after the grace period. What it writes is kept; its exit code is the outcome.
"""

import asyncio
import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from subprocess import DEVNULL

from everytick.domain.outcome import Failed, Outcome
from everytick.errors import shown
from everytick.runners import tracing
from everytick.runners.children import Child, ending
from everytick.runners.context import Context
from everytick.runners.guard import Guard
from everytick.runners.outcomes import NOTHING, bounded, last_lines
from everytick.runners.scratch import Scratch
from everytick.runners.targets import TEMPLATE, CommandTarget

_TAIL_BYTES = 8 * 1024
"""How much of the last output stands in the error of a failed command."""

_LARGEST_VARIABLE_BYTES = 127 * 1024
"""Linux refuses to start a program with a larger variable (128 KB, its name included)."""


class CommandBody:
    """Starts a program and waits for its end (S0-066: its end by timeout). It has no result."""

    __slots__ = ("_grace", "_guard", "_scratch", "_target", "wants_previous")

    begins_later = False

    def __init__(self, target: CommandTarget, scratch: Scratch, guard: Guard, grace: timedelta) -> None:
        self._target, self._scratch, self._guard = target, scratch, guard
        self._grace = grace.total_seconds()
        self.wants_previous = False

    async def run(self, context: Context) -> Outcome:
        """Start the program. Exit code 0 is success; any other is a failure with the last lines of its output."""
        try:
            values = values_of(context, str(self._scratch.folder(context.occurrence_id)))
        except OSError as error:
            return Failed(bounded(f"no scratch folder could be made: {error}"))
        too_large = len(values["payload"].encode()) > _LARGEST_VARIABLE_BYTES
        if too_large:
            return Failed("the payload does not fit into an environment variable (127 KB): pass where it is", (), True)
        tail = _Tail(context)
        try:
            child = self._start(values, tail, context)
        except (OSError, ValueError) as error:
            return _not_started(self._target, error)
        tracing.describe_span(process_pid=child.group, process_executable_name=Path(_program(self._target)).name)
        try:
            code = await asyncio.shield(child.exited)
        except asyncio.CancelledError:
            await child.stop(getattr(context, "_grace_seconds", self._grace))
            raise
        child.close()
        if code >= 0:
            tracing.describe_span(process_exit_code=code)
        return NOTHING if code == 0 else Failed(tail.told(ending(code)))

    def _start(self, values: dict[str, str], tail: "_Tail", context: Context, stdin: int = DEVNULL) -> Child:
        command = self._target.command
        arguments = ["/bin/sh", "-c", command] if isinstance(command, str) else _filled(command, values)
        told = {f"EVERYTICK_{key.upper()}": values[key] for key in values}
        env = {**os.environ, tracing.VARIABLE: tracing.traceparent_of(context), **dict(self._target.env), **told}
        return Child.start(arguments, tail.keep, self._guard, env=env, cwd=self._target.cwd, stdin=stdin)


def values_of(context: Context, scratch: str) -> dict[str, str]:
    """Return the values for a command's templates and environment, by template name."""
    after, through = context.covers
    return {
        "job": context.job,
        "task": context.task,
        "occurrence_id": context.occurrence_id,
        "run_id": context.run_id,
        "attempt_id": context.attempt_id,
        "attempt": str(context.attempt),
        "fence": str(context.fence),
        "scheduled_for": _written(context.scheduled_for),
        "covers_after": _written(after),
        "covers_through": _written(through),
        "payload": json.dumps(context.payload, ensure_ascii=False),
        "scratch": scratch,
    }


def _written(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat()


def _filled(command: tuple[str, ...], values: dict[str, str]) -> list[str]:
    """Return the arguments with their templates filled in. Each stays one argument, also with spaces in a value."""
    return [TEMPLATE.sub(lambda match: values[match.group(1)], argument) for argument in command]


def _program(target: CommandTarget) -> str:
    return "/bin/sh" if isinstance(target.command, str) else target.command[0]


def _not_started(target: CommandTarget, error: OSError | ValueError) -> Failed:
    where = f" in '{shown(target.cwd)}'" if target.cwd is not None else ""
    return Failed(bounded(f"'{shown(_program(target))}' could not be started{where}: {error}"))


class _Tail:
    """Passes output on and keeps the end of it."""

    __slots__ = ("_context", "_last")

    def __init__(self, context: Context) -> None:
        self._context, self._last = context, b""

    def keep(self, data: bytes) -> None:
        self._context.output(data)
        self._last = (self._last + data[-_TAIL_BYTES:])[-_TAIL_BYTES:]

    def told(self, how: str) -> str:
        lines = last_lines(self._last)
        return bounded(f"{how}\n{lines}" if lines else how)
