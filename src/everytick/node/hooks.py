"""Hooks: which functions of the application are called around an occurrence, and how, in threads of their own."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import field
from queue import Empty, SimpleQueue
from typing import Any

from everytick.domain.values import value

Hook = Callable[..., Any]

_IDLE_SECONDS = 10.0
"""A thread without a hook to call ends after this time: hooks come in bursts."""

_left_behind: set["asyncio.Future[BaseException | None]"] = set()
"""Hooks that did not end in time. A task that is referred to nowhere may be collected before it has ended."""


@value
class HookTable:
    """The hooks of an application by job id, as they are at one moment."""

    on_start: Mapping[str, Hook] = field(default_factory=dict)
    on_complete: Mapping[str, Hook] = field(default_factory=dict)


def hook_table(hooks: Mapping[str, Mapping[str, Hook]]) -> HookTable:
    """Return the table of these hooks: by job id, then by `on_start` or `on_complete`."""
    kinds = (
        {id_: by_kind[kind] for id_, by_kind in hooks.items() if kind in by_kind}
        for kind in ("on_start", "on_complete")
    )
    return HookTable(*kinds)


class HookThreads(Executor):
    """Daemon threads, begun when none is idle and ended when they have been idle for a while.

    The caller bounds how many there are. They are not asyncio's own threads: a hook that hangs would
    take one of those from other work, and keep the process from ending.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._idle = 0  # threads that wait and are promised to no call

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Have the call made at once, in a thread."""
        future: Future[Any] = Future()
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                threading.Thread(target=self._work, name="everytick hook", daemon=True).start()
            self._calls.put((future, lambda: fn(*args, **kwargs)))
        return future

    def _work(self) -> None:
        while True:
            try:
                future, call = self._calls.get(timeout=_IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._idle:
                        self._idle -= 1
                        return
                continue
            _answer(future, call)
            del future, call
            with self._lock:
                self._idle += 1


def _answer(future: "Future[Any]", call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001, the caller gets it
        future.set_exception(error)
    else:
        future.set_result(result)


async def call_hook(hook: Hook, argument: object, threads: HookThreads, seconds: float) -> BaseException | None:
    """Call the hook and return its exception, or TimeoutError if it did not end in this many seconds.

    The node goes on although the hook raises, `sys.exit` included. A hook that does not end is
    told to stop where that is possible, and left behind.
    """
    calling = asyncio.ensure_future(_exception_of(hook, argument, threads))
    try:
        done, _ = await asyncio.wait([calling], timeout=seconds)
    except asyncio.CancelledError:
        calling.cancel()
        raise
    if not done:
        calling.cancel()
        _left_behind.add(calling)
        calling.add_done_callback(_left_behind.discard)
        return TimeoutError(f"it has not ended after {seconds:g} seconds, and is left behind")
    return calling.result()


async def _exception_of(hook: Hook, argument: object, threads: HookThreads) -> BaseException | None:
    """Call the hook; nothing may leave its task as an exception, for SystemExit would end the loop."""
    try:
        await _call(hook, argument, threads)
    except BaseException as error:  # noqa: BLE001, it is not our code
        return error
    return None


async def _call(hook: Hook, argument: object, threads: HookThreads) -> None:
    """Call the hook with the argument if it takes one; one that is not async runs beside the loop."""
    arguments = (argument,) if inspect.signature(hook).parameters else ()
    if inspect.iscoroutinefunction(hook):
        await hook(*arguments)
        return
    carried = contextvars.copy_context()
    raised = await asyncio.get_running_loop().run_in_executor(threads, carried.run, _raised_by, hook, arguments)
    if raised is not None:
        raise raised


def _raised_by(hook: Hook, arguments: tuple[object, ...]) -> BaseException | None:
    """Call it in this thread; SystemExit must not go through a future, nor StopIteration through a coroutine."""
    try:
        hook(*arguments)
    except BaseException as error:  # noqa: BLE001, the caller gets it
        return RuntimeError(f"StopIteration: {error}") if isinstance(error, StopIteration) else error
    return None
