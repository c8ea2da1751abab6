"""`drain` and `simulate`: an application's jobs, run in a test."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from everytick.app import Everytick
from everytick.app.store_access import open_store, store_replaced
from everytick.domain.durations import instant
from everytick.domain.job import Job
from everytick.runners.catalogue import Catalogue
from everytick.sources.files import Folder
from everytick.sources.syncing import sync_loaded
from everytick.stores.addresses import AnyStore
from everytick.stores.memory import MemoryStore
from everytick.testing.chronicle import Chronicle, chronicle_of
from everytick.testing.driven_node import DrivenNode
from everytick.testing.repertoire import Functions, Inline, functions_of
from everytick.testing.virtual import VirtualLoop, run_virtually

GivenTime = datetime | str
TimedDeed = Callable[[], Awaitable[Any]]


@contextmanager
def on_store(app: Everytick, store: AnyStore) -> Iterator[None]:
    """Let the application use this open store until the block ends."""
    if app.node is not None:
        raise RuntimeError("the application runs a node on its own store: stop it before it is given another one")
    with store_replaced(app, store):
        yield


async def drain(app: Everytick, store: AnyStore | None = None, *, instead: Functions | None = None) -> Chronicle:
    """Plan and run due jobs, and what follows from them, until no job is due. Return the chronicle.

    Definitions, and what stands in the application's folder of jobs, are brought into the store
    first; what the store holds besides is run too. Without `store` it is the application's own.
    No time passes meanwhile: what waits for a retry is run by a later call, once the clock has
    been moved. Tasks run as they would on a node; `instead` names functions to call in the
    place of some, by job or by `job.task`.
    """
    if store is not None:
        with on_store(app, store):
            return await drain(app, instead=instead)
    opened = await open_store(app)
    jobs = await _brought(app, opened)
    settings = app.settings
    catalogue = Catalogue(
        functions_of(app, jobs, instead or {}),
        threads=settings.threads,
        grace=settings.grace_period,
        allow_calls=settings.allow_calls,
        # A test that fails a job must not wake its operator.
        sends_notices=False,
    )
    async with DrivenNode(app, opened, catalogue, monotonic=lambda: 0.0) as engine:
        await engine.settle()
    return await chronicle_of(opened)


async def _brought(app: Everytick, store: AnyStore) -> list[Job]:
    """Store the application's own jobs, and return all jobs in the store."""
    await app.sync()
    if app.jobs_folder is not None:
        folder = Folder(app.jobs_folder, owner=app.jobs_owner)
        # Not in a thread, as a node would: the virtual clock would not wait for it.
        folder.load()
        mistakes = (*folder.mistakes, *(await sync_loaded(store, folder)).mistakes)
        if mistakes:
            raise ValueError("\n".join(["the folder of jobs has mistakes:", *map(str, mistakes)]))
    return [record.job for record in await store.list()]


def simulate(
    app: Everytick,
    start: GivenTime,
    until: GivenTime,
    *,
    instead: Functions | None = None,
    outages: Iterable[tuple[GivenTime, GivenTime]] = (),
    at: Mapping[str, TimedDeed] | Mapping[datetime, TimedDeed] | None = None,
) -> Chronicle:
    """Run the application from `start` through `until` on virtual time, and return the chronicle.

    Its real functions are called, one after another, on an event loop whose waits take no
    time: `asyncio.sleep(60)` is a minute of virtual time, while a plain function takes none.
    The store is in memory and begins with the application's definitions and what stands in its
    folder of jobs; what another store holds is not there. `instead` names functions to call in the place of
    tasks, by job or by `job.task`: commands and requests need one. During an outage no node
    runs; what ran when it began is canceled, as by a stop. What `at` holds is awaited at its
    moment, ten microseconds after whatever is due then:
    `at={"2026-01-01T09:30:00Z": lambda: tick.pause("report")}`.
    """
    begin, end = instant(start), instant(until)
    if end <= begin:
        raise ValueError(f"until must be later than start, got {start} and {until}")
    timeline = _timeline(begin, end, [(instant(down), instant(up)) for down, up in outages], at or {})
    return run_virtually(partial(_simulated, app, begin, timeline, instead or {}))


def _timeline(
    begin: datetime,
    end: datetime,
    outages: list[tuple[datetime, datetime]],
    at: Mapping[str, TimedDeed] | Mapping[datetime, TimedDeed],
) -> list[tuple[datetime, bool | TimedDeed | None]]:
    """Return the outside events in order of time: True when a node starts, False when it stops, None at the end."""
    events: list[tuple[datetime, bool | TimedDeed | None]] = [(instant(moment), deed) for moment, deed in at.items()]
    last = begin
    for down, up in sorted(outages):
        if not last <= down < up:
            raise ValueError(f"outages must lie one after another within the simulation, got {down} to {up}")
        events += [(down, False), (up, True)]
        last = up
    outside = [moment for moment, _ in events if not begin <= moment <= end]
    if outside:
        raise ValueError(f"{outside[0]} lies outside of the simulation, which goes from {begin} to {end}")
    return [*sorted(events, key=lambda event: event[0]), (end, None)]


async def _simulated(
    app: Everytick,
    begin: datetime,
    timeline: list[tuple[datetime, bool | TimedDeed | None]],
    instead: Functions,
    loop: VirtualLoop,
) -> Chronicle:
    def clock() -> datetime:
        return begin + timedelta(microseconds=round(loop.time() * 1e6))

    store = MemoryStore(clock)
    with on_store(app, store):
        jobs = await _brought(app, store)
        async with AsyncExitStack() as nodes:
            engine: DrivenNode | None = await nodes.enter_async_context(_engine(app, jobs, store, instead, loop))
            for moment, event in timeline:
                if engine is not None:
                    await engine.run_until(moment)
                else:
                    loop.jump(max(0.0, (moment - clock()).total_seconds()))
                if event is False:
                    await nodes.aclose()
                    engine = None
                elif event is True:
                    engine = await nodes.enter_async_context(_engine(app, jobs, store, instead, loop))
                elif event is not None:
                    await event()
            # Read before the node stops: running occurrences must appear as running, not as canceled.
            return await chronicle_of(store)


@asynccontextmanager
async def _engine(
    app: Everytick, jobs: list[Job], store: MemoryStore, instead: Functions, loop: VirtualLoop
) -> AsyncIterator[DrivenNode]:
    async with DrivenNode(app, store, Inline(app, jobs, instead), monotonic=loop.time) as engine:
        yield engine
