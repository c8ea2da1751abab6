"""One engine as this node uses it: attempts are handed over in batches, and wait here for their ends.

There is one question for many attempts, never a thread or a loop for each. Those that began lately are asked about
often, older ones more seldom: a task of an hour need not be noticed within milliseconds, and ten thousand of them must
not keep the engine busy with answers.
"""

import asyncio
import heapq
import logging
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from everytick.domain.outcome import Failed, Outcome
from everytick.runners.outcomes import bounded

if TYPE_CHECKING:
    from everytick.runners.engines import EngineAdapter, Work

_log = logging.getLogger("everytick.engines")

T = TypeVar("T")

_BATCH = 500
"""Most attempts in one call to the engine: an engine that gets more at once answers other nodes too late."""

_SHORTEST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.05, 2.0
"""Between two questions about one attempt. A wait grows with the age of the attempt and stays between these."""

_PART_OF_AGE = 0.1
"""An attempt of a second is asked about every 100 ms: its end is recorded a tenth of its length too late at most."""

_AGAIN_SECONDS = 1.0
"""How long to wait before an engine that did not answer is asked again."""

_UNDER_WAY_SECONDS = 20.0
"""How long a canceled hand-over waits for the engine's answer: it must know whether there is anything to stop."""


class EngineDesk:
    """Hands attempts over to one engine and brings their outcomes back, in batches."""

    def __init__(self, adapter: "EngineAdapter") -> None:
        self.adapter = adapter
        self._sending_thread = ThreadPoolExecutor(1, f"everytick-{adapter.name}")
        self._polling_thread = ThreadPoolExecutor(1, f"everytick-{adapter.name}-results")
        self._unsent: dict[str, tuple[Work, asyncio.Future[Exception | None]]] = {}
        """The work to hand over, by id, each with the future that says why the engine refused it, or None."""
        self._under_way: dict[str, asyncio.Future[Exception | None]] = {}
        """The work of the call that is being made now."""
        self._sent: set[str] = set()
        """The ids of work that the engine has and whose end is not known here."""
        self._cancels: dict[str, asyncio.Future[None] | None] = {}
        """The ids to stop, each with the future of the attempt that waits until the engine was told."""
        self._forgotten: list[str] = []
        """The ids that the engine may forget."""
        self._waiting: dict[str, tuple[asyncio.Future[Outcome], float]] = {}
        """The attempts that wait for their ends, by id, and since when on the loop's clock."""
        self._due: list[tuple[float, str]] = []
        """A heap: when to ask about which of them."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """The two loops, `sending` and `polling`, while each has work."""
        self._has_work = asyncio.Event()
        self._reaching: asyncio.Future[None] | None = None
        """The look whether the engine answers, which all attempts share that begin meanwhile."""
        self._is_closed = False

    # ---------------------------------------------------------------------------------------------- for the attempts

    async def reached(self) -> None:
        """Return once the engine answers. Only then may an attempt be noted as handed over."""
        if self._reaching is None:
            self._reaching = asyncio.ensure_future(self._reach())
            self._reaching.add_done_callback(self._forget_reach)
        await asyncio.shield(self._reaching)

    async def submit(self, work: "Work") -> Outcome | None:
        """Hand the work over. Return None once the engine has it, and a failure if it refuses it.

        If this is canceled, the engine does not get the work. If the work is just being sent, wait for the answer.
        """
        from everytick.runners.engines import EngineUnreachable

        while True:
            answered: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
            self._unsent[work.id] = work, answered
            self._begin("sending", self._send)
            try:
                refused = await asyncio.shield(answered)
            except asyncio.CancelledError:
                if self._unsent.pop(work.id, None) is None:
                    await asyncio.wait([answered], timeout=_UNDER_WAY_SECONDS)
                raise
            if not isinstance(refused, EngineUnreachable):
                return None if refused is None else _not_taken(self.adapter.name, refused)
            await asyncio.sleep(_AGAIN_SECONDS)

    def has_sent(self, id_: str) -> bool:
        """Whether the engine may have the work of this id."""
        return id_ in self._sent or id_ in self._under_way

    async def outcome(self, id_: str) -> Outcome:
        """Return how the attempt of this id ended, once it has."""
        loop = asyncio.get_running_loop()
        self._sent.add(id_)
        ended: asyncio.Future[Outcome] = loop.create_future()
        self._waiting[id_] = ended, loop.time()
        heapq.heappush(self._due, (loop.time(), id_))
        self._begin("polling", self._poll)
        try:
            return await ended
        finally:
            self._waiting.pop(id_, None)
            self._sent.discard(id_)

    async def cancel(self, id_: str) -> None:
        """Return once the engine was told to stop it."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._cancels[id_] = told
        self._begin("sending", self._send)
        await told

    def cancel_soon(self, id_: str) -> None:
        """Tell the engine to stop it."""
        self._cancels.setdefault(id_, None)
        self._begin("sending", self._send)

    def forget_soon(self, id_: str) -> None:
        """Let the engine free what it keeps about it."""
        self._forgotten.append(id_)
        self._begin("sending", self._send)

    def close(self) -> None:
        """End the threads, and the connection after what is being sent."""
        self._is_closed = True
        for task in self._tasks.values():
            task.cancel()
        self._sending_thread.submit(self._close_adapter)
        self._sending_thread.shutdown(wait=False)
        self._polling_thread.shutdown(wait=False, cancel_futures=True)

    # ----------------------------------------------------------------------------------------------------- the loops

    def _begin(self, name: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run one of the two loops while there is work for it."""
        self._has_work.set()
        running = self._tasks.get(name)
        if not self._is_closed and (running is None or running.done()):
            self._tasks[name] = asyncio.get_running_loop().create_task(self._guarded(name, work))

    async def _guarded(self, name: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        try:
            while True:
                try:
                    await work()
                    break
                except Exception:  # noqa: BLE001, whatever a client library raises: the attempts of others wait here
                    _log.exception("%s: %s failed; it is tried again every second", self.adapter.name, name)
                    await asyncio.sleep(_AGAIN_SECONDS)
        finally:
            self._tasks.pop(name, None)

    async def _send(self) -> None:
        """Send the attempts to hand over, to stop and to forget that have gathered, until none is left."""
        while self._unsent or self._cancels or self._forgotten:
            if self._unsent:
                await self._send_some()
            if self._cancels:
                await self._cancel_some()
            if self._forgotten:
                await self._forget_some()

    async def _send_some(self) -> None:
        # Give way to the event loop once: attempts that begin together are handed over together.
        await asyncio.sleep(0)
        some = [self._unsent.pop(id_) for id_ in list(self._unsent)[:_BATCH]]
        self._under_way = {work.id: answered for work, answered in some}
        try:
            answers = await self._in(self._sending_thread, lambda: self.adapter.submit([work for work, _ in some]))
        except Exception as error:  # noqa: BLE001, whatever a client library raises
            text = "%s: %d attempts could not be handed over: they fail, and the retry policy of each job decides"
            _log.exception(text, self.adapter.name, len(some))
            answers = [error] * len(some)
        self._under_way = {}
        for (work, answered), refused in zip(some, answers, strict=True):
            if refused is None:
                self._sent.add(work.id)
            if not answered.done():
                answered.set_result(refused)

    async def _cancel_some(self) -> None:
        from everytick.runners.engines import EngineUnreachable

        some, self._cancels = self._cancels, {}
        try:
            await self._in(self._sending_thread, lambda: self.adapter.cancel(list(some)))
        except EngineUnreachable as error:
            text = "%s cannot be told to stop %d tasks: %s; it is told again until their grace periods end"
            _log.warning(text, self.adapter.name, len(some), error)
            self._cancels = {**some, **self._cancels}
            await asyncio.sleep(_AGAIN_SECONDS)
            # Stops whose attempt no longer waits for them are given up: its grace period is over.
            self._cancels = {id_: told for id_, told in self._cancels.items() if told is not None and not told.done()}
            return
        except Exception:  # noqa: BLE001, whatever a client library raises: the attempts wait for it
            text = "%s refuses to stop %d tasks: they may go on there, and their results are not recorded"
            _log.exception(text, self.adapter.name, len(some))
        for told in some.values():
            if told is not None and not told.done():
                told.set_result(None)

    async def _forget_some(self) -> None:
        from everytick.runners.engines import EngineUnreachable

        some, self._forgotten = self._forgotten[:_BATCH], self._forgotten[_BATCH:]
        try:
            await self._in(self._sending_thread, partial(self.adapter.forget, some))
        except EngineUnreachable as error:
            text = "%s cannot be told to free %d results: %s; it is told again once it answers"
            _log.debug(text, self.adapter.name, len(some), error)
            self._forgotten = [*some, *self._forgotten]
            await asyncio.sleep(_AGAIN_SECONDS)
        except Exception:  # noqa: BLE001, the same
            text = "%s refuses to free %d results: it keeps them until it is restarted"
            _log.exception(text, self.adapter.name, len(some))

    async def _poll(self) -> None:
        """Ask how attempts ended, each at its own time, until no attempt waits."""
        loop, is_away = asyncio.get_running_loop(), False
        while self._waiting:
            some = self._take_due(loop.time())
            if not some:
                await self._rest(loop.time())
                continue
            try:
                ended = await self._in(self._polling_thread, partial(self.adapter.poll, some))
            except Exception as error:  # noqa: BLE001, whatever a client library raises about its server
                if not is_away:
                    _log.warning("%s does not say how tasks ended: %s; it is asked again", self.adapter.name, error)
                is_away, ended = True, {}
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                if is_away:
                    _log.info("%s answers again: the ends of its tasks are recorded", self.adapter.name)
                is_away = False
            self._settle(some, ended, loop.time())

    def _take_due(self, now: float) -> list[str]:
        some: list[str] = []
        while self._due and self._due[0][0] <= now and len(some) < _BATCH:
            _, id_ = heapq.heappop(self._due)
            if id_ in self._waiting:
                some.append(id_)
        return some

    async def _rest(self, now: float) -> None:
        """Wait until an attempt is to be asked about, or a new attempt waits."""
        self._has_work.clear()
        try:
            async with asyncio.timeout(max(self._due[0][0] - now, 0.0) if self._due else _LONGEST_WAIT_SECONDS):
                await self._has_work.wait()
        except TimeoutError:
            return
        # Wait 10 ms: attempts that begin together are asked about together.
        await asyncio.sleep(_SHORTEST_WAIT_SECONDS / 5)

    def _settle(self, ids: list[str], ended: Mapping[str, Outcome], now: float) -> None:
        for id_ in ids:
            if id_ not in self._waiting:
                continue
            waiter, since = self._waiting[id_]
            if id_ in ended:
                if not waiter.done():
                    waiter.set_result(ended[id_])
            else:
                wait = min(max((now - since) * _PART_OF_AGE, _SHORTEST_WAIT_SECONDS), _LONGEST_WAIT_SECONDS)
                heapq.heappush(self._due, (now + wait, id_))

    async def _reach(self) -> None:
        from everytick.runners.engines import EngineUnreachable

        is_away = False
        while True:
            try:
                await self._in(self._sending_thread, self.adapter.reach)
            except EngineUnreachable as error:
                if not is_away:
                    text = "%s is not reached: %s; attempts wait for it until their timeouts"
                    _log.warning(text, self.adapter.name, error)
                is_away = True
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                return

    def _forget_reach(self, _: "asyncio.Future[None]") -> None:
        self._reaching = None

    async def _in(self, thread: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(thread, work)

    def _close_adapter(self) -> None:
        try:
            self.adapter.close()
        except Exception as error:  # noqa: BLE001, the process is about to end, and nothing depends on it
            _log.info("the connection to %s was not closed: %s; it ends with this process", self.adapter.name, error)


def _not_taken(engine: str, refused: Exception) -> Failed:
    """Return the failure of an attempt that the engine refuses: the retry policy decides what follows."""
    return Failed(bounded(f"{engine} did not take the task: {type(refused).__name__}: {refused}"))
