"""The beat: says that the node lives, and brings the store's orders.

It has a thread, a loop and a connection of its own: a task that blocks the node's loop
does not make the node look dead. A store in memory lives in one loop: there it beats on that.
"""

import asyncio
import logging
import threading
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

from everytick.errors import StoreGone, StoreUnavailable
from everytick.node.health import Backoff, Health
from everytick.node.inbox import Inbox, OrdersCame, StoreLost
from everytick.node.occurrence import OwnedKeys
from everytick.stores.base import Orders
from everytick.stores.protocols import BeatVerb, RunStore

_log = logging.getLogger("everytick.beat")

_BLOCKED_SECONDS = 1.0
"""A loop that has not turned for this long is blocked: well-behaved tasks hold it for milliseconds."""

_NUDGED_SECONDS = 0.2
"""The shortest time between two beats: a store may ring its bell all the time."""

_STOP_SECONDS = 10.0
"""How long a node that stops waits for the last beat: a store that is away must not keep it from ending."""

_ANSWER_SECONDS = 5.0
"""How long the answer to a beat may take; at intervals over a second, four intervals."""


class Beat:
    """Beats every `interval` seconds until it is stopped, which is the last thing a node does."""

    def __init__(
        self,
        store: RunStore,
        node: str,
        interval: float,
        health: Health,
        inbox: Inbox,
        owned: OwnedKeys,
    ) -> None:
        self._store, self._node, self._interval, self._health = store, node, interval, health
        self._inbox, self._owned = inbox, owned
        self._ended: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._own_loop: asyncio.AbstractEventLoop | None = None
        self._early: asyncio.Event | None = None
        self._over = threading.Event()

    async def start(self) -> None:
        """Beat once, so that the node is known before it claims, and go on."""
        loop = asyncio.get_running_loop()
        self._inbox.put(OrdersCame(await self._store.beat(self._node, self._owned.named())))
        apart = self._store.apart()
        if apart is None:
            self._start_here(loop)
        else:
            await self._start_thread(loop, apart)

    def _start_here(self, loop: asyncio.AbstractEventLoop) -> None:
        """Beat on the node's own loop: the store belongs to it. Only the watch over the loop needs a thread."""
        self._early = asyncio.Event()
        self._task = loop.create_task(self._forever(self._store, loop))
        if _is_real_time(loop):
            watch = LoopWatch(loop, self._owned)
            threading.Thread(target=self._watch, args=[watch], name="everytick-watch", daemon=True).start()

    async def _start_thread(
        self, loop: asyncio.AbstractEventLoop, apart: AbstractAsyncContextManager[BeatVerb]
    ) -> None:
        """Beat in a thread with a loop and a connection of its own; return once that connection is open."""
        is_open: asyncio.Future[None] = loop.create_future()
        ended = self._ended = asyncio.Event()

        def run() -> None:
            try:
                asyncio.run(live())
            finally:
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(ended.set)

        async def live() -> None:
            own_loop = self._own_loop = asyncio.get_running_loop()
            self._early = asyncio.Event()
            try:
                async with apart as store:
                    loop.call_soon_threadsafe(_settle, is_open, None)
                    watch = own_loop.create_task(_watch(LoopWatch(loop, self._owned)))
                    try:
                        await self._forever(store, loop)
                    finally:
                        watch.cancel()
            except Exception as error:  # noqa: BLE001, raised again on the node's loop, which waits for `is_open`
                loop.call_soon_threadsafe(_settle, is_open, error)

        threading.Thread(target=run, name="everytick-beat", daemon=True).start()
        try:
            await is_open
        except BaseException:
            await self.stop()
            raise

    def _watch(self, watch: "LoopWatch") -> None:
        """Look every second until the node stops."""
        with suppress(RuntimeError):
            while not self._over.wait(_BLOCKED_SECONDS):
                watch.look()

    def nudge(self) -> None:
        """Beat early: there may be orders."""
        loop, early = self._own_loop, self._early
        if early is None:
            return
        if loop is None:
            early.set()
        else:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(early.set)

    async def stop(self) -> None:
        """Beat no more."""
        self._over.set()
        self.nudge()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._ended is not None:
            # Not joined in another thread: at the end of a process no new one can be had.
            with suppress(TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await self._ended.wait()

    async def _answered(self, beat: Coroutine[Any, Any, Orders]) -> Orders:
        """Return the answer; the next beat is not sent while this one may still come through."""
        under_way = asyncio.ensure_future(beat)
        # Nothing waits for the answer of a beat that is given up.
        under_way.add_done_callback(_pass_over)
        try:
            done, _ = await asyncio.wait([under_way], timeout=max(4 * self._interval, _ANSWER_SECONDS))
        finally:
            under_way.cancel()
        if not done:
            raise StoreUnavailable("the store", "a beat was not answered")
        return under_way.result()

    def _pass_on(self, loop: asyncio.AbstractEventLoop, event: OrdersCame | StoreLost) -> None:
        if loop is asyncio.get_running_loop():
            self._inbox.put(event)
        else:
            self._inbox.put_from_thread(loop, event)

    async def _forever(self, store: BeatVerb, loop: asyncio.AbstractEventLoop) -> None:
        """Beat, and put the orders into the inbox on the node's loop."""
        backoff, wait, early = Backoff(), self._interval, self._early
        assert early is not None, "made before the first beat"
        while not self._over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await early.wait()
            early.clear()
            if self._over.is_set():
                return
            try:
                orders = await self._answered(store.beat(self._node, self._owned.named()))
            except StoreGone as error:
                self._pass_on(loop, StoreLost(error))
                return
            except StoreUnavailable as error:
                self._health.beat_failed(str(error))
                wait = min(backoff.failed(error), self._interval)
            except Exception:  # noqa: BLE001, a node that stops beating by mistake would lose all it runs
                _log.exception(
                    "a beat failed; it is tried again, and others take over if none succeeds for node_timeout"
                )
                self._health.beat_failed("a beat failed")
                wait = min(backoff.failed(), self._interval)
            else:
                self._pass_on(loop, OrdersCame(orders))
                self._health.has_beaten()
                backoff.succeeded()
                wait = self._interval
                await asyncio.sleep(min(_NUDGED_SECONDS, self._interval / 4))


def _pass_over(beat: "asyncio.Future[Orders]") -> None:
    """Read the result of an abandoned beat, so that asyncio does not report an error that was never retrieved."""
    if not beat.cancelled():
        beat.exception()


async def _watch(watch: "LoopWatch") -> None:
    with suppress(RuntimeError):
        while True:
            await asyncio.sleep(_BLOCKED_SECONDS)
            watch.look()


class LoopWatch:
    """Warns about a node's loop that stands still: everything on it is late. It is asked from another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, owned: OwnedKeys) -> None:
        self._loop, self._owned = loop, owned
        self._turned, self._waited = threading.Event(), 0.0
        self._turned.set()

    def look(self) -> None:
        """See whether the loop has turned since the last look, a second ago. Raise RuntimeError if it is closed."""
        if self._turned.is_set():
            if self._waited > _BLOCKED_SECONDS:
                _log.warning("the node's loop turns again after about %.0f seconds; work goes on", self._waited)
            self._turned, self._waited = threading.Event(), 0.0
            self._loop.call_soon_threadsafe(self._turned.set)
            return
        self._waited += _BLOCKED_SECONDS
        if self._waited == _BLOCKED_SECONDS:
            self._tell(self._owned.latest_job)

    def _tell(self, job: str) -> None:
        if not job:
            text = (
                "the node's loop has stood still for over a second, and no job has begun; work is late until it turns"
            )
            _log.warning(text)
            return
        _log.warning(
            "the node's loop has stood still for over a second; the last to begin was job '%s': "
            "async tasks must not block, make it a plain function to run it in a thread",
            job,
        )


def _is_real_time(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the loop waits as long as it is told to. One of a test on virtual time does not."""
    return not isinstance(loop, asyncio.BaseEventLoop) or type(loop).time is asyncio.BaseEventLoop.time


def _settle(future: "asyncio.Future[None]", error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
