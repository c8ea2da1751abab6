"""Engines: what carries out attempts elsewhere, and the one protocol behind which each of them stands.

An attempt that is handed over goes the way of every attempt: the claim begins it, `advance` decides what follows from
its end, `commit_steps` writes that. Only the work is done elsewhere. Its id there is the attempt's own, and the store
knows of it before the engine does. So the owner of the occurrence can ask the engine how it ended, also another node
after a crash, and nothing is handed over twice.

An engine never tries again by itself: everytick's retry policy decides. That a worker was lost is found by the
attempt's timeout, which counts from the moment it was handed over.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

from everytick.domain.outcome import Outcome
from everytick.domain.values import value
from everytick.runners.context import Context, Halt
from everytick.runners.engine_desk import EngineDesk

_log = logging.getLogger("everytick.engines")


@value
class Capabilities:
    """What can be asked of whatever carries out an attempt; the node asks this instead of guessing."""

    survives_node: bool = False
    """The attempt goes on when its node is gone, and another node can ask how it ended."""

    cancels_queued: bool = True
    """An attempt that has not begun there can be taken back."""

    cancels_running: bool = True
    """An attempt that runs can be ended."""

    reports_progress: bool = True
    """`ctx.progress` reaches people."""

    keeps_output: bool = True
    """What the task prints is kept with the attempt."""


@value
class Work:
    """One attempt as an engine gets it: its id there, what to call, and how. `expires` is its timeout."""

    id: str
    target: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    options: Mapping[str, Any]
    headers: Mapping[str, Any]
    expires: timedelta | None


class EngineUnreachable(Exception):
    """The engine does not answer, and has not taken the work: it may be asked again."""


class EngineAdapter(Protocol):
    """One engine. Its calls may block, and come from two threads: one for `poll`, one for all others."""

    name: str
    capabilities: Capabilities

    def reach(self) -> None:
        """Return if the engine answers. Raise `EngineUnreachable` if not."""
        ...

    def submit(self, work: Sequence[Work]) -> list[Exception | None]:
        """Hand each of these over, under its id. Return why one was not taken; `EngineUnreachable` is tried again.

        One of which it is not known whether the engine has it counts as taken: its timeout ends it.
        """
        ...

    def poll(self, ids: Sequence[str]) -> Mapping[str, Outcome]:
        """Return how those have ended that have, in one question for all of them.

        This is also how a node goes on with the attempts of another one: it needs nothing but their ids.
        """
        ...

    def cancel(self, ids: Sequence[str]) -> None:
        """Stop these, or do not begin them, as far as the engine can."""
        ...

    def forget(self, ids: Sequence[str]) -> None:
        """Free what the engine keeps about these: their ends are in the store."""
        ...

    def close(self) -> None:
        """Close the connection. What runs goes on."""
        ...


class EngineBody:
    """Carries out the attempts of one task on an engine."""

    wants_previous = False
    begins_later = False

    def __init__(self, target: str, options: Mapping[str, Any], desk: EngineDesk) -> None:
        self._target, self._options, self._desk = target, options, desk

    @property
    def capabilities(self) -> Capabilities:
        """What the engine can do."""
        return self._desk.adapter.capabilities

    async def run(self, context: Context) -> Outcome:
        """Hand the attempt over, unless an earlier owner has, and wait for its end."""
        desk, id_ = self._desk, context.attempt_id
        is_sent = context._services.known_to(context) is not None
        try:
            if not is_sent:
                await desk.reached()
                await context._services.hand_over(context, f"{desk.adapter.name}:{id_}")
                if (refused := await desk.submit(self._work(context, id_))) is not None:
                    return refused
                is_sent = True
                context._services.handed(context)
            return await desk.outcome(id_)
        except asyncio.CancelledError:
            if context._halt not in (None, Halt.LEFT) and (is_sent or desk.has_sent(id_)):
                await self._stop(context, desk, id_)
            raise

    async def _stop(self, context: Context, desk: EngineDesk, id_: str) -> None:
        if not desk.adapter.capabilities.cancels_running:
            text = "%s cannot stop what runs: task '%s' of job '%s' may go on there, and its result is not recorded"
            _log.warning(text, desk.adapter.name, context.task, context.job)
        await desk.cancel(id_)

    def recall(self, context: Context) -> None:
        """Tell the engine to stop an attempt that no longer counts."""
        self._desk.cancel_soon(context.attempt_id)

    def settled(self, attempt_id: str) -> None:
        """Let the engine forget an attempt whose end is in the store."""
        self._desk.forget_soon(attempt_id)

    def _work(self, context: Context, id_: str) -> Work:
        args, kwargs = arguments(context.payload)
        timeout = context._header.rules.tasks[context._place].timeout
        headers = {
            "everytick_job": context.job,
            "everytick_task": context.task,
            "everytick_occurrence": context.occurrence_id,
            "everytick_attempt": context.attempt,
            "everytick_fence": context.fence,
            "everytick_scheduled_for": context.scheduled_for.isoformat(),
        }
        return Work(id_, self._target, args, kwargs, self._options, headers, timeout)


def arguments(payload: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the arguments of a call: a table gives them by name, a list by position, anything else is the only one."""
    if isinstance(payload, dict):
        return (), payload
    if isinstance(payload, list):
        return tuple(payload), {}
    return (() if payload is None else (payload,)), {}
