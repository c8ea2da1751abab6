"""Definitions, read once: a job's version never changes, so whoever has compiled it need not read it again."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from everytick.domain.job import Job
from everytick.domain.snapshots import Edition
from everytick.domain.steps import NOT_STARTED, Rules, RunState, rules_of
from everytick.domain.texts import UNREADABLE
from everytick.domain.values import value
from everytick.errors import EverytickError, shown
from everytick.stores.definitions import read_definition
from everytick.stores.postgres.door import Connection

Key = tuple[int, int]
"""A job's inner key and a version."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ASKED_FOR = 1_000
_UNREADABLE = (EverytickError, ValueError, KeyError, TypeError, AttributeError, IndexError)


@value
class Kept:
    """A definition ready for use, as an edition too, and where its runs stand before anything began."""

    job: Job
    rules: Rules
    edition: Edition
    unstarted: tuple[RunState, ...]


class Compiled:
    """The definitions used most recently, at most so many."""

    def __init__(self, query: str, most: int) -> None:
        self._query = query
        self._most = most
        self._kept: dict[Key, Kept] = {}
        self._newest: dict[str, tuple[int, Job]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    async def read(self, db: Connection, wanted: Iterable[Key]) -> tuple[dict[Key, Kept], dict[Key, str]]:
        """Return the definitions asked for, and of those that cannot be read, why."""
        found: dict[Key, Kept] = {}
        missing: list[Key] = []
        for key in wanted:
            if kept := self._kept.get(key):
                found[key] = kept
            else:
                missing.append(key)
        broken: dict[Key, str] = {}
        if missing:
            for row in await db.fetch(self._query, *zip(*missing, strict=True)):
                key = row["job_key"], row["version"]
                try:
                    found[key] = self._keep(key, _compile(row))
                except _UNREADABLE as error:
                    reason = f"{type(error).__name__}: {shown(str(error))}"
                    broken[key] = UNREADABLE.format(version=key[1], reason=reason)
        return found, broken

    def forget(self, job: int, version: int) -> None:
        """Forget what was read of a version that a transaction is about to write: it may have been tried before."""
        self._kept.pop((job, version), None)

    def newest(self, job_id: str) -> tuple[int, Job] | None:
        """Return the inner key and the definition that were the newest of a job when somebody asked for it."""
        return self._newest.get(job_id)

    def remember_newest(self, seq: int, job: Job) -> None:
        """Know the newest definition of a job that people ask for; whoever uses it says which one it was."""
        while len(self._newest) >= _ASKED_FOR:
            del self._newest[next(iter(self._newest))]
        self._newest[job.id] = seq, job

    def _keep(self, key: Key, kept: Kept) -> Kept:
        self._kept[key] = kept
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return kept


def _compile(row: Connection) -> Kept:
    job = read_definition(
        row["definition"],
        id=row["id"],
        version=row["version"],
        created_at=_moment(row["created_at"]),
        updated_at=_moment(row["updated_at"]),
    )
    since = None if row["in_force_after"] is None else _moment(row["in_force_after"])
    return Kept(job, rules_of(job), Edition(job, since), (NOT_STARTED,) * len(job.tasks))


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
