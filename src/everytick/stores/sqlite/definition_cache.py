"""Definitions in a file. An unreadable one is left out; other jobs are unaffected."""

import json
import sqlite3
from collections.abc import Callable, Collection
from time import monotonic

from everytick.domain.values import value
from everytick.stores.sql.definitions import (
    Compiled,
    Definitions,
    Key,
    StoredVersion,
    UnreadableVersion,
    why_unreadable,
)
from everytick.stores.sqlite.queries import Q, fetch

_TRIED_AGAIN_SECONDS = 10.0
"""How long an unreadable version is left to other processes. Its kind of schedule may be registered by then."""


@value
class Unreadable:
    """A version that this process cannot read, and why."""

    key: Key
    reason: str


class FileDefinitions(Definitions):
    """The versions of one file that this process has read, and those that it cannot read."""

    def __init__(self, seconds: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._seconds = seconds
        self._unreadable: dict[Key, Unreadable] = {}
        self._left_until: dict[Key, float] = {}
        self._unshown: list[Unreadable] = []

    def get(self, connection: sqlite3.Connection, job_key: int, version: int) -> Compiled | None:
        """Return one version, or None if it cannot be read. `unshown` then has the reason."""
        key = (job_key, version)
        found = self._young.get(key)
        if found is not None:
            return found
        if self._is_left(key):
            return None
        return self.known(key) or self._read(connection, key)

    def _is_left(self, key: Key) -> bool:
        return key in self._left_until and self._seconds() < self._left_until[key]

    def find(self, connection: sqlite3.Connection, job_key: int, version: int) -> Compiled | None:
        """Return one version, or None if it cannot be read or is not there."""
        key = (job_key, version)
        if key not in self._young and not fetch(connection, Q.definition(job_key=job_key, version=version)):
            return None
        return self.get(connection, job_key, version)

    def refuse(self, key: Key, reason: str) -> None:
        """Leave this version to other processes. It is read again after `_TRIED_AGAIN_SECONDS`."""
        self.forget(*key)
        with self._lock:
            self._left_until[key] = self._seconds() + _TRIED_AGAIN_SECONDS
            if key not in self._unreadable:
                refused = self._unreadable[key] = Unreadable(key, reason)
                self._unshown.append(refused)

    def refuse_editions(self, job_key: int, newest: int, version: int) -> None:
        """Leave a job to other processes because one of the versions that it is still planned by is unreadable."""
        reason = f"version {version}, which is still to be decided by, cannot be read"
        self.refuse((job_key, newest), why_unreadable(newest, reason))

    def reason(self, key: Key) -> str:
        """Return why a stored version cannot be read. If it is not stored, return its number for the error."""
        found = self._unreadable.get(key)
        return f"version {key[1]}" if found is None else found.reason

    def unshown(self) -> tuple[Unreadable, ...]:
        """Return the unreadable versions that are not parked yet, so that people cannot see them."""
        return tuple(self._unshown)

    def were_shown(self, shown: Collection[Unreadable]) -> None:
        """Note that these are parked now, so that people can see them."""
        with self._lock:
            self._unshown = [unreadable for unreadable in self._unshown if unreadable not in shown]

    def refused(self) -> str:
        """Return the unreadable versions as JSON, for queries to leave out."""
        with self._lock:
            left = [key for key in self._unreadable if self._is_left(key)]
            return json.dumps([f"{job_key}:{version}" for job_key, version in left])

    def _read(self, connection: sqlite3.Connection, key: Key) -> Compiled | None:
        stored = fetch(connection, Q.definition(job_key=key[0], version=key[1]))
        assert stored, f"job {key[0]} has no version {key[1]}"
        [row] = stored
        try:
            found = self.compile(
                StoredVersion(
                    key=key,
                    definition=row["definition"],
                    job_id=row["id"],
                    created_at=row["created_at"],
                    edited_at=row["edited_at"],
                    in_force_after=row["in_force_after"],
                    edited_by=row["edited_by"],
                    follows=row["follows"],
                    rollout=row["rollout"],
                )
            )
        except UnreadableVersion as error:
            self.refuse(key, str(error))
            return None
        if key in self._unreadable:
            with self._lock:
                del self._unreadable[key], self._left_until[key]
        return found
