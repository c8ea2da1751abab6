"""define, undefined and retire: which jobs starts define, and what becomes of jobs that were left out."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from everytick.domain.definers import NameSet, Undefined, UndefinedJob, hash_of
from everytick.domain.needs import RETIRED
from everytick.stores.postgres.door import patiently
from everytick.stores.postgres.jobs import Jobs
from everytick.stores.postgres.rows import Row


class Definers(Jobs):
    """Sets of job names, and marks on the jobs that a start left out."""

    @patiently
    async def define(self, names: Collection[str], left_out: Collection[str] = ()) -> None:
        """Keep the names that a start defines, once under their hash, and mark the jobs that it leaves out."""
        told = sorted(names)
        async with self._door.transaction() as db:
            await db.execute(self._sql.add_name_set, hash_of(told), told)
            await db.execute(self._sql.take_marks, told)
            if left_out:
                names_left_out = sorted(set(left_out).difference(told))
                await db.fetch(self._sql.lock_names, names_left_out)
                await db.execute(self._sql.mark_undefined, names_left_out)

    @patiently
    async def undefined(self) -> Undefined:
        """Return every job in service that is marked, by name, and every set of names if there is any."""
        async with self._door.connection() as db:
            now: datetime = await db.fetchval(self._sql.now)
            found = await db.fetch(self._sql.undefined_jobs)
            sets = await db.fetch(self._sql.name_sets) if found else ()
        return Undefined(
            now,
            tuple(UndefinedJob(row["id"], row["name"], row["undefined_since"]) for row in found),
            tuple(NameSet(row["hash"], frozenset(row["names"]), row["stored_at"]) for row in sets),
        )

    @patiently
    async def retire(self, marks: Mapping[str, datetime], *, after: timedelta, by: str = "") -> frozenset[str]:
        """Remove each of these jobs, by id, if it still has the mark that was seen; return those that were removed."""
        async with self._door.transaction() as db:
            if not _still_marked(await db.fetch(self._sql.undefined_jobs), marks):
                return frozenset()
            # Before any job is locked, as in every verb: two transactions may write this text at once.
            await db.execute(self._sql.add_needs, [RETIRED])
            taken = _still_marked(await db.fetch(self._sql.hold_undefined, list(marks)), marks)
            now = await db.fetchval(self._sql.now)
            for row in taken:
                await self._remove_held(db, {"job_key": row["job_key"], "now": now}, after, by)
            await self._foretell(db, [row["id"] for row in taken])
        return frozenset(row["id"] for row in taken)


def _still_marked(found: Sequence[Row], marks: Mapping[str, datetime]) -> list[Row]:
    return [row for row in found if marks.get(row["id"]) == row["undefined_since"]]
