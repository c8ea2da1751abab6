"""Callbacks: the bodies of a declarative scheduler's jobs, by job id. They exist in this process only."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from everytick.declarative.registrations import Callback, Registration
from everytick.domain.durations import LONGEST_DURATION
from everytick.domain.job import Job
from everytick.domain.outcome import Failed, Outcome
from everytick.runners.base import Body
from everytick.runners.context import Context
from everytick.runners.function import FunctionBody


class CallbackBody(FunctionBody):
    """Awaits a callback. Any exception is a failure, which is retried after the registration's delay.

    The delay comes from what is registered now and not from the definition an occurrence began
    under: what an earlier instance left waiting goes on as the newest registration says (S2-059).
    """

    __slots__ = ("_callback", "_delay", "_gate", "_running")

    def __init__(self, callback: Callback, delay: timedelta, running: set[object], gate: asyncio.Event) -> None:
        self._callback, self._delay, self._running, self._gate = callback, min(delay, LONGEST_DURATION), running, gate
        self._call, self.wants_previous = self._awaited, False

    async def run(self, context: Context) -> Outcome:
        """Await the callback, not before the scheduler runs (S2-026). Its result is ignored."""
        if not self._gate.is_set():
            await self._gate.wait()
        task = asyncio.current_task()
        self._running.add(task)
        try:
            outcome = await super().run(context)
        finally:
            self._running.discard(task)
        if isinstance(outcome, Failed):
            return replace(outcome, give_up=False, try_again_after=self._delay)
        return outcome

    async def _awaited(self, context: Context) -> None:
        await self._callback()


class Callbacks:
    """The bodies of the tasks that were registered with this instance, by the ids of their jobs."""

    def __init__(self, registrations: Mapping[str, Registration]) -> None:
        self._registrations = registrations
        self.gate = asyncio.Event()
        """Set once callbacks may begin."""
        self._bodies: dict[str, tuple[Body]] = {}
        self._running: set[object] = set()

    def is_running_here(self) -> bool:
        """Whether the calling code runs in one of the callbacks."""
        return asyncio.current_task() in self._running

    def bodies(self, job: Job) -> tuple[Body, ...] | None:
        """Return the body of the job's one task. None for a task that is not registered here."""
        bodies = self._bodies.get(job.id)
        if bodies is None:
            registration = self._registrations.get(job.id)
            if registration is None:
                return None
            bodies = self._bodies[job.id] = (
                CallbackBody(registration.callback, registration.retry_delay, self._running, self.gate),
            )
        return bodies

    def why(self, job: Job) -> str:
        """Return why the job cannot run here."""
        return "no task of this name is registered with this scheduler"

    def forget(self, occurrence_id: str) -> None:
        """Return: there are no files to remove."""

    def close(self) -> None:
        """Return: there are no threads or processes to end."""
