"""What a verb that is written once for both SQL stores may ask for, one command after the other.

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
    """Answers the store's time. Asked after a lock was taken, it is not before what the lock's last holder wrote."""

    RING = "ring"
    """Rings the bell once the transaction is committed."""


@value
class Together:
    """Queries behind one savepoint: if one of them fails, none of them counts, and the transaction goes on."""

    queries: tuple[Query, ...]


@value
class Many:
    """One statement for each of these sets of arguments; the answer has no rows."""

    statement: Statement
    arguments: tuple[Mapping[str, Any], ...]


@value
class Versions:
    """Answers these versions of definitions, each by the job's key and its number."""

    keys: tuple[Key, ...]


@value
class Forget:
    """Forgets what was read of a version that this transaction writes: an earlier try may have written another one."""

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
    """Ends an occurrence that no node runs, and its runs; its job notes the end and is looked at again."""

    occurrence_id: str
    job_key: int
    status: OccurrenceStatus
    reason: str


@value
class Claims:
    """Answers these occurrences as their owner sees them, in this order; without those that cannot be read."""

    handles: tuple[int, ...]


@value
class Look:
    """Answers what a plan would see of the jobs with these ids, by id; without those that cannot be read."""

    job_ids: frozenset[str]


Command: TypeAlias = Query | Together | Many | Versions | Forget | Create | EndUnowned | Claims | Look | Ask
Verb: TypeAlias = Generator[Command, Any, T]
Make: TypeAlias = Callable[[], Verb[T]]
"""Makes the generator. A repeated transaction needs a fresh one."""


@value
class Found:
    """The answer to `Versions`: those that can be read, and why the others cannot."""

    read: Mapping[Key, Compiled]
    broken: Mapping[Key, str]


class Again(Exception):
    """Another node was first; the transaction is to be repeated."""


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
    """Return the question for what a plan would see of these jobs."""
    return Look(frozenset(job_ids))
