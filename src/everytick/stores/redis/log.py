"""The log: what is written to it, how a copy follows it, and how a copy is loaded."""

from collections.abc import Sequence
from datetime import datetime
from random import getrandbits
from typing import Any
from uuid import uuid4

from everytick.domain.values import value
from everytick.errors import SchemaMismatch, StoreBroken, StoreGone
from everytick.stores.redis.codec import moment_of
from everytick.stores.redis.connections import RedisAddress, RedisConnections
from everytick.stores.redis.entries import Changes, changes_in

FORMAT = 2
"""The format of the rows. A process refuses a store of another one."""

KEPT_ENTRIES = 1_000
"""About how many entries the log keeps. A copy that lacks more is loaded again."""

_TURN_MILLISECONDS = 1_000
"""How long others wait at most for a writer that lost too often; it may have died."""

_NOTHING = "0-0"
"""The id before the first entry of a log."""


class Behind(Exception):
    """The log no longer has all that this copy lacks.

    `is_lost` says that the server has not kept what it had told this copy.
    """

    def __init__(self, *, is_lost: bool) -> None:
        super().__init__()
        self.is_lost = is_lost


@value
class Answer:
    """What the server said: whether it wrote, its time, and the entries that the copy lacks."""

    written: bool
    now: datetime
    entries: tuple[Changes, ...]
    must_wait: bool = False
    """Whether another writer has the turn, because it lost too often: a verb that runs now would be refused."""


class ChangeLog:
    """The head and the log of one store, as far as one copy has followed them."""

    def __init__(self, connections: RedisConnections, epoch: str = "") -> None:
        self._connections, self._key = connections, connections.address.key
        self._epoch, self._last, self._writer = epoch, _NOTHING, uuid4().hex
        self.has_turn = False
        """Whether this writer was given the turn and has written nothing since."""

    @property
    def epoch(self) -> str:
        """The name of the store that was opened. One that is made anew at the same place has another."""
        return self._epoch

    @property
    def number(self) -> int:
        """The number of the last entry that the copy has."""
        return number_of(self._last)

    @property
    def bell(self) -> str:
        """The channel on which writes that others may wait for are told."""
        return self._key("bell")

    async def open(self) -> None:
        """Make the store, if there is none and this process never saw it."""
        new = "" if self._epoch else uuid4().hex
        keys = [*self._keys, self._key("jobs")]
        epoch, format_, last = await self._connections.call("open", keys, [new, str(FORMAT)])
        if self._epoch not in ("", epoch):
            raise self._gone(epoch)
        if epoch is None:
            raise self.damaged("head")
        if format_ != str(FORMAT):
            reason = (
                f"its rows have format {format_}, and this everytick knows {FORMAT}; use the version that wrote them"
            )
            raise SchemaMismatch(str(self._connections.address), reason)
        self._epoch, self._last = epoch, last

    def _gone(self, epoch: str | None) -> StoreGone:
        reason = "another store stands in its place" if epoch else "the server has no store of this name any more"
        return StoreGone(str(self._connections.address), reason)

    def damaged(self, path: str) -> StoreBroken:
        """Return the error of a store of which a key is gone that must be there."""
        reason = f"keys of it were deleted, by eviction or by hand, such as that of {path}"
        advice = (
            f"set maxmemory-policy noeviction, and put a backup back; or delete all keys {self._key('*')} and start "
            "anew: definitions come from code and files again"
        )
        return StoreBroken(str(self._connections.address), reason, advice)

    async def check_writable(self) -> None:
        """Return if the server takes writes. Nothing is written where another store, or none, is in its place."""
        epoch = await self._connections.call("check", [self._key("head"), self._key("check")], [self._epoch])
        if epoch != self._epoch:
            raise self._gone(epoch)

    async def sync(self) -> Answer:
        """Return what the copy lacks."""
        return self._read(await self._connections.call("sync", self._keys, [self._epoch, self._last, self._writer]))

    async def commit(self, entry: str, members: str, *, rings: bool, turn: bool = False) -> Answer:
        """Write the entry, and the members of sets that follow from it, if the copy lacked nothing.

        With `turn`, a writer that is refused has the next turn: it lost too often.
        """
        id_, bell = f"{self.number + 1}-{getrandbits(63)}", self.bell if rings else ""
        given = [self._epoch, self._last, entry, str(KEPT_ENTRIES), bell, self._key(""), id_]
        given += [self._writer, str(_TURN_MILLISECONDS if turn else 0), members]
        # Whatever the answer is, or if none comes: the turn ends with it, unless it was given by it.
        self.has_turn = False
        answer = self._read(await self._connections.call("commit", self._keys, given))
        self.has_turn = turn and not answer.written and not answer.must_wait
        return answer

    async def wait(self) -> None:
        """Wait for the writer that has the turn: until the log has an entry that the copy lacks, for a turn at most."""
        log = {self._key("log"): self._last}
        await self._connections.asked(self._connections.client.xread(log, count=1, block=_TURN_MILLISECONDS))

    @property
    def _keys(self) -> list[str]:
        return [self._key("head"), self._key("log"), self._key("turn")]

    def _read(self, answer: Sequence[Any]) -> Answer:
        code, last, seconds, fraction, entries = answer
        now = moment_of(int(seconds) * 1_000_000 + int(fraction))
        if code == -1:
            raise self._gone(last)
        known, self._last = self._last, last
        if code == 1:
            return Answer(True, now, ())
        found_at = entries[0][0] if entries else ""
        if known == last:
            # It was refused for another writer's turn, and the copy lacks nothing.
            lacking = []
        elif known == _NOTHING and number_of(found_at or _NOTHING) == 1:
            lacking = entries
        elif known == found_at:
            lacking = entries[1:]
        else:
            is_replaced = bool(found_at) and number_of(found_at) == number_of(known)
            raise Behind(is_lost=is_replaced or number_of(last) < number_of(known))
        missed = tuple(changes_in(fields["changes"]) for fields in map(_pairs, lacking))
        return Answer(False, now, missed, must_wait=code == 2)

    async def tables(self, names: Sequence[str]) -> tuple[Changes, list[str]]:
        """Return the small tables, and the ids of all jobs."""
        pipeline = self._connections.client.pipeline(transaction=False)
        for name in names:
            pipeline.hgetall(self._key(name))
        pipeline.smembers(self._key("jobs"))
        *tables, jobs = await self._connections.asked(pipeline.execute())
        return {name: fields for name, fields in zip(names, tables, strict=True) if fields}, sorted(jobs)


def number_of(id_: str) -> int:
    """Return the number in the id of an entry."""
    return int(id_.partition("-")[0])


def _pairs(entry: Any) -> dict[str, str]:
    _, words = entry
    return words if isinstance(words, dict) else dict(zip(words[::2], words[1::2], strict=True))


async def format_of(url: str, prefix: str) -> int:
    """Return the format of the rows in a store, 0 if there is none, and change nothing."""
    connections = RedisConnections(RedisAddress(url, prefix))
    try:
        return int(await connections.asked(connections.client.hget(connections.address.key("head"), "format")) or 0)
    finally:
        await connections.close()
