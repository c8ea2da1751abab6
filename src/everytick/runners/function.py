"""The function runner: an async function, on the node's own event loop.

This is the path of every no-op benchmark: one call, one await, no task, no timer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, TypeAlias

from everytick.domain.outcome import Failed, Outcome, error_types
from everytick.runners.context import Context
from everytick.runners.forks import generation, leave_copy
from everytick.runners.outcomes import NOTHING, failed, succeeded
from everytick.runners.signature import Signature, Unfilled, may_ask_for_previous, signature_of

ContextCall: TypeAlias = Callable[[Context], Any]


class FunctionBody:
    """Awaits a function on the loop (S0-026); a timeout or cancel is a CancelledError inside it.

    A function that catches CancelledError and goes on keeps the worker that runs it: a coroutine
    cannot be killed. So the node leaves both alone after the grace period.
    """

    __slots__ = ("_call", "wants_previous")

    begins_later = False

    def __init__(self, function: Callable[..., Awaitable[Any]]) -> None:
        signature = signature_of(function)
        self._call: ContextCall = call_of(function, signature)
        self.wants_previous = may_ask_for_previous(function, signature)

    async def run(self, context: Context) -> Outcome:
        """Await the function. Its result or its exception is the outcome."""
        born = generation.number
        try:
            result = await self._call(context)
        except asyncio.CancelledError as error:
            outcome = self._canceled(context, error)
        except BaseException as error:  # noqa: BLE001 - sys.exit in a task ends the task, not the node
            outcome = raised(error)
        else:
            outcome = NOTHING if result is None else succeeded(result)
        if generation.number != born:
            leave_copy()
        return outcome

    def _canceled(self, context: Context, error: asyncio.CancelledError) -> Outcome:
        """Raise a cancel that the node asked for. A CancelledError that the function raised itself is a failure."""
        task = asyncio.current_task()
        if context._halt is not None or (task is not None and task.cancelling()):
            raise error
        return failed(error)


class LoopBody(FunctionBody):
    """Calls a plain function on the event loop, which is blocked by it. Its return value may be awaitable."""

    __slots__ = ()

    def __init__(self, function: Callable[..., Any]) -> None:
        async def on_the_loop(*positional: object, **named: object) -> object:
            result = function(*positional, **named)
            return await result if isawaitable(result) else result

        super().__init__(function)
        self._call = call_of(on_the_loop, signature_of(function))


def call_of(function: Callable[..., Any], signature: Signature) -> ContextCall:
    """Return a callable that calls the function with a context, with as little work per call as possible."""
    if signature.context_first:
        return function
    if signature.context is None and not signature.takes_payload:
        return lambda context: function()
    return lambda context: function(
        **signature.arguments(context, context.payload if signature.takes_payload else None)
    )


def raised(error: BaseException) -> Failed:
    """Return the failure. A payload that does not fit is not retried: it would not fit again."""
    if isinstance(error, Unfilled):
        return Failed(str(error), error_types(error), give_up=True)
    return failed(error)
