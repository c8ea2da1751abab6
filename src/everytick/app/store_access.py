"""The application's store: opened when it is first needed, on one event loop, and reachable from every other.

A driver's connections belong to the event loop that made them. So a call on another loop is carried out on the loop
that opened the store.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload
from weakref import WeakSet

from everytick.app.acting import acting, acting_as, signed, unsigned
from everytick.app.handle import Handle
from everytick.domain.durations import duration, format_duration
from everytick.domain.lookups import Editions
from everytick.errors import NotFound

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task
    from collections.abc import Callable, Coroutine, Iterator
    from contextlib import AbstractContextManager
    from datetime import datetime, timedelta

    from everytick.app.definition import Definition
    from everytick.app.people import People
    from everytick.domain.job import Job
    from everytick.domain.occurrence import EndedOccurrence
    from everytick.domain.people import Doer
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord, StoreAddress

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


class OpenedStore:
    """A store and the loop it was opened on."""

    def __init__(self, store: AnyStore, loop: AbstractEventLoop, opening: Task[None] | None) -> None:
        self.store, self.loop, self.opening = store, loop, opening


class Bridge:
    """A store that was opened on another loop: every verb is carried out there, and its answer returned here.

    Verbs that return a context manager, `due` and `transaction`, work only on the store's own loop.
    """

    def __init__(self, opened: OpenedStore) -> None:
        self._opened_store = opened

    def __getattr__(self, verb: str) -> Any:
        part = getattr(self._opened_store.store, verb)
        if verb == "access":
            return _BridgedPart(part, self._opened_store.loop)
        return _carried(part, verb, self._opened_store.loop)


class _BridgedPart:
    """A part of a store, such as `access`, whose verbs are carried out on the store's loop."""

    def __init__(self, part: object, loop: AbstractEventLoop) -> None:
        self._part, self._loop = part, loop

    def __getattr__(self, verb: str) -> Any:
        return _carried(getattr(self._part, verb), verb, self._loop)


def _carried(act: Any, verb: str, loop: AbstractEventLoop) -> Any:
    """Return a verb that is carried out on the store's loop; a plain value as it is."""
    from inspect import iscoroutinefunction

    if not callable(act):
        return act
    if not iscoroutinefunction(act):
        raise TypeError(f"{verb} can only be asked on the loop that opened the store")

    async def carried_out(*args: Any, **kwargs: Any) -> Any:
        import asyncio

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(act(*args, **kwargs), loop))

    return carried_out


class StoreAccess:
    """Opens the application's store when it is needed, and finds jobs in it by name."""

    name: str
    _definitions: dict[str, Definition]

    def __init__(self, make_store: Callable[[], AnyStore], *, is_ours: bool) -> None:
        from everytick.node.events import Listeners

        self._listeners = Listeners()
        self._make_store, self._store_is_ours = make_store, is_ours
        self._opened_store: OpenedStore | None = None
        self._beside: OpenedStore | None = None
        self._moving = Lock()
        self._is_copy = False
        self._node_stayed_in: int | None = None
        _applications.add(self)

    def _forked(self) -> None:
        """Drop the store in a forked process: the parent's threads, loops and connections do not work here."""
        originals.extend(opened for opened in (self._opened_store, self._beside) if opened is not None)
        self._opened_store, self._beside, self._moving, self._is_copy = None, None, Lock(), True

    async def open(self) -> None:
        """Open the store, or refuse it with a reason. An open store stays open."""
        await self._opened()

    async def close(self) -> None:
        """Close the store. A second call does nothing, and the next operation opens it again."""
        import asyncio

        opened, self._opened_store = self._opened_store, None
        if opened is None or not self._store_is_ours:
            return
        if opened.opening is not None and opened.loop is asyncio.get_running_loop():
            # Retrieve the error of an opening that no caller waits for any more.
            await asyncio.gather(opened.opening, return_exceptions=True)
        await _close_store(opened)

    async def open_beside(self) -> None:
        """Open a second store, for this loop alone: large answers that are read here do not hold up the node's loop.

        A store in memory, or one that was passed as an object, stays the only one, and is reached through a bridge. So
        does one whose file was deleted meanwhile: to open it would make another file in its place.
        """
        import asyncio

        if not self._store_is_ours:
            return
        store = self._make_store()
        file = store.address.file
        if store.address.is_in_memory or (file is not None and not file.exists()):
            return
        await store.open()
        self._beside = OpenedStore(store, asyncio.get_running_loop(), None)

    async def close_beside(self) -> None:
        """Close the second store. A second call does nothing."""
        beside, self._beside = self._beside, None
        if beside is not None:
            await beside.store.close()

    def node_loop(self) -> AbstractEventLoop | None:
        """Return the loop that opened the store, where the node runs; None if no loop has."""
        return None if self._opened_store is None else self._opened_store.loop

    @cached_property
    def people(self) -> People:
        """Users, tokens, sessions and the audit: who may use the service, and who did what."""
        from everytick.app.people import People

        return People(self._opened, self._past_job_id)

    def acting_as(self, doer: Doer) -> AbstractContextManager[None]:
        """Return a block within which a person acts: `with tick.acting_as(doer): await tick.pause("etl")`.

        Every change below it stands in the audit, with the person's name, the way they came and their address. The
        name is also the `by` of operations that are given none.
        """
        return acting_as(doer)

    async def _opened(self) -> AnyStore:
        """Return the open store, signed by the person who acts, if one does."""
        return signed(await self._opened_unsigned())

    async def _opened_unsigned(self) -> AnyStore:
        """Return the open store; on another loop than its own, a bridge to it."""
        import asyncio

        here = asyncio.get_running_loop()
        if self._beside is not None and self._beside.loop is here:
            return self._beside.store
        with self._moving:
            left = self._opened_store
            if left is None or (left.loop is not here and not left.loop.is_running()):
                self._opened_store = self._store_for_loop(left, here)
            opened = self._opened_store
        assert opened is not None, "it was set above"
        if opened.loop is not here:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._opened_unsigned(), opened.loop))
            return cast("AnyStore", Bridge(opened))
        if opened.opening is not None and not (opened.opening.done() and opened.opening.exception() is None):
            # All callers wait for the same opening. It goes on if one of them is canceled.
            await asyncio.wait([opened.opening])
            failed = opened.opening.exception()
            if failed is not None:
                if self._opened_store is opened:
                    self._opened_store = None
                raise failed
        return opened.store

    async def _opened_here(self) -> AnyStore:
        """Return the store, opened on this loop: a node needs verbs that a bridge does not have."""
        import asyncio

        here = asyncio.get_running_loop()
        with self._moving:
            left = self._opened_store
            if left is not None and left.loop is not here and left.loop.is_running():
                if not self._store_is_ours and left.store.address.is_remote:
                    raise RuntimeError("the store was opened on another loop: start the application there")
                self._opened_store = self._store_for_loop(left, here)
        return await self._opened_unsigned()

    def _store_for_loop(self, left: OpenedStore | None, here: AbstractEventLoop) -> OpenedStore:
        """Return the store for this loop: a new one, unless it is in memory or was passed as an object."""
        if not self._store_is_ours:
            store = self._make_store()
            if self._is_copy and not store.address.is_in_memory:
                raise RuntimeError(
                    "the store was opened before this process was forked: "
                    "give the application an address, and each process opens its own"
                )
            return OpenedStore(store, here, None)
        if left is not None and left.store.address.is_in_memory:
            return OpenedStore(left.store, here, None)
        store = self._make_store()
        self._tell_fork(store)

        async def begin() -> None:
            if left is not None:
                await _close_store(left)
            await store.open()

        return OpenedStore(store, here, here.create_task(begin()))

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
        opened, running = self._opened_store, running_loop()
        elsewhere = (
            opened.loop if opened is not None and opened.loop.is_running() and opened.loop is not running else None
        )
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
        """Tell a node of this process that definitions were stored: it may know more functions now."""

    def _by(self, by: str | None) -> str:
        """Return who changes something: the name given, else the person who acts, else the code."""
        doer = acting()
        return by if by is not None else f"code:{self.name}" if doer is None else doer.name

    def _itself(self) -> AnyStore:
        """Return the store itself, also on another loop: for a caller's own connection on that loop."""
        assert self._opened_store is not None, "it was opened before"
        return self._opened_store.store

    async def _find(self, store: AnyStore, name: str, *, removed: bool = False, storing: bool = True) -> JobRecord:
        """Return the job of this name. With `storing`, store it first if it is defined here and not stored."""
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

            # Teach the node first: the first occurrence may begin as soon as its job is stored, and needs its hooks.
            self._learned()
            jobs = await self._with_needed(store, defined.job)
            stored, *_ = await unsigned(store).apply([Put(job) for job in jobs], f"code:{self.name}")
            self._learned()
            return (await store.get([stored.job_id]))[stored.job_id]
        raise NotFound("job", name)

    async def _with_needed(self, store: AnyStore, job: Job) -> list[Job]:
        """Return the job, and those defined here and not stored on which it depends, directly or through others."""
        from everytick.domain.ids import job_id

        found, open_ = {job.name: job}, [job]
        while open_:
            names = [dependency.job for dependency in open_.pop().settings.depends_on if dependency.job not in found]
            known = {name: self._definitions.get(job_id(name)) for name in names}
            stored = await store.get([job_id(name) for name in names])
            for name, defined in known.items():
                if defined is not None and job_id(name) not in stored:
                    found[name] = defined.job
                    open_.append(defined.job)
        return list(found.values())

    async def _past_job_id(self, name: str) -> str:
        """Return the id of the job that has or had this name, also if it was deleted with its history."""
        from everytick.domain.ids import job_id

        try:
            return (await self._find_past(await self._opened(), name)).job.id
        except NotFound:
            return job_id(name)

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
    """Return the job that had this name last, by its versions. Only renamed jobs are searched."""
    from everytick.domain.ids import job_id

    found: list[tuple[datetime, JobRecord]] = []
    for record in await store.list(removed=True):
        if record.job.id != job_id(record.job.name):
            editions = await store.ask(Editions(record.job.id, range(1, record.job.version + 1)))
            named = [edition.job.updated_at for edition in editions if edition.job.name == name]
            found += [(at, record) for at in named if at is not None]
    return max(found, key=lambda dated: dated[0])[1] if found else None


_applications: WeakSet[StoreAccess] = WeakSet()
originals: list[object] = []
"""Objects of the parent process, kept referenced: their garbage collection would close the parent's connections."""


def applications() -> tuple[StoreAccess, ...]:
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
        if application._opened_store is not None and application._opened_store.loop is loop:
            await application.close()


async def _close_store(opened: OpenedStore) -> None:
    """Close a store on its own loop, or on this one if its loop has ended and the store allows that."""
    import asyncio

    if opened.loop is not asyncio.get_running_loop() and opened.loop.is_running():
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(opened.store.close(), opened.loop))
    elif not opened.loop.is_closed() or not opened.store.address.is_remote:
        await opened.store.close()


# ----------------------------------------------------------------------------------------------- for the faces of app


def store_address(app: StoreAccess) -> StoreAddress:
    """Return where the application's store is. Nothing is opened or made."""
    return app._make_store().address


async def open_store(app: StoreAccess) -> AnyStore:
    """Return the application's open store, for verbs that the application does not have."""
    return await app._opened()


@contextmanager
def store_replaced(app: StoreAccess, store: AnyStore) -> Iterator[None]:
    """Let the application use this open store until the block ends, and then its own again."""
    own = app._make_store, app._store_is_ours, app._opened_store
    app._make_store, app._store_is_ours, app._opened_store = (lambda: store), False, None
    try:
        yield
    finally:
        app._make_store, app._store_is_ours, app._opened_store = own
