"""everytick under this suite: real stores and a real node, on a loop whose time passes only while all of them wait."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import everytick
from everytick import declarative
from everytick.declarative import presence
from everytick.errors import StoreUnavailable
from everytick.stores.memory import MemoryStore
from everytick.stores.sqlite.store import SqliteStore
from everytick.testing.virtual import VirtualLoop
from tests.conformance.declarative.adapter import NOON, Adapter, Forwarding, Scheduler, Story, T, TaskState, Told, World
from tests.conformance.declarative.documents import INVALID
from tests.conformance.declarative.host import host_in
from tests.servers.launch import Server
from tests.stores.postgres import kit

Clock: TypeAlias = Callable[[], datetime]
OpenStore: TypeAlias = Callable[[Clock], AbstractAsyncContextManager[Any]]


class Holding(VirtualLoop):
    """A virtual loop whose time stands still while a store is at work outside of it."""

    @contextmanager
    def held(self) -> Iterator[None]:
        self._elsewhere += 1
        try:
            yield
        finally:
            self._elsewhere -= 1


class Line:
    """The way from one instance to its store: it holds the time while a verb is under way, and it can be cut."""

    def __init__(self, store: Any, loop: Holding, refuses: Callable[[], bool]) -> None:
        self._store, self._loop, self._refuses = store, loop, refuses
        self.is_cut = self.is_over = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name == "bell":
            return self._bell
        if name in ("due", "transaction"):
            return partial(self._entered, found)
        return partial(self._asked, found) if inspect.iscoroutinefunction(found) else found

    def apart(self) -> None:
        """The beat has no thread of its own here: it would beat in real time."""

    async def _asked(self, verb: Callable[..., Awaitable[Any]], *given: Any, **named: Any) -> Any:
        await self._check()
        with self._loop.held():
            answer = await verb(*given, **named)
        await self._silence()
        return answer

    @asynccontextmanager
    async def _entered(self, verb: Callable[..., Any], *given: Any) -> Any:
        await self._check()
        with self._loop.held():
            async with verb(*given) as entered:
                yield entered

    async def _bell(self, seconds: float) -> bool:
        await self._silence()
        return bool(await self._store.bell(seconds))

    async def _check(self) -> None:
        await self._silence()
        if self._refuses():
            raise StoreUnavailable("the store", "this request was to be refused")

    async def _silence(self) -> None:
        """A call over a line that was cut waits for ever, until the story is over and all calls are ended."""
        if self.is_over:
            raise StoreUnavailable("the store", "the story is over")
        if self.is_cut:
            await self._loop.create_future()


class EverytickScheduler(Forwarding):
    """One `DeclarativeScheduler` on a line of its own."""

    def __init__(self, line: Line, listener: Callable[[Told], None] | None) -> None:
        self._line, self._listener = line, listener
        self.heard = []
        self.own = declarative.DeclarativeScheduler(store=line, listener=self._hear)

    def _hear(self, event: declarative.DeclarativeEvent) -> None:
        if self._line.is_cut:
            return
        told = Told(event.name, event.task, event.at)
        self.heard.append(told)
        if self._listener is not None:
            self._listener(told)

    def crash(self) -> None:
        self._line.is_cut = True
        if self.own.identifier is not None:
            presence.die(self.own.identifier)


class EverytickWorld(World):
    """The instances of one story and the stores they use, which see the same data."""

    def __init__(self, loop: Holding, begin: datetime) -> None:
        self._loop, self._begin = loop, begin
        self._lines: list[Line] = []
        self._broken = range(0)
        self._asked = 0
        self.own: Any = None

    @asynccontextmanager
    async def on(self, store: OpenStore) -> AsyncIterator[None]:
        """Open the store through which the suite itself looks; afterwards nothing runs any more and it is closed."""
        opened = store(self.now)
        with self._loop.held():
            self.own = await opened.__aenter__()
        try:
            yield
        finally:
            await self._end()
            with self._loop.held():
                await opened.__aexit__(None, None, None)

    async def _end(self) -> None:
        for line in self._lines:
            line.is_cut = line.is_over = True
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def now(self) -> datetime:
        return self._begin + timedelta(microseconds=round(self._loop.time() * 1e6))

    async def pass_by(self, seconds: float) -> None:
        over: asyncio.Future[None] = self._loop.create_future()
        timer = self._loop.call_later(seconds, over.set_result, None)
        try:
            await over
        finally:
            timer.cancel()

    def suspend(self, seconds: float) -> None:
        self._loop.jump(seconds)

    def scheduler(self, *, listener: Callable[[Told], None] | None = None) -> Scheduler:
        line = Line(self.own, self._loop, self._refuses)
        self._lines.append(line)
        return EverytickScheduler(line, listener)

    def _refuses(self) -> bool:
        self._asked += 1
        return self._asked in self._broken

    def break_store(self, after: int, times: int = 1_000_000) -> None:
        first = self._asked + after + 1
        self._broken = range(first, first + times)

    def mend_store(self) -> bool:
        has_refused = len(self._broken) > 0 and self._asked >= self._broken[0]
        self._broken = range(0)
        return has_refused

    async def task_states(self) -> Mapping[str, TaskState]:
        return await self._outside(declarative.task_states(self.own))

    async def document(self, task: str) -> Any:
        return await self._outside(declarative.state_document(self.own, task))

    async def write_document(self, task: str, document: Any) -> None:
        await self._outside(declarative.write_state_document(self.own, task, document))

    async def _outside(self, question: Coroutine[Any, Any, T]) -> T:
        with self._loop.held():
            return await question


class EverytickAdapter(Adapter):
    """everytick on one kind of store."""

    def __init__(self, store: Callable[[], OpenStore]) -> None:
        self._store = store

    def play(self, story: Story[T], *, begin: datetime = NOON, zone: str = "UTC") -> T:
        store, loop = self._store(), Holding()

        async def main() -> T:
            world = EverytickWorld(loop, begin)
            async with world.on(store):
                return await story(world)

        with host_in(zone), asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(main())

    def occurrences(self, cron: str, zone: str, after: datetime, through: datetime) -> list[datetime]:
        return list(everytick.cron(cron, tz=zone, dialect="posix").instants(after, through))

    def error(self, name: str) -> type[Exception]:
        found: type[Exception] = getattr(declarative, name)
        return found

    def details(self, error: BaseException) -> Mapping[str, Any]:
        found: Mapping[str, Any] = getattr(error, "details")  # noqa: B009, errors outside of the taxonomy have none
        return found

    def invalid_documents(self) -> list[tuple[str, Callable[[Any], Any], Mapping[str, Any]]]:
        return [*INVALID]


@asynccontextmanager
async def opened(store: Any) -> AsyncIterator[Any]:
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def in_memory() -> EverytickAdapter:
    return EverytickAdapter(lambda: lambda clock: opened(MemoryStore(clock)))


def in_sqlite(folder: Path) -> EverytickAdapter:
    numbers = iter(range(1_000_000))

    def fresh() -> OpenStore:
        file = folder / f"{next(numbers)}.db"
        return lambda clock: opened(SqliteStore(file, clock=clock))

    return EverytickAdapter(fresh)


def in_postgres(server: Server) -> EverytickAdapter:
    return EverytickAdapter(lambda: partial(kit.opened, server))
