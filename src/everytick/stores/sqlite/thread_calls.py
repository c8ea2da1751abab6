"""Calls that loops hand to a thread, and how the answers come back to them."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from threading import Thread
from typing import Any, Generic, TypeVar

from everytick.domain.values import value

G = TypeVar("G")
T = TypeVar("T")


@value
class Call(Generic[G]):
    """Work for a thread, which passes it its connection, and the future of the waiting caller."""

    work: Callable[[G], Any]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Any]"


@value
class CallResult:
    """The result of one call."""

    result: Any = None
    error: BaseException | None = None
    rang: bool = False


def call(work: Callable[[G], Any]) -> Call[G]:
    """Return a call whose result goes to the running loop."""
    loop = asyncio.get_running_loop()
    return Call(work, loop, loop.create_future())


async def in_own_thread(work: Callable[[], T], name: str) -> T:
    """Run the work in a new thread and return its result: the threads of the loop's pool may all be busy."""
    asked: Call[None] = call(lambda _: work())

    def do() -> None:
        try:
            answer = CallResult(asked.work(None))
        except BaseException as error:  # noqa: BLE001  whatever it is, the one who waits must hear of it
            answer = CallResult(error=error)
        deliver([asked], [answer])

    Thread(target=do, name=name, daemon=True).start()
    result: T = await asked.future
    return result


def deliver(calls: Sequence[Call[Any]], answers: Sequence[CallResult]) -> None:
    """Give each loop all its answers by one call: waking a loop costs more than the answer."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], CallResult]]] = {}
    for call, answer in zip(calls, answers, strict=True):
        by_loop.setdefault(call.loop, []).append((call.future, answer))
    for loop, pairs in by_loop.items():
        # The loop has ended, and its waiter with it.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, pairs)


def _settle(pairs: "Sequence[tuple[asyncio.Future[Any], CallResult]]") -> None:
    for future, answer in pairs:
        if future.done():
            continue
        if answer.error is None:
            future.set_result(answer.result)
        else:
            future.set_exception(answer.error)
