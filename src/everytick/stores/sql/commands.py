"""The commands that a shared verb yields, one after the other.

A verb is a generator. It yields a command and is sent the answer; what it returns is the verb's answer. The store's
runner carries each command out: `SyncRunner` in SQLite's threads, `AsyncRunner` on a connection to PostgreSQL. A verb
may be run twice, since a transaction may be repeated, so it has no effect outside the transaction.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias, TypeVar

from everytick.domain.decisions import Creation
from everytick.domain.job import Job
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value
from everytick.stores.sql.definitions import Compiled, Key
from everytick.stores.sql.statements import Query, Row, Statement

T = TypeVar("T")

Rows: TypeAlias = Sequence[Row]


class Ask(Enum):
    """Commands without arguments."""

    NOW = "now"
    """Returns the store's time. After a lock was taken it is not earlier than the writes of the lock's last holder."""

    RING = "ring"
    """Rings the bell once the transaction is committed."""


@value
class Together:
    """Queries behind one savepoint: if one of them fails, none of them counts, and the transaction goes on."""

    queries: tuple[Query, ...]


@value
class Many:
    """One statement for each of these sets of arguments. The answer has no rows."""

    statement: Statement
    arguments: tuple[Mapping[str, Any], ...]


@value
class Versions:
    """Returns these versions of definitions, each by the job's key and its number."""

    keys: tuple[Key, ...]


@value
class Forget:
    """Drops a cached version that this transaction writes: an earlier try may have written another one."""

    job_key: int
    version: int


@value
class Create:
    """Makes an occurrence of a job, if it is not there yet."""

    job_key: int
    job: Job
    creation: Creation


@value
class EndUnowned:
    """Ends an occurrence that no node runs, and its runs. Its job records the end and becomes due."""

    occurrence_id: str
    job_key: int
    status: OccurrenceStatus
    reason: str


@value
class Claims:
    """Returns these occurrences as claims, in this order, without unreadable ones."""

    handles: tuple[int, ...]


@value
class Look:
    """Returns the snapshots of the jobs with these ids, by id, without unreadable ones."""

    job_ids: frozenset[str]


Command: TypeAlias = Query | Together | Many | Versions | Forget | Create | EndUnowned | Claims | Look | Ask
Verb: TypeAlias = Generator[Command, Any, T]
PlainVerb: TypeAlias = Generator[Query | Many, Any, T]
"""A verb that only sends statements. Hot verbs use it too: each store has a `carried_out` for it."""

Make: TypeAlias = Callable[[], Verb[T]]
"""Makes the generator. A repeated transaction needs a fresh one."""


@value
class Found:
    """The answer to `Versions`: those that can be read, and why the others cannot."""

    read: Mapping[Key, Compiled]
    broken: Mapping[Key, str]


class Again(Exception):
    """Another node was first: repeat the transaction."""


class KeyTaken(Exception):
    """Another row has the key or the name already."""


class Referenced(Exception):
    """Another row still belongs to the one that was to be deleted."""


def together(queries: Iterable[Query]) -> Together:
    """Return these queries behind one savepoint."""
    return Together(tuple(queries))


def many(statement: Statement, arguments: Iterable[Mapping[str, Any]]) -> Many:
    """Return one statement for each of these sets of arguments."""
    return Many(statement, tuple(arguments))


def look(job_ids: Collection[str]) -> Look:
    """Return the command for the snapshots of these jobs."""
    return Look(frozenset(job_ids))
