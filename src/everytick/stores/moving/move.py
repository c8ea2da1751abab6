"""The move of a store: copy, follow, hold, compare, shut.

The old store is copied as of one moment while its nodes go on, and notes the key of every row that changes meanwhile.
Passes carry what was noted, each as of one moment again, until little is left. Then the old store is held: no node can
write to it. The last pass, the comparison of both stores and the mark that shuts the old one are one transaction there.
Its commit decides. Before it the old store is in use, after it the new one.
"""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from enum import Enum
from pathlib import Path
from uuid import uuid4

from everytick.domain.durations import duration, format_duration
from everytick.domain.values import value
from everytick.errors import EverytickError, InvalidSetting, MoveRefused, StoreMoved, shown
from everytick.stores.addresses import address_of
from everytick.stores.base import StoreAddress
from everytick.stores.moving.base import MoveSide, Reading, Writing
from everytick.stores.moving.marks import (
    ARRIVED,
    FILLING,
    FOLLOWING,
    MOVED,
    SOURCE,
    TARGET,
    MoveMark,
    MoveMarks,
    not_in_use,
    refusal,
)
from everytick.stores.moving.tables import BY_NAME, TABLES, MovedTable, Row

HELD = timedelta(seconds=5)
"""How long nodes wait at most while the old store is held."""

CLOCKS_APART = timedelta(seconds=10)
"""How far apart the clocks of both stores may be: nodes go on by the new one."""

_FEW_CHANGES = 500
"""Passes end once one has carried no more changes than this. The last pass, for which nodes wait, is short then."""

_MOST_PASSES = 200
"""How many passes may try to leave few changes. A store that changes faster than it is copied cannot be moved."""

_MOST_TRIES = 5
"""How often the old store is held before the move gives up because nodes would have waited for too long."""


class Stage(Enum):
    """How far a move is, as the caller of `move_store` is told."""

    MARKED = "the old store notes what changes"
    FILLED = "everything is copied"
    FOLLOWED = "changes are carried"
    HELD = "the old store is held"
    COMPARED = "both stores hold the same"
    SHUT = "the old store has moved"
    ARRIVED = "the new store is in use"


Told = Callable[[Stage, int], None]
"""Is called with each stage and how many rows it carried."""


@value(frozen=True)
class MovedStore:
    """A move that has ended: how many rows and jobs were compared, and for how long writers were held."""

    source: str
    target: str
    rows: int
    jobs: int
    held: timedelta


def _tell_nothing(stage: Stage, rows: int) -> None:
    """Do nothing: the caller does not want to hear of stages."""


async def move_store(source: str, target: str, *, held: timedelta | str = HELD, told: Told | None = None) -> MovedStore:
    """Move everything from the store at one address into the one at another, while nodes run on the old one.

    A call that was interrupted is repeated with the same addresses, and goes on. `held` is how long nodes may have
    to wait at the end. Raises `MoveRefused` before anything is written if the stores do not suit.
    """
    longest = duration(held)
    if not longest:
        raise InvalidSetting("held", held, "must be longer than nothing: nodes wait while the last changes are carried")
    old, new = side_of(source, "from"), side_of(target, "to")
    try:
        return await _Move(old, new, longest, told or _tell_nothing).run()
    finally:
        await old.close()
        await new.close()


async def give_up(source: str) -> None:
    """Give up a move that has not ended: the old store notes no more changes and stays in use.

    The new store stays shut, since it holds a copy that is not followed any more: delete it, or move into it again.
    """
    old = side_of(source, "from")
    try:
        if not (await old.schema())[0]:
            raise MoveRefused(f"there is no store at {old.where}: name the one that is being moved")
        mark = (await old.marks()).get(SOURCE)
        if mark is None:
            raise MoveRefused(f"{old.where} is not being moved: there is nothing to give up")
        if mark.state == MOVED:
            raise MoveRefused(f"{old.where} has moved to {mark.other} already: that store is in use")
        await old.stop_noting()
    finally:
        await old.close()


async def arrive(address: StoreAddress, move_id: str) -> None:
    """Let a store be used: the store that moved into it is shut, and says so."""
    new = _side(address)
    try:
        await new.arrive(move_id)
    finally:
        await new.close()


_STATE_WORDS = {
    (SOURCE, FOLLOWING): "is being moved to",
    (SOURCE, MOVED): "has moved to",
    (TARGET, FILLING): "is being filled from",
    (TARGET, FOLLOWING): "is being filled from",
    (TARGET, ARRIVED): "came from",
}


@value
class MoveState:
    """Whether a store is in use, and what its marks say of a move, if it has any."""

    is_in_use: bool
    words: str | None = None


async def move_of(address: StoreAddress) -> MoveState:
    """Return what the marks of a store with tables say. One in Redis has neither, and is not moved."""
    if address.kind == "redis":
        return MoveState(True)
    side = _side(address)
    try:
        marks = await side.marks()
    finally:
        await side.close()
    words = [f"{_STATE_WORDS[role, mark.state]} {mark.other}" for role, mark in marks.items()]
    return MoveState(not_in_use(side.where, marks) is None, "; ".join(words) or None)


async def moved_here(address: StoreAddress) -> str | None:
    """Return the id of the move by which a store was filled; None if no store was moved into it."""
    if address.kind == "redis":
        return None
    new = _side(address)
    try:
        if not (await new.schema())[0]:
            return None
        mark = (await new.marks()).get(TARGET)
        return None if mark is None else mark.move_id
    finally:
        await new.close()


def side_of(address: str, role: str) -> MoveSide:
    """Return the store of this address as one side of a move."""
    store = address_of(address)
    if store.is_in_memory:
        text = "a store in memory ends with its process, and no other process can read it"
        raise MoveRefused(f"the store to move {role} is {shown(address)}: {text}")
    if store.kind == "redis":
        text = (
            "stores move between SQLite and PostgreSQL; one in Redis keeps a log and no tables, and cannot be moved yet"
        )
        raise MoveRefused(f"the store to move {role} is in Redis: {text}")
    return _side(store)


def _side(address: StoreAddress) -> MoveSide:
    if address.file is not None:
        from everytick.stores.moving.sqlite_side import SqliteSide

        return SqliteSide(Path(address.file), address.driver)
    from everytick.stores.moving.postgres_side import PostgresSide
    from everytick.stores.postgres.connections import Address

    return PostgresSide(Address(address.url, address.schema, address.is_pooled))


class _Move:
    """One call of the mover."""

    def __init__(self, old: MoveSide, new: MoveSide, longest: timedelta, told: Told) -> None:
        self._old, self._new, self._longest, self._told = old, new, longest, told

    async def run(self) -> MovedStore:
        """Go on from where the marks of both stores say that the move is."""
        await self._refuse_schemas()
        old, new = await self._old.marks(), await self._new_marks()
        before = old.get(SOURCE)
        if before is not None and before.state == MOVED:
            return await self._end(before, new)
        await self._refuse_unlike(new)
        move_id = await self._begin(before, new)
        if (await self._new.marks())[TARGET].state == FILLING:
            await self._fill(move_id)
        await self._follow(move_id)
        held, rows, jobs = await self._cut(move_id)
        await self._new.arrive(move_id)
        self._told(Stage.ARRIVED, 0)
        return MovedStore(self._old.where, self._new.where, rows, jobs, held)

    # ---------------------------------------------------------------------------------------------------------- before

    async def _refuse_schemas(self) -> None:
        found, newest = await self._old.schema()
        if found == 0:
            raise MoveRefused(f"there is no store at {self._old.where}: name the one that is to be moved first")
        if found != newest:
            raise MoveRefused(_unlike_schema(self._old.where, found, newest))
        found, newest = await self._new.schema()
        if found not in (0, newest):
            raise MoveRefused(_unlike_schema(self._new.where, found, newest))

    async def _new_marks(self) -> MoveMarks:
        return await self._new.marks() if (await self._new.schema())[0] else {}

    async def _end(self, before: MoveMark, new: MoveMarks) -> MovedStore:
        """End a move whose old store is shut already."""
        arrived = new.get(TARGET)
        if arrived is None or arrived.move_id != before.move_id:
            raise StoreMoved(self._old.where, before.other, before.move_id)
        if arrived.state == ARRIVED:
            raise MoveRefused(f"{self._old.where} has moved to {self._new.where} already: there is nothing left to do")
        await self._new.arrive(before.move_id)
        self._told(Stage.ARRIVED, 0)
        async with self._new.reading() as reading:
            contents = await reading.contents()
        return MovedStore(
            self._old.where, self._new.where, sum(contents.counts.values()), len(contents.jobs), timedelta()
        )

    async def _refuse_unlike(self, new: MoveMarks) -> None:
        """Raise unless the new store can take what the old one holds."""
        if (await self._new.schema())[0] == 0:
            return
        if await self._old.identity() == await self._new.identity():
            raise MoveRefused(f"{self._old.where} and {self._new.where} are the same store: name two")
        shut, arriving = new.get(SOURCE), new.get(TARGET)
        if shut is not None:
            raise MoveRefused(f"{self._new.where} is itself moved to {shut.other}: name an empty store")
        if arriving is not None and arriving.other != self._old.where and arriving.state != ARRIVED:
            text = f"another store, {arriving.other}, is being moved into it: name an empty store, or delete this one"
            raise MoveRefused(f"{self._new.where}: {text}")
        if (arriving is None or arriving.state == ARRIVED) and (filled := await self._new.filled_tables()):
            text = "name an empty store: nothing in it is written over"
            raise MoveRefused(f"{self._new.where} is not empty ({', '.join(sorted(filled)[:5])}): {text}")

    async def _begin(self, before: MoveMark | None, new: MoveMarks) -> str:
        """Write the marks of both stores, unless they are there. Return the id of the move."""
        if before is not None and before.other != self._new.where:
            text = f"is being moved to {before.other}: go on with that, or give it up with everytick db move --give-up"
            raise MoveRefused(f"{self._old.where} {text}")
        if (await self._new.schema())[0] == 0:
            await self._new.make()
        await self._refuse_clocks()
        arriving = new.get(TARGET)
        if before is not None and arriving is not None and arriving.move_id == before.move_id:
            return before.move_id
        # A copy of a move that was given up is of no use: its changes were not noted to the end.
        move_id = uuid4().hex
        await self._new.set_mark(TARGET, MoveMark(move_id, FILLING, self._old.where))
        await self._old.note_changes(MoveMark(move_id, FOLLOWING, self._new.where))
        self._told(Stage.MARKED, 0)
        return move_id

    async def _refuse_clocks(self) -> None:
        apart = await self._new.now() - await self._old.now()
        if abs(apart) > CLOCKS_APART:
            off = f"{format_duration(abs(apart))} {'ahead of' if apart > timedelta() else 'behind'}"
            text = "nodes go on by it: set both clocks right first"
            raise MoveRefused(f"the clock of {self._new.where} is {off} that of {self._old.where}, and {text}")

    # ------------------------------------------------------------------------------------------------------- copying

    async def _fill(self, move_id: str) -> None:
        """Copy every row, as of one moment, in one transaction."""
        carried = 0
        async with self._old.reading() as reading, self._new.writing() as writing:
            noted = (await reading.changes()).notes
            await writing.empty()
            for table in TABLES:
                async for rows in reading.rows(table):
                    await self._insert(writing, table, rows)
                    carried += len(rows)
            await writing.finish(await reading.counters(), self._following(move_id))
        await self._old.forget_changes(noted)
        self._told(Stage.FILLED, carried)

    async def _follow(self, move_id: str) -> None:
        """Carry what has changed, until few changes are left."""
        for _ in range(_MOST_PASSES):
            async with self._old.reading() as reading, self._new.writing() as writing:
                carried, notes = await self._carry(reading, writing, move_id)
            await self._old.forget_changes(notes)
            self._told(Stage.FOLLOWED, carried)
            if carried <= _FEW_CHANGES:
                return
        text = "rows change faster than they are carried; call it again at a quieter time, and it goes on"
        raise MoveRefused(f"{self._old.where} has not been moved: {text}")

    async def _carry(self, reading: Reading, writing: Writing, move_id: str) -> tuple[int, list[int]]:
        """Carry what has changed: all changed rows leave the new store, and those that still exist come again."""
        changes = await reading.changes()
        for table in reversed(TABLES):
            if keys := changes.keys.get(table.name):
                await writing.delete(table, keys)
        for table in TABLES:
            if keys := changes.keys.get(table.name):
                await self._insert(writing, table, await reading.rows_of(table, keys))
        assert changes.keys.keys() <= BY_NAME.keys(), "only changes of these tables are noted"
        if changes.notes:
            await writing.finish(await reading.counters(), self._following(move_id))
        return sum(map(len, changes.keys.values())), list(changes.notes)

    async def _insert(self, writing: Writing, table: MovedTable, rows: Sequence[Row]) -> None:
        """Insert these rows. One that the new store cannot hold, such as a zero byte in a text, is named."""
        try:
            await writing.insert(table, rows)
        except EverytickError:
            raise
        except Exception as error:
            text = f"it takes no row of {table.name} as the old store has it: {shown(error)}"
            raise MoveRefused(f"{self._new.where}: {text}; {self._old.where} stays in use") from error

    def _following(self, move_id: str) -> MoveMark:
        return MoveMark(move_id, FOLLOWING, self._old.where)

    # ------------------------------------------------------------------------------------------------------- the cut

    async def _cut(self, move_id: str) -> tuple[timedelta, int, int]:
        """Shut the old store once the new one holds the same. Return for how long writers were held, rows and jobs."""
        for _ in range(_MOST_TRIES):
            try:
                return await self._cut_once(move_id)
            except _HeldTooLong:
                await self._follow(move_id)
        text = f"the last changes took longer than {format_duration(self._longest)}, for which nodes would have waited"
        raise MoveRefused(f"{self._old.where} has not been moved: {text}; allow more with --held, and it goes on")

    async def _cut_once(self, move_id: str) -> tuple[timedelta, int, int]:
        async with self._old.holding() as holding:
            began = time.monotonic()
            self._told(Stage.HELD, 0)
            async with self._new.writing() as writing:
                carried, _ = await self._carry(holding, writing, move_id)
            await self._refuse_unequal(holding)
            async with self._new.reading() as reading:
                contents = await reading.contents()
            self._told(Stage.COMPARED, carried)
            if time.monotonic() - began > self._longest.total_seconds():
                raise _HeldTooLong
            words = refusal(move_id, self._new.where)
            await holding.shut(MoveMark(move_id, MOVED, self._new.where), words)
        self._told(Stage.SHUT, carried)
        held = timedelta(seconds=time.monotonic() - began)
        return held, sum(contents.counts.values()), len(contents.jobs)

    async def _refuse_unequal(self, holding: Reading) -> None:
        """Raise unless both stores hold the same rows, watermarks and claims."""
        old = await holding.contents()
        async with self._new.reading() as reading:
            new = await reading.contents()
        unlike = [
            f"{name}: {old.counts[name]} rows and {new.counts[name]}"
            for name in old.counts
            if old.counts[name] != new.counts[name]
        ]
        unlike += [
            f"job {before[0]} stands elsewhere"
            for before, after in zip(old.jobs, new.jobs, strict=False)
            if before != after
        ]
        if old.claims != new.claims:
            unlike.append("claims differ")
        if unlike:
            text = f"the stores do not hold the same ({'; '.join(unlike[:5])})"
            raise MoveRefused(
                f"{self._old.where} has not been moved and stays in use: {text}; give the move up, and report this"
            )


class _HeldTooLong(Exception):
    """Nodes would wait for too long: the old store is let go."""


def _unlike_schema(where: str, found: int, newest: int) -> str:
    advice = "everytick db migrate first" if found < newest else "install the newer everytick here too"
    return f"the tables of {where} are at schema {found}, and this everytick knows {newest}: {advice}"
