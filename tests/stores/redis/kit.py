"""A store in Redis under a prefix of its own, and what is held after each test: the copy is what the server has."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count, cycle
from os import getpid
from typing import Any

from everytick.domain.job import Job
from everytick.errors import InvalidSchedule
from everytick.stores.definitions import write_definition
from everytick.stores.redis import codec
from everytick.stores.redis.replica import Replica
from everytick.stores.redis.rows import JobImage, OccurrenceImage, job_image, occurrence_image
from everytick.stores.redis.store import HELD_AT_MOST, RedisStore
from everytick.stores.redis.tables import WatchedTables
from tests.servers.launch import Server

_numbers = count(1)
EARLIEST = datetime.min.replace(tzinfo=UTC)


@asynccontextmanager
async def opened_redis(
    server: Server, clock: Callable[[], datetime] | None, held_at_most: int = HELD_AT_MOST
) -> AsyncIterator[RedisStore]:
    """Give an open and empty store whose keys no other test uses, and compare its copy with one that is read anew."""
    address = f"{server.address}?prefix=test-{getpid()}-{next(_numbers)}"
    made, other = (RedisStore(address, clock=clock, held_at_most=held_at_most) for _ in range(2))
    try:
        await made.open()
        yield made
        if made._replica is not None:
            await made.now()
            await other.open()
            unknown = set(other._replica.unreadable) if other._replica is not None else set()
            mine, theirs = await whole_contents(made, unknown), await whole_contents(other, unknown)
            for name, rows in mine.items():
                wrong = [key for key in {*rows, *theirs[name]} if rows.get(key) != theirs[name].get(key)]
                assert not wrong, f"the copy of {name} is not what the server has: {wrong}"
    finally:
        await other.close()
        await erase(made)
        await made.close()


@asynccontextmanager
async def another(
    store: RedisStore, clock: Callable[[], datetime] | None, held_at_most: int = HELD_AT_MOST
) -> AsyncIterator[RedisStore]:
    """Give a second copy of the same store, as another process has one."""
    known = store._connections.address
    made = RedisStore(f"{known.url}?prefix={known.prefix}", clock=clock, held_at_most=held_at_most)
    try:
        await made.open()
        yield made
    finally:
        await made.close()


class Alternating:
    """Stores that take turns: each verb is carried out by the next one, but for `due`.

    Two open batches of one node never share a job, and a node is one process.
    """

    def __init__(self, stores: Sequence[RedisStore]) -> None:
        self._turns, self.due = cycle(stores), stores[0].due

    def __getattr__(self, name: str) -> Any:
        return getattr(next(self._turns), name)


async def whole_contents(store: RedisStore, unknown: Collection[str] = ()) -> dict[str, Any]:
    """Return every row, also those that the copy does not hold by itself."""

    async def everything(replica: Replica) -> dict[str, Any]:
        return contents(store, unknown)

    return await store._read(everything, lambda replica: store._ended.warm(replica, None, EARLIEST))


def contents(store: RedisStore, unknown: Collection[str] = ()) -> dict[str, Any]:
    """Return every row of the copy but those of jobs that a process no longer knows to read."""
    copy = store._replica
    assert copy is not None
    jobs = [each for each in dict.items(copy._tables.jobs) if each[0] not in unknown]
    rows = [each for each in dict.items(copy._tables.occurrences) if each[1].job.id not in unknown]
    kept = {
        name: {key: codec.write(each) for key, each in dict.items(table.rows) if each != []}
        for name, table in copy._kept.items()
    }
    return {
        "jobs": {id_: _as_stored(job_image(row)) for id_, row in jobs},
        "occurrences": {id_: _sorted(occurrence_image(row, is_ready=copy._tables.is_ready(row))) for id_, row in rows},
        "indexes": _indexes(copy._tables, unknown),
        "lists": {name: [str(item) for item in each.items] for name, each in copy._lists.items()},
        **kept,
    }


def _indexes(tables: WatchedTables, unknown: Collection[str]) -> dict[str, list[str]]:
    """Return what stands in each index that is not empty: rows that are put back must leave their places behind."""
    lines = {f"busy/{id_}": row.busy for id_, row in dict.items(tables.jobs)}
    lines |= {f"waiting/{id_}": row.waiting for id_, row in dict.items(tables.jobs)}
    for name in ("ready", "early", "unreported"):
        lines |= {f"{name}/{needs}": rows for needs, rows in getattr(tables, name).items()}
    found = {name: [row.id for row in rows if row.job.id not in unknown] for name, rows in lines.items()}
    owned = {f"owned/{node}": [rows[handle].id for handle in sorted(rows)] for node, rows in tables.owned.items()}
    wakes = {
        f"wakes/{needs}": [row.id for row in rows if row.id not in unknown] for needs, rows in tables.wakes.items()
    }
    return {name: ids for name, ids in {**found, **owned, **wakes}.items() if ids}


def _as_stored(image: JobImage) -> str:
    """Return the image with its definitions as texts: one that is read back names its zones."""
    editions = [(each.in_force_after, each.by, each.follows, each.rollout) for each in image.versions]
    texts = [(each.job.version, _definition(each.job)) for each in image.versions]
    return str((image._replace(versions=()), texts, editions))


def _definition(job: Job) -> str:
    try:
        return write_definition(job)
    except InvalidSchedule:
        # A test has taken its own kind of schedule back.
        return f"{job.name} {job.schedule}"


def _sorted(image: OccurrenceImage) -> str:
    """Return the image without the order of its runs and attempts, which has no meaning."""
    return str(image._replace(runs=tuple(sorted(image.runs, key=str)), attempts=tuple(sorted(image.attempts, key=str))))


async def erase(store: RedisStore) -> None:
    """Delete the keys of a store."""
    client = store._connections.client
    async for key in client.scan_iter(match=store._connections.address.key("*").replace("{", "\\{"), count=1000):
        await client.delete(key)
