"""The log: what is written to it, how a copy follows it, and how a copy is loaded."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from random import getrandbits
from typing import Any
from uuid import uuid4

from everytick.domain.values import value
from everytick.errors import SchemaMismatch, StoreGone
from everytick.stores.redis.codec import moment_of
from everytick.stores.redis.door import RedisAddress, RedisDoor
from everytick.stores.redis.replica import JOB, OCCURRENCE, Changes, Replica
from everytick.stores.redis.rows import instant_in

FORMAT = 1
"""The format of the rows. A process refuses a store of another one."""

KEPT_ENTRIES = 1_000
"""About how many entries the log keeps. A copy that lacks more is loaded again."""

_NOTHING = "0-0"
"""The id before the first entry of a log."""

_AT_ONCE = 500
"""How many hashes are read at once."""


class Behind(Exception):
    """The log no longer has all that this copy lacks."""


@value
class Answer:
    """What the server said: whether it wrote, its time, and the entries that the copy lacks."""

    written: bool
    now: datetime
    entries: tuple[Changes, ...]


class ChangeLog:
    """The head and the log of one store, as far as one copy has followed them."""

    def __init__(self, door: RedisDoor) -> None:
        self._door, self._key = door, door.address.key
        self._epoch, self._last = "", _NOTHING

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
        epoch, format_, last = await self._door.call("open", [self._key("head")], [new, str(FORMAT)])
        if self._epoch not in ("", epoch):
            raise self._gone(epoch)
        if format_ != str(FORMAT):
            reason = (
                f"its rows have format {format_}, and this everytick knows {FORMAT}; use the version that wrote them"
            )
            raise SchemaMismatch(str(self._door.address), reason)
        self._epoch, self._last = epoch, last

    def _gone(self, epoch: str | None) -> StoreGone:
        reason = "another store stands in its place" if epoch else "the server has no store of this name any more"
        return StoreGone(str(self._door.address), reason)

    async def sync(self) -> Answer:
        """Return what the copy lacks."""
        return self._read(await self._door.call("sync", self._keys, [self._epoch, self._last]))

    async def commit(self, changes: Changes, *, rings: bool) -> Answer:
        """Write the changes if the copy lacked nothing."""
        entry, bell = json.dumps(changes, separators=(",", ":")), self.bell if rings else ""
        id_ = f"{self.number + 1}-{getrandbits(63)}"
        head = [self._epoch, self._last, entry, str(KEPT_ENTRIES), bell, self._key(""), id_]
        return self._read(await self._door.call("commit", self._keys, [*head, *_members(changes)]))

    @property
    def _keys(self) -> list[str]:
        return [self._key("head"), self._key("log")]

    def _read(self, found: Sequence[Any]) -> Answer:
        code, last, seconds, fraction, entries = found
        now = moment_of(int(seconds) * 1_000_000 + int(fraction))
        if code == -1:
            raise self._gone(last)
        known, self._last = self._last, last
        if code == 1:
            return Answer(True, now, ())
        found_at = entries[0][0] if entries else ""
        if known == _NOTHING and number_of(found_at or _NOTHING) == 1:
            lacking = entries
        elif known == found_at:
            lacking = entries[1:]
        else:
            raise Behind
        return Answer(False, now, tuple(json.loads(fields["changes"]) for fields in map(_pairs, lacking)))

    # --------------------------------------------------------------------------------------------------- loading

    async def load(self, replica: Replica) -> None:
        """Read the whole store into an empty copy."""
        await self.open()
        asked, client = self._door.asked, self._door.client
        for name in replica.tables:
            if fields := await asked(client.hgetall(self._key(name))):
                replica.take({name: fields})
        jobs = sorted(await asked(client.smembers(self._key("jobs"))))
        await self._load_rows(replica, [f"{JOB}{id_}" for id_ in jobs])
        for some in _parts(jobs):
            pipeline = client.pipeline(transaction=False)
            for id_ in some:
                pipeline.zrange(self._key(f"{JOB}{id_}/occurrences"), 0, -1)
            found = zip(some, await asked(pipeline.execute()), strict=True)
            await self._load_rows(
                replica, [f"{JOB}{id_}{OCCURRENCE}{each}" for id_, members in found for each in members]
            )

    async def _load_rows(self, replica: Replica, paths: Sequence[str]) -> None:
        for some in _parts(paths):
            pipeline = self._door.client.pipeline(transaction=False)
            for path in some:
                pipeline.hgetall(self._key(path))
            rows: Iterable[Mapping[str, str]] = await self._door.asked(pipeline.execute())
            replica.take({path: dict(fields) for path, fields in zip(some, rows, strict=True) if fields})


def number_of(id_: str) -> int:
    """Return the number in the id of an entry."""
    return int(id_.partition("-")[0])


def _members(changes: Changes) -> Iterator[str]:
    """Give what the commit adds to, and takes from, the set of jobs and the sorted history of each."""
    for path, fields in changes.items():
        if not path.startswith(JOB):
            continue
        job_id, _, id_ = path.removeprefix(JOB).partition(OCCURRENCE)
        if not id_:
            if fields is None or "state" in fields:
                yield from ("SREM" if fields is None else "SADD", "jobs", "", job_id)
        elif fields is None:
            yield from ("ZREM", f"{JOB}{job_id}/occurrences", "", id_)
        elif (made := fields.get("made")) is not None:
            yield from ("ZADD", f"{JOB}{job_id}/occurrences", str(instant_in(made)), id_)


def _pairs(entry: Any) -> dict[str, str]:
    _, found = entry
    return found if isinstance(found, dict) else dict(zip(found[::2], found[1::2], strict=True))


def _parts(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (items[at : at + _AT_ONCE] for at in range(0, len(items), _AT_ONCE))


async def format_of(url: str, prefix: str) -> int:
    """Return the format of the rows in a store, 0 if there is none, and change nothing."""
    door = RedisDoor(RedisAddress(url, prefix))
    try:
        return int(await door.asked(door.client.hget(door.address.key("head"), "format")) or 0)
    finally:
        await door.close()
