"""Connections to the server, what their failures mean, and the time that tests may set.

Nothing here knows a table but the clock's.
"""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar
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

P = ParamSpec("P")
T = TypeVar("T")

Connection: TypeAlias = Any
"""An asyncpg connection; the driver ships no types."""

Taken = asyncpg.UniqueViolationError
"""Another session took the name between our read and our write."""

Locked = asyncpg.LockNotAvailableError
"""Another session held the lock for longer than we wait."""

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_HEARD_WITHIN = 1.0
"""How many seconds the server has to cancel a statement; then its connection is cut."""

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

_CLOCK = """
create table if not exists everytick.clock (at timestamptz not null);
create or replace function everytick.everytick_now() returns timestamptz
    language sql volatile as $$ select at from everytick.clock $$;
"""


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
                await asyncio.sleep(pause * (0.5 + random.random()))
        return await verb(*arguments, **named)

    return tried


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


class Connections:
    """A pool of connections. If the server does not answer, the caller gets `StoreUnavailable`."""

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
        self._expired_at = 0
        self._pool: Any = None

    async def open(self) -> None:
        """Open the pool."""
        with self.answering():
            pool = await asyncpg.create_pool(
                self.address.url,
                # With a least number the pool itself calls for the server while it is away, and logs each failure.
                min_size=0,
                max_size=self._most,
                init=set_codecs,
                reset=_nothing,
                timeout=10,
                **self._options(),
            )
            try:
                async with pool.acquire():
                    self._pool = pool
            except BaseException:
                pool.terminate()
                raise

    async def close(self) -> None:
        """Close every connection. A second call does nothing."""
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                async with asyncio.timeout(5):
                    await pool.close()
            except TimeoutError:
                pool.terminate()

    async def connect(self) -> Connection:
        """Return a connection outside of the pool, which the caller closes."""
        with self.answering():
            return await asyncpg.connect(self.address.url, timeout=10, **self._options())

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Give a connection on which every statement commits by itself."""
        with self.answering():
            pool = self._pooled()
            db = await self._acquired()
            try:
                await self.tell_time(db)
                yield db
            except asyncio.CancelledError:
                # Release it once only: the error of a second release would replace the cancellation.
                await self._broken_off(db)
                raise
            except BaseException as error:
                if isinstance(error, asyncpg.DataError):
                    # asyncpg may have sent the statement before it found a value that it cannot send. The server then
                    # waits for the rest in a transaction that no statement of ours would end.
                    self.drop(db)
                await pool.release(db)
                raise
            await pool.release(db)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Give a connection whose statements commit together, or not at all."""
        async with self.connection() as db:
            begun = db.transaction()
            try:
                await begun.start()
                try:
                    yield db
                except asyncio.CancelledError:
                    raise
                except BaseException:
                    await begun.rollback()
                    raise
                await begun.commit()
            except asyncio.CancelledError:
                # No rollback statement, which would wait for the server: it rolls back when the connection is closed.
                self.drop(db)
                raise

    async def _broken_off(self, db: Connection) -> None:
        """Release a connection whose caller stopped waiting, without waiting for a server that may be frozen."""
        with suppress(*Failure):
            await self._pooled().release(db, timeout=_HEARD_WITHIN)

    async def borrow(self) -> Connection:
        """Return a connection that must be passed to `give_back` later."""
        with self.answering():
            db = await self._acquired()
            await self.tell_time(db)
            return db

    async def give_back(self, db: Connection) -> None:
        """Release a borrowed connection. A lost one is dropped."""
        with self.answering():
            await self._pooled().release(db)

    def drop(self, db: Connection) -> None:
        """Close a borrowed connection of unknown state. One that the server has closed is dropped."""
        with suppress(asyncpg.InterfaceError):
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
                self.refusals += 1
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
            if not _is_lost(db):
                raise
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        return StoreUnavailable(str(self.address), str(error) or type(error).__name__)

    async def set_clock(self) -> None:
        """Put the clock that was given in the place of the server's, in this schema only."""
        if self._clock is not None:
            async with self._pooled().acquire() as db:
                await db.execute(in_schema(_CLOCK, self.address.schema))
                fill = "insert into everytick.clock select $1 where not exists (select from everytick.clock)"
                await db.execute(in_schema(fill, self.address.schema), self._clock())
                # From here on, an earlier time is a clock that was set back.
                await self.tell_time(db)

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

    async def _acquired(self) -> Connection:
        """Return a connection of the pool, or a new one after the server refused a write.

        Another server may have its name by now, and the old one would go on refusing.
        """
        pool = self._pooled()
        if self._expired_at != self.refusals:
            self._expired_at = self.refusals
            await pool.expire_connections()
        return await pool.acquire()

    def _pooled(self) -> Any:
        if self._pool is None:
            raise StoreUnavailable(str(self.address), "the store is not open")
        return self._pool

    def _options(self) -> dict[str, Any]:
        # A proxy gives each transaction another session: a statement prepared in one is unknown in the next.
        if self.address.pooling:
            return {"statement_cache_size": 0, **({"server_settings": self._settings} if self._settings else {})}
        return {"server_settings": {**SESSION, **self._settings}}


async def _nothing(db: Connection) -> None:
    """Our statements leave no session state behind, so there is nothing to reset between two verbs."""


def _is_lost(db: Connection) -> bool:
    """Tell whether the server or the network has ended this connection: the pool takes such a one away at once."""
    try:
        return bool(db.is_closed())
    except asyncpg.InterfaceError:
        return True
