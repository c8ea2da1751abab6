"""What a mover asks of a store: to be read as of one moment, to note its changes, to be filled, to be shut."""

import json
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

from everytick.domain.values import value
from everytick.stores.moving.marks import MoveMark, MoveMarks
from everytick.stores.moving.tables import Key, MovedTable, Row

ROWS_AT_ONCE = 2_000
"""How many rows one statement reads or writes."""


@value
class Changes:
    """Keys of rows that have changed, by table, and the numbers of the notes that say so."""

    keys: Mapping[str, Sequence[Key]]
    notes: Sequence[int]


def changes_of(notes: Iterable[Row]) -> Changes:
    """Return what these notes say, each key once. A note has a number, the name of a table, and a key as JSON."""
    keys: dict[str, dict[Key, None]] = {}
    numbers = []
    for number, name, key in notes:
        keys.setdefault(name, {})[tuple(json.loads(key))] = None
        numbers.append(number)
    return Changes({name: list(found) for name, found in keys.items()}, numbers)


@value
class Contents:
    """What is compared before a store is shut: rows by table, where each job stands, and what claims add up to."""

    counts: Mapping[str, int]
    jobs: Sequence[Row]
    claims: Row


class Reading(Protocol):
    """A store as of one moment."""

    def rows(self, table: MovedTable) -> AsyncIterator[Sequence[Row]]:
        """Give all rows of a table, some at a time."""
        ...

    async def rows_of(self, table: MovedTable, keys: Sequence[Key]) -> Sequence[Row]:
        """Return the rows with these keys that exist."""
        ...

    async def changes(self) -> Changes:
        """Return what has changed since changes are noted, but for what was forgotten."""
        ...

    async def counters(self) -> Mapping[str, int]:
        """Return the last number that each table has given to a row."""
        ...

    async def contents(self) -> Contents:
        """Return what is compared."""
        ...


class Holding(Reading, Protocol):
    """A store in which only the mover can write until this ends."""

    async def shut(self, mark: MoveMark, words: str) -> None:
        """Refuse every write with these words from the end of this on, and note no more changes."""
        ...


class Writing(Protocol):
    """A store that is filled: all that is written here becomes true together."""

    async def empty(self) -> None:
        """Delete every row that is carried."""
        ...

    async def delete(self, table: MovedTable, keys: Sequence[Key]) -> None:
        """Delete the rows with these keys."""
        ...

    async def insert(self, table: MovedTable, rows: Sequence[Row]) -> None:
        """Insert these rows."""
        ...

    async def finish(self, counters: Mapping[str, int], mark: MoveMark) -> None:
        """Derive what follows from the rows, set the counters, and write the mark."""
        ...

    async def contents(self) -> Contents:
        """Return what is compared."""
        ...


class MoveSide(Protocol):
    """One of the two stores of a move."""

    @property
    def where(self) -> str:
        """The address, without a password."""
        ...

    async def schema(self) -> tuple[int, int]:
        """Return the number of the newest migration that it has, and that this everytick knows."""
        ...

    async def make(self) -> None:
        """Make its tables."""
        ...

    async def identity(self) -> str:
        """Return a text that only this store has."""
        ...

    async def now(self) -> datetime:
        """Return its time."""
        ...

    async def marks(self) -> MoveMarks:
        """Return its marks."""
        ...

    async def filled_tables(self) -> Collection[str]:
        """Return the tables that hold more than in a new store."""
        ...

    async def set_mark(self, role: str, mark: MoveMark) -> None:
        """Write the mark of this role."""
        ...

    async def note_changes(self, mark: MoveMark) -> None:
        """Note the key of every row that changes from now on, and write the mark. A second call changes nothing."""
        ...

    async def forget_changes(self, notes: Sequence[int]) -> None:
        """Delete these notes."""
        ...

    async def stop_noting(self) -> None:
        """Note no more changes, and delete the notes and the mark of a move that is given up."""
        ...

    def reading(self) -> AbstractAsyncContextManager[Reading]:
        """Read it as of now."""
        ...

    def holding(self) -> AbstractAsyncContextManager[Holding]:
        """Hold every writer. What is written here is committed at the end of the block."""
        ...

    def writing(self) -> AbstractAsyncContextManager[Writing]:
        """Write to it. All is committed at the end of the block."""
        ...

    async def arrive(self, move_id: str) -> None:
        """Let it be used, if this move fills it. A second call changes nothing."""
        ...

    async def close(self) -> None:
        """Release its connections."""
        ...
