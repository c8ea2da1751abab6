"""Connections to the server, what their failures mean, and the time that tests may set.

Nothing here knows a table but the clock's.
"""

import asyncio
import random
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from everytick.domain.values import value
from everytick.errors import Contended, InvalidName, MissingExtra, StoreUnavailable
from everytick.stores.postgres.codecs import set_codecs
from everytick.stores.postgres.queries import Queries, in_schema, queries_in

try:
    import asyncpg
except ImportError:  # pragma: no cover - told once, with what to install
    raise MissingExtra("the PostgreSQL store", "postgres") from None

from everytick.stores.postgres.failures import Failure, is_read_only, named
from everytick.stores.postgres.pool import Connection as Connection
from everytick.stores.postgres.pool import Pool

P = ParamSpec("P")
T = TypeVar("T")

Taken = asyncpg.UniqueViolationError
"""Another session took the name between our read and our write."""

Locked = asyncpg.LockNotAvailableError
"""Another session held the lock for longer than we wait."""

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_CUT = (
    OSError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
_PAUSES = (0.01, 0.05, 0.25)

SESSION = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}
"""A statement is planned once, which takes longer than to carry it out, and by its indexes even while its tables are
empty: a plan that reads them whole would be kept while they fill. Where it has to read one whole, that counts as so
dear that the server would compile the statement first, which takes a second. By an index rows come, and are locked, in
the order of their keys, and by a bitmap they do not."""

_PROBES = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 2, "TCP_USER_TIMEOUT": 15_000}
"""A host that does not even say that a packet has come is dead after fifteen seconds. A verb would wait for its answer
for ever, also where another host has the server's name by now; what it sends is given up after a quarter of an hour. A
server that is busy or frozen is not concerned, since its host answers."""

_CLOCK = """
create table if not exists everytick.clock (at timestamptz not null);
create or replace function everytick.everytick_now() returns timestamptz
    language plpgsql volatile as $$ begin return (select at from everytick.clock); end $$;
"""
"""In this language a session plans the query once, in plain SQL at each call, of which a verb makes several."""


def patiently(verb: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Let a verb that met contention try again three times before it raises.

    Our own locks are taken in one order, so a deadlock is not expected; other programs may lock
    our rows, and a server may be set to a stricter isolation or shorter timeouts than ours.
    """

    @wraps(verb)
    async def tried(*arguments: P.args, **named: P.kwargs) -> T:
        for pause in _PAUSES:
            try:
                return await verb(*arguments, **named)
            except Contended:
                # A random wait: the other session waits another time.
                await asyncio.sleep(pause * (0.5 + random.random()))  # noqa: S311, a spread is no secret
        return await verb(*arguments, **named)

    return tried


class ProbedConnection(asyncpg.Connection):  # type: ignore[misc,unused-ignore]
    """A connection of the driver that ends when its host has died without a word."""

    __slots__ = ()

    def __init__(self, protocol: Any, transport: Any, *given: Any) -> None:
        super().__init__(protocol, transport, *given)
        line = transport.get_extra_info("socket")
        if line is not None and line.family != getattr(socket, "AF_UNIX", None):
            _set_option(line, socket.SOL_SOCKET, "SO_KEEPALIVE", 1)
            for name, probe in _PROBES.items():
                _set_option(line, socket.IPPROTO_TCP, name, probe)


def _set_option(line: Any, level: int, name: str, setting: int) -> None:
    """Set one option. Not every system knows it, or takes this setting: the others are set all the same."""
    if hasattr(socket, name):
        with suppress(OSError):
            line.setsockopt(level, getattr(socket, name), setting)


@value
class Address:
    """The address of the store: the server's URL, the schema, and whether a transaction-pooling proxy is between."""

    url: str
    schema: str = "everytick"
    pooling: bool = False

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        place = parts.hostname or "the local socket"
        return f"PostgreSQL at {place}{f':{parts.port}' if parts.port else ''}{parts.path}"


def read_address(url: str, schema: str | None = None, pooling: bool | None = None) -> Address:
    """Return the address. `?schema=…` and `?pooling=transaction` are removed from the URL."""
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    named = given.pop("schema", None)
    pooled = given.pop("pooling", "session")
    if pooled not in ("session", "transaction"):
        raise InvalidName("pooling", pooled, "must be session or transaction")
    name = schema or named or "everytick"
    if not _SCHEMA.fullmatch(name):
        raise InvalidName("schema", name, "must be lower-case letters, digits and _, not beginning with a digit")
    plain = urlunsplit(parts._replace(query=urlencode(given)))
    return Address(plain, name, pooled == "transaction" if pooling is None else pooling)


async def connected(address: Address, settings: Mapping[str, str] | None = None) -> Connection:
    """Return a new connection: every one of everytick's is made here. `settings` are the session's."""
    # A proxy gives each transaction another session: a statement prepared in one is unknown in the next.
    own: dict[str, Any] = {"statement_cache_size": 0} if address.pooling else {}
    if settings:
        own["server_settings"] = dict(settings)
    return await asyncpg.connect(address.url, timeout=10, connection_class=ProbedConnection, **own)


class Connections:
    """Connections for verbs. If the server does not answer, the caller gets `StoreUnavailable`."""

    def __init__(
        self,
        address: Address,
        *,
        most: int = 8,
        clock: Callable[[], datetime] | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.address = address
        self.sql: Queries = queries_in(address.schema)
        self._most = most
        self._clock = clock
        self._settings = settings or {}
        self._told: datetime | None = None
        self.identity: str | None = None
        self.refusals = 0
        """How often the server has refused to write."""
        self._pool: Pool | None = None

    async def open(self) -> None:
        """Connect once, to know that the server answers."""
        pool = Pool(self._new_connection, self._most, str(self.address))
        with self.answering():
            pool.give_back(await pool.take())
        self._pool = pool

    async def close(self) -> None:
        """Close every connection. A second call does nothing."""
        pool = self._pool
        if pool is not None:
            try:
                # It gives out no connection from now on, and is there for those that are given back.
                await pool.close()
            finally:
                if self._pool is pool:
                    self._pool = None

    async def connect(self) -> Connection:
        """Return a connection outside of the pool, which the caller closes."""
        with self.answering():
            return await connected(self.address, self._session())

    async def _new_connection(self) -> Connection:
        db = await connected(self.address, self._session())
        try:
            await set_codecs(db)
        except BaseException:
            db.terminate()
            raise
        return db

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Give a connection on which every statement commits by itself."""
        with self.answering():
            pool = self._pooled()
            db = await pool.take()
            try:
                await self.tell_time(db)
                yield db
            except asyncio.CancelledError:
                await _broken_off(pool, db)
                raise
            except BaseException as error:
                if isinstance(error, asyncpg.DataError):
                    # asyncpg may have sent the statement before it found a value that it cannot send. The server then
                    # waits for the rest in a transaction that no statement of ours would end.
                    self.drop(db)
                pool.give_back(db)
                raise
            pool.give_back(db)

    @asynccontextmanager
    async def transaction(self, **kind: Any) -> AsyncIterator[Connection]:
        """Give a connection whose statements commit together, or not at all. `kind` is the driver's."""
        async with self.connection() as db, in_transaction(db, **kind):
            yield db

    async def borrow(self) -> Connection:
        """Return a connection that must be passed to `give_back` later."""
        with self.answering():
            pool = self._pooled()
            db = await pool.take()
            try:
                await self.tell_time(db)
            except BaseException:
                pool.end(db)
                raise
            return db

    async def break_off(self, db: Connection) -> None:
        """Close a borrowed connection whose caller was canceled. What it has open is rolled back."""
        if self._pool is not None:
            await _broken_off(self._pool, db)

    def give_back(self, db: Connection) -> None:
        """Release a borrowed connection. A lost one is dropped."""
        if self._pool is None:
            self.drop(db)
        else:
            self._pool.give_back(db)

    def drop(self, db: Connection) -> None:
        """Cut a connection of unknown state."""
        db.terminate()

    async def forget_session(self, db: Connection) -> None:
        """Reset session settings that a task may have changed. Behind a proxy there is no own session."""
        if not self.address.pooling:
            await db.reset()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Raise failures of the server as everytick's own errors. Errors of the statement itself stay as they are."""
        try:
            yield
        except Failure as error:
            if is_read_only(error):
                # Another server may have its name by now, and this one would go on refusing.
                self.refusals += 1
                if self._pool is not None:
                    self._pool.expire()
            found = named(error, str(self.address))
            if found is None:
                raise
            raise found from error

    @contextmanager
    def lending(self, db: Connection) -> Iterator[None]:
        """Raise the loss of this connection as `StoreUnavailable`. Other errors go to the author of the statement."""
        try:
            yield
        except _CUT as error:
            raise self._unavailable(error) from error
        except asyncpg.InterfaceError as error:
            if not db.is_closed():
                raise
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        return StoreUnavailable(str(self.address), str(error) or type(error).__name__)

    async def set_clock(self) -> None:
        """Put the clock that was given in the place of the server's, in this schema only."""
        if self._clock is not None:
            pool = self._pooled()
            db = await pool.take()
            try:
                await db.execute(in_schema(_CLOCK, self.address.schema))
                fill = "insert into everytick.clock select $1 where not exists (select from everytick.clock)"
                await db.execute(in_schema(fill, self.address.schema), self._clock())
                # From here on, an earlier time is a clock that was set back.
                await self.tell_time(db)
            finally:
                pool.give_back(db)

    async def keep_time(self) -> None:
        """Write the time on a separate connection, for a caller whose transaction may roll back."""
        if self._clock is not None:
            async with self.connection():
                pass

    async def tell_time(self, db: Connection) -> None:
        """Set the schema's clock to the given one. It goes back only if the given clock was set back."""
        if self._clock is not None and self._told != (time := self._clock()):
            is_set_back = self._told is not None and time < self._told
            update = f"update everytick.clock set at = {'$1' if is_set_back else 'greatest(at, $1)'}"
            await db.execute(in_schema(update, self.address.schema), time)
            self._told = time

    def _pooled(self) -> Pool:
        if self._pool is None:
            raise StoreUnavailable(str(self.address), "the store is not open")
        return self._pool

    def _session(self) -> Mapping[str, str]:
        # What is set for one session of a proxy is unknown in the next.
        return self._settings if self.address.pooling else {**SESSION, **self._settings}


@asynccontextmanager
async def in_transaction(db: Connection, **kind: Any) -> AsyncIterator[None]:
    """Let the statements of the block commit together, or not at all.

    Not the driver's own block: if the caller is canceled, that one sends a rollback, and waits for a server that may be
    frozen. Here nothing is sent. `Connections.connection` closes the connection, and the server rolls back.
    """
    begun = db.transaction(**kind)
    await begun.start()
    try:
        yield
    except asyncio.CancelledError:
        raise
    except BaseException:
        await begun.rollback()
        raise
    await begun.commit()


async def _broken_off(pool: Pool, db: Connection) -> None:
    """Close a connection whose caller stopped waiting. A frozen server is waited for a second at most."""
    ending = pool.end(db)
    if ending is not None:
        await asyncio.wait([ending])
