"""The reporter: calls the hooks of a job around its occurrences, and delivers every report at least once."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from everytick.domain.steps import End, OccurrenceSnapshot
from everytick.errors import StoreUnavailable
from everytick.node.health import Health
from everytick.node.held import Running
from everytick.stores.base import Claim, JobStore, RunStore

_log = logging.getLogger("everytick.hooks")

Hook = Callable[..., Any]
Hooks = Mapping[str, Mapping[str, Hook]]
"""By the job's id, then `on_start` or `on_complete`."""

_DELIVERED_AT_ONCE = 100
_LOOK_EVERY = 30.0


class Reporter:
    """Knows the hooks of this process; one that raises is logged and changes nothing."""

    def __init__(self, store: RunStore, jobs: JobStore, hooks: Hooks, health: Health) -> None:
        self._store, self._jobs, self._hooks, self._health = store, jobs, hooks, health
        self._tasks: set[asyncio.Task[None]] = set()
        self._under_way: set[str] = set()
        self._look = asyncio.Event()

    def wake(self) -> None:
        """Look for reports that are due: the reaper or the planner has ended something."""
        self._look.set()

    async def run(self) -> None:
        """Deliver for ever what nobody has delivered."""
        while True:
            while await self.deliver_left():
                pass
            self._look.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY):
                    await self._look.wait()

    def started(self, claim: Claim, go: Callable[[], None]) -> None:
        """Go, after `on_start` where this is the first claim of an occurrence whose job has one."""
        hook = self._hook(claim.job.id, "on_start")
        if hook is None or any(run.attempts for run in claim.snapshot.runs):
            go()
        else:
            self._spawn(self._start(hook, claim, go))

    def ended(self, claim: Claim, end: End) -> None:
        """Deliver the report of an end that is committed."""
        if self._hook(claim.job.id, "on_complete") is not None:
            self._spawn(self._deliver(end.snapshot))

    def with_previous(self, running: Running, go: Callable[[], None]) -> None:
        """Go, once the context knows which occurrence of the job ended last."""
        self._spawn(self._look_up(running, go))

    async def deliver_left(self) -> int:
        """Deliver what an earlier node, the reaper or the planner left; return how many."""
        if not any("on_complete" in hooks for hooks in self._hooks.values()):
            return 0
        left = [
            ended
            for ended in await self._store.reports(_DELIVERED_AT_ONCE)
            if ended.id not in self._under_way and self._hook(ended.job_id, "on_complete") is not None
        ]
        for ended in left:
            await self._deliver(ended)
        return len(left)

    async def close(self) -> None:
        """Return when the hooks under way have ended."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _hook(self, job_id: str, kind: str) -> Hook | None:
        hooks = self._hooks.get(job_id)
        return None if hooks is None else hooks.get(kind)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start(self, hook: Hook, claim: Claim, go: Callable[[], None]) -> None:
        if await _is_called_in_vain(hook, claim.occurrence):
            _log.error("on_start of job '%s' failed; its tasks run all the same", claim.job.name)
        go()

    async def _deliver(self, ended: OccurrenceSnapshot) -> None:
        hook = self._hook(ended.job_id, "on_complete")
        assert hook is not None, "a report is delivered to a hook"
        self._under_way.add(ended.id)
        if await _is_called_in_vain(hook, ended.report()):
            _log.error("on_complete failed for occurrence %s; the occurrence stays as it ended", ended.id)
        try:
            await self._store.reported([ended.id])
        except StoreUnavailable as error:
            # The mark stays: the report comes again, which is allowed.
            self._health.failed(str(error))
        finally:
            self._under_way.discard(ended.id)

    async def _look_up(self, running: Running, go: Callable[[], None]) -> None:
        job_id = running.held.claim.job.id
        try:
            record = (await self._jobs.get([job_id])).get(job_id)
        except StoreUnavailable as error:
            self._health.failed(str(error))
            record = None
        if record is not None and record.last_end is not None:
            running.context.previous = record.last_end.scheduled_for
        go()


async def _is_called_in_vain(hook: Hook, argument: object) -> bool:
    """Call the hook and return whether it raised: whatever that was, `sys.exit` included, the node goes on."""
    try:
        await _call(hook, argument)
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        _log.error("a hook raised", exc_info=error)
        return True
    return False


async def _call(hook: Hook, argument: object) -> None:
    """Call the hook with the argument if it takes one; one that is not async runs beside the loop."""
    arguments = (argument,) if inspect.signature(hook).parameters else ()
    if inspect.iscoroutinefunction(hook):
        await hook(*arguments)
        return
    raised = await asyncio.to_thread(_raised_by, hook, arguments)
    if raised is not None:
        raise raised


def _raised_by(hook: Hook, arguments: tuple[object, ...]) -> BaseException | None:
    """Call it in this thread; SystemExit must not leave a thread of a pool, nor StopIteration a coroutine."""
    try:
        hook(*arguments)
    except BaseException as error:  # noqa: BLE001, handed to whoever waits
        return RuntimeError(f"StopIteration: {error}") if isinstance(error, StopIteration) else error
    return None
