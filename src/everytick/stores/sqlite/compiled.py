"""Definitions in a file: one that cannot be read is set apart, and harms no other job."""

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
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.rows import moment, moment_or_none

_TRIED_AGAIN_SECONDS = 10.0
"""How long a version that cannot be read is left to others: its kind of schedule may be made known meanwhile."""


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
        """Return one version, or None if it cannot be read: then `unshown` tells of it."""
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
        if key not in self._young and connection.execute(Q.definition, key).fetchone() is None:
            return None
        return self.get(connection, job_key, version)

    def refuse(self, key: Key, reason: str) -> None:
        """Set a version apart: this process leaves it to others, and reads it again after a while."""
        self.forget(*key)
        with self._lock:
            self._left_until[key] = self._seconds() + _TRIED_AGAIN_SECONDS
            if key not in self._unreadable:
                refused = self._unreadable[key] = Unreadable(key, reason)
                self._unshown.append(refused)

    def refuse_editions(self, job_key: int, newest: int, version: int) -> None:
        """Set a job apart of which a version cannot be read that is still to be decided by."""
        reason = f"version {version}, which is still to be decided by, cannot be read"
        self.refuse((job_key, newest), why_unreadable(newest, reason))

    def reason(self, key: Key) -> str:
        """Return why a version that is there cannot be read; that it is not there, if it is not."""
        found = self._unreadable.get(key)
        return f"version {key[1]}" if found is None else found.reason

    def unshown(self) -> tuple[Unreadable, ...]:
        """Return what was set apart and people cannot see yet."""
        return tuple(self._unshown)

    def were_shown(self, shown: Collection[Unreadable]) -> None:
        """Note that people can see these now."""
        with self._lock:
            self._unshown = [unreadable for unreadable in self._unshown if unreadable not in shown]

    def refused(self) -> str:
        """Return what was set apart as the JSON text that queries leave out by."""
        with self._lock:
            left = [key for key in self._unreadable if self._is_left(key)]
            return json.dumps([f"{job_key}:{version}" for job_key, version in left])

    def _read(self, connection: sqlite3.Connection, key: Key) -> Compiled | None:
        row = connection.execute(Q.definition, key).fetchone()
        assert row is not None, f"job {key[0]} has no version {key[1]}"
        text, job_id, created_at, edited_at, in_force_after, edited_by, follows, trial = row
        times = moment(created_at), moment(edited_at), moment_or_none(in_force_after)
        try:
            found = self.compile(StoredVersion(key, text, job_id, *times, edited_by, follows, trial))
        except UnreadableVersion as error:
            self.refuse(key, str(error))
            return None
        if key in self._unreadable:
            with self._lock:
                del self._unreadable[key], self._left_until[key]
        return found
