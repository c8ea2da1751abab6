"""Store addresses: which store a text names. A store's own code is loaded when its address is read, not before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from everytick.errors import InvalidSetting, MissingExtra
from everytick.stores.protocols import HistoryStore, JobStore, PlanStore, PromiseStore, QuestionStore, RunStore, Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from everytick.stores.base import StoreAddress

ADDRESSES = "sqlite:///path, memory://, postgresql://user@host/database or redis://host/0"
_REDIS = ("redis", "rediss", "valkey", "valkeys")


class AnyStore(Store, PlanStore, RunStore, JobStore, HistoryStore, PromiseStore, QuestionStore, Protocol):
    """A whole store: all parts of the seam but `AccessStore` in one object."""


def checked_address(address: object) -> str:
    """Return the address if it names a store. This loads and opens nothing."""
    if not isinstance(address, str):
        raise InvalidSetting("store", address, f"must be an address: {ADDRESSES}")
    scheme, separator, rest = address.partition("://")
    if not separator:
        raise InvalidSetting("store", _without_secret(address), f"is not an address; write one like {ADDRESSES}")
    if scheme not in ("sqlite", "memory", "postgresql", "postgres", *_REDIS):
        raise InvalidSetting("store", _without_secret(address), f"names no store that is known; there are {ADDRESSES}")
    if scheme == "sqlite":
        _sqlite_parts(address, rest)
    if scheme == "memory" and rest:
        raise InvalidSetting("store", address, "has nothing to name after memory://: leave it out")
    return address


def store_of(address: str, folder: str | None = None, *, clock: Callable[[], datetime] | None = None) -> AnyStore:
    """Return the store of this address, not yet opened; a relative SQLite path begins in `folder`.

    `clock` takes the place of its own time, for tests.
    """
    scheme, _, rest = checked_address(address).partition("://")
    if scheme == "sqlite":
        return _sqlite(address, rest, folder, clock)
    if scheme == "memory":
        return _memory(clock)
    if scheme in _REDIS:
        from everytick.stores.redis.store import RedisStore

        return RedisStore(address, clock=clock)
    from everytick.stores.postgres.store import PostgresStore

    return PostgresStore(address, clock=clock)


def address_of(address: str, folder: str | None = None) -> StoreAddress:
    """Return where the store of this address is. This opens nothing."""
    return store_of(address, folder).address


async def migration_of(address: StoreAddress) -> int:
    """Return the number of the newest migration that was applied to the store, and change nothing.

    It is 0 for a store without tables, and in memory.
    """
    if address.file is not None:
        from functools import partial

        from everytick.stores.sqlite.opening import applied as applied_to_file
        from everytick.stores.sqlite.thread_calls import in_own_thread

        file = address.file
        return await in_own_thread(partial(applied_to_file, file, address.driver), f"everytick looking at {file.name}")
    if address.is_in_memory:
        return 0
    if address.kind == "redis":
        from everytick.stores.redis.log import format_of

        return await format_of(address.url, address.schema)
    from everytick.stores.postgres.connections import Address, Connections
    from everytick.stores.postgres.migrate import applied

    return await applied(Connections(Address(address.url, address.schema, address.is_pooled)))


class _SqliteParts(NamedTuple):
    """The path, whether a commit waits for the disk, and which package opens the file."""

    path: str
    synchronous: Literal["normal", "full"]
    driver: Literal["sqlite3", "apsw"]


def _sqlite_parts(address: str, rest: str) -> _SqliteParts:
    from urllib.parse import parse_qsl, unquote

    place, _, query = rest.partition("?")
    path = unquote(place.removeprefix("/"))
    if not place.startswith("/") or not path:
        reason = "must name a file: sqlite:///jobs.db (relative) or sqlite:////var/lib/jobs.db (absolute)"
        raise InvalidSetting("store", address, reason)
    if path == ":memory:":
        raise InvalidSetting("store", address, "would be forgotten connection by connection: write memory://")
    options = dict(parse_qsl(query, keep_blank_values=True))
    synchronous, driver = options.pop("synchronous", "normal"), options.pop("driver", "sqlite3")
    if options or synchronous not in ("normal", "full") or driver not in ("sqlite3", "apsw"):
        reason = "knows two options: ?synchronous=normal or full, and ?driver=sqlite3 or apsw; join them by &"
        raise InvalidSetting("store", address, reason)
    return _SqliteParts(path, "full" if synchronous == "full" else "normal", "apsw" if driver == "apsw" else "sqlite3")


def _sqlite(address: str, rest: str, folder: str | None, clock: Callable[[], datetime] | None) -> AnyStore:
    from importlib.util import find_spec
    from pathlib import Path

    from everytick.stores.sqlite.store import SqliteStore

    parts = _sqlite_parts(address, rest)
    if parts.driver == "apsw" and find_spec("apsw") is None:
        raise MissingExtra("the driver apsw", "sqlite")
    path = Path(parts.path).expanduser()
    file = path if folder is None or path.is_absolute() else Path(folder) / path
    return SqliteStore(file, synchronous=parts.synchronous, driver=parts.driver, clock=clock)


def _memory(clock: Callable[[], datetime] | None) -> AnyStore:
    from everytick.stores.host_clock import HostClock
    from everytick.stores.memory import MemoryStore

    return MemoryStore(clock or HostClock())


def _without_secret(address: str) -> str:
    """Return the address for a message. The part before an @ may hold a password and is left out."""
    before, at, after = address.rpartition("@")
    return f"{before.partition('://')[0]}://…@{after}" if at else address
