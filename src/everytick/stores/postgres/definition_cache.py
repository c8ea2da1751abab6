"""Definitions on a server: a job's version never changes, so one that was read need not be read again."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from everytick.stores.postgres.connections import Connection
from everytick.stores.sql.definitions import Compiled, Definitions, Key, StoredVersion, UnreadableVersion
from everytick.stores.sql.statements import Statement

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ServerDefinitions(Definitions):
    """The versions of one schema that this process has read."""

    def __init__(self, query: Statement, most: int) -> None:
        super().__init__(most)
        self._query = query

    async def read(self, db: Connection, wanted: Iterable[Key]) -> tuple[dict[Key, Compiled], dict[Key, str]]:
        """Return these definitions, and the reasons of the unreadable ones."""
        found: dict[Key, Compiled] = {}
        missing: list[Key] = []
        for key in wanted:
            if (kept := self._young.get(key) or self.known(key)) is not None:
                found[key] = kept
            else:
                missing.append(key)
        broken: dict[Key, str] = {}
        if missing:
            job_keys, versions = zip(*missing, strict=True)
            for row in await db.fetch(*self._query(job_keys=job_keys, versions=versions)):
                stored = _stored(row)
                try:
                    found[stored.key] = self.compile(stored)
                except UnreadableVersion as error:
                    broken[stored.key] = str(error)
        return found, broken


def _stored(row: Connection) -> StoredVersion:
    since = row["in_force_after"]
    return StoredVersion(
        key=(row["job_key"], row["version"]),
        definition=row["definition"],
        job_id=row["id"],
        created_at=_moment(row["created_at"]),
        edited_at=_moment(row["updated_at"]),
        in_force_after=None if since is None else _moment(since),
        edited_by=row["edited_by"],
        follows=row["follows"],
        rollout=row["rollout"],
    )


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
