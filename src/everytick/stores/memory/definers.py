"""define, undefined and retire: which jobs the starting processes define, and how jobs that none defines retire."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from everytick.domain.changes import Remove
from everytick.domain.definers import NameSet, Undefined, UndefinedJob, hash_of
from everytick.domain.lookups import UndefinedJobs
from everytick.stores.memory.base import Shared
from everytick.stores.memory.jobs import JobVerbs


class DefinerVerbs:
    """Sets of job names, and marks on the jobs that a starting process left out."""

    def __init__(self, shared: Shared, jobs: JobVerbs) -> None:
        self._shared, self._tables, self._jobs = shared, shared.tables, jobs

    def define(self, names: Collection[str], left_out: Collection[str]) -> None:
        """Store the names that a starting process defines, once under their hash, and mark the jobs in `left_out`."""
        now, hash_ = self._shared.now(), hash_of(names)
        self._tables.name_sets[hash_] = NameSet(hash_, frozenset(names), now)
        for row in self._tables.names.values():
            if row.name in names:
                row.undefined_since = None
            elif row.name in left_out and row.removed_at is None and row.undefined_since is None:
                row.undefined_since = now

    def undefined(self, _: UndefinedJobs) -> Undefined:
        """Return the jobs that are marked, and the sets of names of the processes that run."""
        marked = tuple(
            UndefinedJob(row.id, row.name, row.undefined_since)
            for _, row in sorted(self._tables.names.items())
            if row.undefined_since is not None and row.removed_at is None
        )
        sets = sorted(self._tables.name_sets.values(), key=lambda name_set: name_set.hash) if marked else ()
        return Undefined(self._shared.now(), marked, tuple(sets))

    def retire(self, marks: Mapping[str, datetime], *, after: timedelta, by: str) -> frozenset[str]:
        """Remove each of these jobs, by id, if it still has this mark. Return those that were removed."""
        known = [self._tables.jobs[id_] for id_ in marks if id_ in self._tables.jobs]
        still_marked = [row for row in known if row.removed_at is None and row.undefined_since == marks[row.id]]
        self._jobs.apply([Remove(row.name, after) for row in still_marked], by)
        return frozenset(row.id for row in still_marked)
