"""Definitions read once and kept, bounded: a version of a job never changes."""

from datetime import datetime
from threading import Lock
from typing import TypeAlias

from everytick.domain.job import Job
from everytick.domain.rollouts import rollout
from everytick.domain.snapshots import Edition
from everytick.domain.steps import Rules, rules_of
from everytick.domain.texts import UNREADABLE
from everytick.domain.values import value
from everytick.errors import shown
from everytick.stores.definitions import read_definition

Key: TypeAlias = tuple[int, int]
"""The inner key of a job, and a version."""

MOST_KEPT = 200_000
"""Most definitions that are kept. Each takes about a kilobyte. If all are used in turn, half as many are kept."""

_ASKED_FOR = 1_000
"""Most jobs of which the newest version is known."""


@value
class Compiled:
    """One version of a job, the rules of its occurrences that override nothing, and since when it is in force."""

    job: Job
    rules: Rules
    edition: Edition


@value
class StoredVersion:
    """One version of a job as its row has it."""

    key: Key
    definition: str
    job_id: str
    created_at: datetime
    edited_at: datetime
    in_force_after: datetime | None
    edited_by: str
    follows: int | None
    rollout: str | None = None


class UnreadableVersion(Exception):
    """This process cannot read a version; the text says why, for people."""


class Definitions:
    """The versions this process has read. The threads of a store share them: reading `_young` needs no lock."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._young: dict[Key, Compiled] = {}
        self._old: dict[Key, Compiled] = {}
        self._newest: dict[str, tuple[int, Edition]] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())

    def known(self, key: Key) -> Compiled | None:
        """Return a version that was read before, if it is still kept."""
        found = self._young.get(key)
        if found is None:
            with self._lock:
                found = self._old.get(key)
                if found is not None:
                    self._keep(key, found)
        return found

    def compile(self, stored: StoredVersion) -> Compiled:
        """Return the version in this row, and keep it. Raise `UnreadableVersion` if it cannot be read."""
        version = stored.key[1]
        times = {"created_at": stored.created_at, "updated_at": stored.edited_at}
        try:
            job = read_definition(stored.definition, id=stored.job_id, version=version, **times)
            trial = None if stored.rollout is None else rollout(stored.rollout)
            edition = Edition(job, stored.in_force_after, stored.edited_by, stored.follows, trial)
            compiled = Compiled(job, rules_of(job), edition)
        except Exception as error:  # whatever is wrong with it, the other jobs go on
            raise UnreadableVersion(why_unreadable(version, f"{type(error).__name__}: {error}")) from error
        with self._lock:
            self._keep(stored.key, compiled)
        return compiled

    def forget(self, job_key: int, version: int) -> None:
        """Drop a cached version that a transaction is about to write: an earlier try may have written another one."""
        with self._lock:
            for generation in (self._young, self._old):
                generation.pop((job_key, version), None)

    def _keep(self, key: Key, compiled: Compiled) -> None:
        """Keep a version. A version that is not used while half of `most` others are used is dropped."""
        if len(self._young) >= self._most // 2:
            self._old, self._young = self._young, {}
        self._young[key] = compiled

    def newest(self, job_id: str) -> tuple[int, Edition] | None:
        """Return the inner key and the newest version of a job when it was last asked for."""
        return self._newest.get(job_id)

    def remember_newest(self, job_key: int, edition: Edition) -> None:
        """Note the newest version of a job. The caller sends the version it used, so an older one does no harm."""
        while len(self._newest) >= _ASKED_FOR:
            del self._newest[next(iter(self._newest))]
        self._newest[edition.job.id] = job_key, edition


def why_unreadable(version: int, reason: str) -> str:
    """Return why a version cannot be read, in a line for people."""
    return UNREADABLE.format(version=version, reason=shown(reason, 500))
