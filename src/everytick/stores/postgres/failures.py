"""What an error of the server means: it is away, there is contention, it is broken, or one item is wrong.

Decided by the SQLSTATE and never by the text, which the server writes in its own language.
"""

import socket

import asyncpg

from everytick.errors import Contended, StoreBroken, StoreUnavailable
from everytick.stores.moving.marks import SQLSTATE as MOVED
from everytick.stores.moving.marks import refused

_LOST = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # raised on a session that was cut a moment ago
)
_AWAY_CLASSES = ("08", "53", "57", "58")
"""Connection, resources (memory, disk, connections), shutdown and crash, the server's own disk."""

_AWAY = frozenset({"25006", "25P03", "25P04"})
"""Read only (a server that was fenced off, a standby), and sessions that the server ended for idling."""

_CONTENDED_CLASSES = ("40",)
_CONTENDED = frozenset({"55P03", "57014"})
"""Rolled back (deadlock, serialization), a lock that was not to be had, a statement that took too long."""

_BROKEN_CLASSES = ("28", "3D", "3F")
_BROKEN = frozenset({"42P01", "42703", "42704", "42883", "42501", "XX001", "XX002"})
"""A password, database or schema that is not accepted; a table, column, type or function that is missing; a privilege
that was taken away; damaged pages. None of these is the fault of one job or occurrence."""

_ADVICE = {
    "28P01": "correct the user or the password in the address",
    "28000": "correct the user in the address, or let the server's pg_hba.conf admit it",
    "3D000": "create it with `createdb {database}`, or name another one in the address",
    "42501": "everytick makes a schema and tables: grant create on database {database} to this user, and let it own "
    "the schema if there is one",
}
"""Advice for errors of a first connection."""

Failure = (*_LOST, asyncpg.PostgresError)
"""Everything that the driver raises about the server or the way to it."""


def named(error: Exception, store: str) -> StoreUnavailable | None:
    """Return the error's meaning for this store. None if the statement itself is wrong."""
    said = str(error) or type(error).__name__
    if isinstance(error, asyncpg.InternalClientError):
        # An error of the driver about its own state.
        said = "the session was cut"
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME:
        # A wrong address. If the name server is away, the error differs.
        return StoreBroken(store, said, "correct the host in the address")
    if isinstance(error, _LOST):
        return StoreUnavailable(store, said)
    state = getattr(error, "sqlstate", None) or ""
    if state == MOVED:
        return refused(store, said)
    if state in _CONTENDED or state.startswith(_CONTENDED_CLASSES):
        return Contended(store, said)
    if state in _AWAY or state.startswith(_AWAY_CLASSES):
        return StoreUnavailable(store, said)
    if state in _BROKEN or state.startswith(_BROKEN_CLASSES):
        advice = _ADVICE.get(state)
        database = store.rpartition("/")[2] if "/" in store else "NAME"
        return StoreBroken(store, said, advice and advice.format(database=database))
    return None


def is_read_only(error: Exception) -> bool:
    """Say whether this server takes no writes: another one may have its name by now."""
    return getattr(error, "sqlstate", None) == "25006"
