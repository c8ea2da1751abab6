"""Definitions read once and kept, bounded; one that cannot be read is set apart, and harms no other job."""

import json
import sqlite3
from collections.abc import Collection
from datetime import datetime
from threading import Lock

from everytick.domain.job import Job
from everytick.domain.snapshots import Edition
from everytick.domain.steps import Rules, rules_of
from everytick.domain.texts import UNREADABLE
from everytick.domain.values import value
from everytick.errors import shown
from everytick.stores.definitions import read_definition
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.rows import moment, moment_or_none

MOST_KEPT = 200_000
"""So many definitions are kept at most, about a kilobyte each, and half as many if all are used in turn."""


@value
class Compiled:
    """One version of a job, the rules of its occurrences that override nothing, and since when it is in force."""

    job: Job
    rules: Rules
    in_force_after: datetime | None

    @property
    def edition(self) -> Edition:
        """The definition, and since when it is in force."""
        return Edition(self.job, self.in_force_after)


@value
class Unreadable:
    """A version that this process cannot read, and why."""

    job: int
    version: int
    reason: str


class Definitions:
    """The versions this process has read: the threads of a store share them."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._young: dict[tuple[int, int], Compiled] = {}
        self._old: dict[tuple[int, int], Compiled] = {}
        self._unreadable: dict[tuple[int, int], Unreadable] = {}
        self._unshown: list[Unreadable] = []
        self._lock = Lock()

    def get(self, connection: sqlite3.Connection, job: int, version: int) -> Compiled | None:
        """Return one version, or None if it cannot be read: then `unshown` tells of it."""
        key = (job, version)
        found = self._young.get(key)
        if found is not None:
            return found
        with self._lock:
            if key in self._unreadable:
                return None
            found = self._old.get(key)
            if found is not None:
                self._keep(key, found)
                return found
        return self._read(connection, job, version)

    def find(self, connection: sqlite3.Connection, job: int, version: int) -> Compiled | None:
        """Return one version, or None if it cannot be read or is not there."""
        if (job, version) not in self._young and connection.execute(Q.definition, (job, version)).fetchone() is None:
            return None
        return self.get(connection, job, version)

    def _keep(self, key: tuple[int, int], compiled: Compiled) -> None:
        """What was not used while half of all that may be kept was, is forgotten; what is used needs no lock."""
        if len(self._young) >= self._most // 2:
            self._old, self._young = self._young, {}
        self._young[key] = compiled

    def refuse(self, job: int, version: int, reason: str) -> None:
        """Set a version apart: this process leaves it to others."""
        refused = Unreadable(job, version, UNREADABLE.format(version=version, reason=reason))
        with self._lock:
            self._young.pop((job, version), None)
            self._old.pop((job, version), None)
            if (job, version) not in self._unreadable:
                self._unreadable[job, version] = refused
                self._unshown.append(refused)

    def forget(self, job: int, version: int) -> None:
        """Forget what was read of a version that a transaction is about to write: it may have been tried before."""
        with self._lock:
            for kept in (self._young, self._old):
                kept.pop((job, version), None)

    def why_unreadable(self, job: int, version: int) -> str:
        """Return why a version that is there cannot be read; that it is not there, if it is not."""
        found = self._unreadable.get((job, version))
        return f"version {version}" if found is None else found.reason

    def unshown(self) -> tuple[Unreadable, ...]:
        """Return what was set apart and people cannot see yet."""
        return tuple(self._unshown)

    def were_shown(self, shown_: Collection[Unreadable]) -> None:
        """Note that people can see these now."""
        with self._lock:
            self._unshown = [each for each in self._unshown if each not in shown_]

    def refused(self) -> str:
        """Return what was set apart as the JSON text that queries leave out by."""
        with self._lock:
            return json.dumps([f"{job}:{version}" for job, version in self._unreadable])

    def _read(self, connection: sqlite3.Connection, job: int, version: int) -> Compiled | None:
        row = connection.execute(Q.definition, (job, version)).fetchone()
        assert row is not None, f"job {job} has no version {version}"
        text, id_, created_at, made_at, in_force_after = row
        try:
            read = read_definition(
                text, id=id_, version=version, created_at=moment(created_at), updated_at=moment(made_at)
            )
            rules = rules_of(read)
            compiled = Compiled(read, rules, moment_or_none(in_force_after))
        except Exception as error:  # noqa: BLE001  whatever is wrong with it, the other jobs go on
            self.refuse(job, version, shown(f"{type(error).__name__}: {error}", 500))
            return None
        with self._lock:
            self._keep((job, version), compiled)
        return compiled
