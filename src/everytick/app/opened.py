"""The application's store: opened when it is first needed, on one event loop, and reachable from every other.

A driver's connections belong to the loop that made them. So the store has a home, the
loop that opened it, and whoever asks on another loop is answered from there.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload
from weakref import WeakSet

from everytick.app.handle import Handle
from everytick.domain.durations import duration, format_duration
from everytick.errors import NotFound

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task
    from collections.abc import Callable, Coroutine
    from datetime import datetime, timedelta

    from everytick.app.definition import Definition
    from everytick.domain.occurrence import EndedOccurrence
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord

T = TypeVar("T")

_AFTER_FORK = "call start_background() after the fork (gunicorn: in post_fork, or without --preload)"
FORKED_AFTER_START = (
    "this process was forked after start_background(): its node stayed in process %d, "
    f"and this process only asks the store; to have a node here, {_AFTER_FORK}"
)
FORKED_FROM_MEMORY = (
    "this process was forked after start_background(), and the store stayed in the memory of process {pid}: "
    f"give the application an address that processes can share, or {_AFTER_FORK}"
)


class Home:
    """A store and the loop it was opened on."""

    def __init__(self, store: AnyStore, loop: AbstractEventLoop, opening: Task[None] | None) -> None:
        self.store, self.loop, self.opening = store, loop, opening


class Bridge:
    """A store that lives on another loop: every verb is carried out there and answered here.

    What it holds open for its caller, a transaction or what is due, stays on its own loop.
    """

    def __init__(self, home: Home) -> None:
        self._home = home

    def __getattr__(self, verb: str) -> Any:
        from inspect import iscoroutinefunction

        act, loop = getattr(self._home.store, verb), self._home.loop
        if not callable(act):
            return act
        if not iscoroutinefunction(act):
            raise TypeError(f"{verb} can only be asked on the loop that opened the store")

        async def carried_out(*args: Any, **kwargs: Any) -> Any:
            import asyncio

            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(act(*args, **kwargs), loop))

        return carried_out


class Opened:
    """What operations and questions stand on: the store, and the jobs in it by name."""

    name: str
    _definitions: dict[str, Definition]

    def __init__(self, make_store: Callable[[], AnyStore], *, is_ours: bool) -> None:
        from everytick.node.listeners import Listeners

        self._listeners = Listeners()
        self._make_store, self._store_is_ours = make_store, is_ours
        self._home: Home | None = None
        self._moving = Lock()
        self._is_copy = False
        self._node_stayed_in: int | None = None
        _applications.add(self)

    def _forked(self) -> None:
        """Forget what the process had that this one is a copy of: its threads, loops and connections are not here."""
        originals.append(self._home)
        self._home, self._moving, self._is_copy = None, Lock(), True

    async def open(self) -> None:
        """Open the store, or refuse it with a reason; an application that is open stays so."""
        await self._opened()

    async def close(self) -> None:
        """Give back what opening took; closing twice is harmless, and the next operation opens it again."""
        import asyncio

        home, self._home = self._home, None
        if home is None or not self._store_is_ours:
            return
        if home.opening is not None and home.loop is asyncio.get_running_loop():
            # Whoever asked for it has gone, so that nobody is left to be told why it failed.
            await asyncio.gather(home.opening, return_exceptions=True)
        await _left_behind(home)

    async def _opened(self) -> AnyStore:
        """Return the store, opened; on any loop but its own, a bridge to it."""
        import asyncio

        here = asyncio.get_running_loop()
        with self._moving:
            left = self._home
            if left is None or (left.loop is not here and not left.loop.is_running()):
                self._home = self._new_home(left, here)
            home = self._home
        assert home is not None, "a home was found or made above"
        if home.loop is not here:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._opened(), home.loop))
            return cast("AnyStore", Bridge(home))
        if home.opening is not None and not (home.opening.done() and home.opening.exception() is None):
            # Waited for by all who ask meanwhile: it goes on if one of them is canceled.
            await asyncio.wait([home.opening])
            failed = home.opening.exception()
            if failed is not None:
                if self._home is home:
                    self._home = None
                raise failed
        return home.store

    async def _at_home(self) -> AnyStore:
        """Return the store, opened on this loop: a node is given more than a bridge can carry."""
        import asyncio

        here = asyncio.get_running_loop()
        with self._moving:
            left = self._home
            if left is not None and left.loop is not here and left.loop.is_running():
                if not self._store_is_ours and left.store.address.is_remote:
                    raise RuntimeError("the store was opened on another loop: start the application there")
                self._home = self._new_home(left, here)
        return await self._opened()

    def _new_home(self, left: Home | None, here: AbstractEventLoop) -> Home:
        """The store on this loop; what another had opened is made anew, unless it lives in memory or is given."""
        if not self._store_is_ours:
            store = self._make_store()
            if self._is_copy and not store.address.is_in_memory:
                raise RuntimeError(
                    "the store was opened before this process was forked: "
                    "give the application an address, and each process opens its own"
                )
            return Home(store, here, None)
        if left is not None and left.store.address.is_in_memory:
            return Home(left.store, here, None)
        store = self._make_store()
        self._tell_fork(store)

        async def begin() -> None:
            if left is not None:
                await _left_behind(left)
            await store.open()

        return Home(store, here, here.create_task(begin()))

    def _tell_fork(self, store: AnyStore) -> None:
        """Log once that the node stayed in another process; refuse a store in that process's memory."""
        node_pid, self._node_stayed_in = self._node_stayed_in, None
        if node_pid is None:
            return
        if store.address.is_in_memory:
            self._node_stayed_in = node_pid
            raise RuntimeError(FORKED_FROM_MEMORY.format(pid=node_pid))
        from logging import getLogger

        getLogger("everytick").warning(FORKED_AFTER_START, node_pid)

    @overload
    def wait(self, asked: Handle, timeout: timedelta | str | None = None) -> EndedOccurrence: ...

    @overload
    def wait(self, asked: Coroutine[Any, Any, T], timeout: timedelta | str | None = None) -> T: ...

    def wait(self, asked: Handle | Coroutine[Any, Any, Any], timeout: timedelta | str | None = None) -> Any:
        """Return the answer to an operation or question, or the end of what a handle stands for, in any thread.

        No node needs to run here: without one the store is opened in a thread of its own. Inside a coroutine,
        `await` says the same.
        """
        import asyncio

        waited = asked.wait() if isinstance(asked, Handle) else asked
        home, running = self._home, running_loop()
        elsewhere = home.loop if home is not None and home.loop.is_running() and home.loop is not running else None
        if elsewhere is None:
            if refused := self._why_not_asked_elsewhere(running):
                waited.close()
                raise RuntimeError(refused)
            from everytick.app.asking_loop import asking_loop

            elsewhere = asking_loop(_close_stores)
        future = asyncio.run_coroutine_threadsafe(waited, elsewhere)
        within = None if timeout is None else duration(timeout)
        try:
            return future.result(None if within is None else within.total_seconds())
        except TimeoutError:
            if within is None or not future.cancel():
                raise
            missing = f"there was no answer within {format_duration(within)}"
            raise TimeoutError(asked.not_ended(within) if isinstance(asked, Handle) else missing) from None

    def _why_not_asked_elsewhere(self, running: AbstractEventLoop | None) -> str | None:
        """Say why the store cannot be asked on a loop of its own; None if it can."""
        if running is not None:
            return "wait() would stop the event loop that runs here: use await instead"
        if not self._store_is_ours and not self._make_store().address.is_in_memory:
            return (
                "wait() does not know on which event loop this store was opened: "
                "give the application an address instead of a store, or await on that loop first"
            )
        return None

    def _learned(self) -> None:
        """Definitions were stored: a node that runs here may know more functions now."""

    def _by(self, by: str | None) -> str:
        return f"code:{self.name}" if by is None else by

    def _itself(self) -> AnyStore:
        """Return the store itself, also on another loop than its own: for what only a connection of that loop does."""
        assert self._home is not None, "it was opened before"
        return self._home.store

    async def _find(self, store: AnyStore, name: str, *, removed: bool = False, storing: bool = True) -> JobRecord:
        """Return the job of this name; one that was defined here and never stored is stored first, if `storing`."""
        from everytick.domain.ids import job_id

        id_ = job_id(name)
        found = (await store.get([id_])).get(id_)
        if found is not None and found.job.name == name and (removed or found.removed_at is None):
            return found
        for record in await store.list(removed=removed):
            if record.job.name == name:
                return record
        defined = self._definitions.get(id_)
        if found is None and defined is not None and storing:
            from everytick.domain.changes import Put

            # Before it is stored: its first occurrence may begin at once, and its hooks must be known by then.
            self._learned()
            [stored] = await store.apply([Put(defined.job)], f"code:{self.name}")
            self._learned()
            return (await store.get([stored.job_id]))[stored.job_id]
        raise NotFound("job", name)

    async def _find_past(self, store: AnyStore, name: str) -> JobRecord:
        """Return the job of this name, in service or removed, or else one that had it before it was renamed."""
        from everytick.domain.ids import job_id

        try:
            return await self._find(store, name, removed=True, storing=False)
        except NotFound:
            renamed = (await store.get([job_id(name)])).get(job_id(name)) or await _once_named(store, name)
            if renamed is None:
                raise
            return renamed


async def _once_named(store: AnyStore, name: str) -> JobRecord | None:
    """Return the job that had this name last, by its versions. Only jobs that were renamed are looked through."""
    from everytick.domain.ids import job_id

    found: list[tuple[datetime, JobRecord]] = []
    for record in await store.list(removed=True):
        if record.job.id != job_id(record.job.name):
            editions = await store.editions(record.job.id, range(1, record.job.version + 1))
            named = [edition.job.updated_at for edition in editions if edition.job.name == name]
            found += [(at, record) for at in named if at is not None]
    return max(found, key=lambda dated: dated[0])[1] if found else None


_applications: WeakSet[Opened] = WeakSet()
originals: list[object] = []
"""What belongs to the process this one was forked from: kept, for letting go of a connection would close it."""


def applications() -> tuple[Opened, ...]:
    """Return the applications of this process."""
    return tuple(_applications)


def _after_fork() -> None:
    for application in tuple(_applications):
        application._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def running_loop() -> AbstractEventLoop | None:
    """Return the event loop that runs in this thread, or None."""
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _close_stores(loop: AbstractEventLoop) -> None:
    """Close every store that was opened on this loop."""
    for application in tuple(_applications):
        if application._home is not None and application._home.loop is loop:
            await application.close()


async def _left_behind(home: Home) -> None:
    """Close a store on its own loop, or on this one if that has ended, where it can be closed here."""
    import asyncio

    if home.loop is not asyncio.get_running_loop() and home.loop.is_running():
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(home.store.close(), home.loop))
    elif not home.loop.is_closed() or not home.store.address.is_remote:
        await home.store.close()
