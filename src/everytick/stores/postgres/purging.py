"""purge: a removed job goes for good, with all that belongs to it."""

from asyncpg import ForeignKeyViolationError  # type: ignore[import-untyped,unused-ignore]

from everytick.stores.beginnings import refuse_purge
from everytick.stores.postgres.door import patiently
from everytick.stores.postgres.jobs import Jobs


class Purging(Jobs):
    """Jobs that shall leave no trace."""

    @patiently
    async def purge(self, job_id: str, limit: int = 1000) -> bool:
        """Forget up to `limit` occurrences of a removed job for good, and the job once none is left."""
        async with self._door.transaction() as db:
            row = await self._hold(db, job_id)
            job = row["job"]
            name = (await db.fetchrow(self._sql.newest, job))["name"]
            refuse_purge(name, row["removed_at"], await db.fetchval(self._sql.held_of_job, job))
            if await db.fetchval(self._sql.purge_occurrences, job, limit) >= limit:
                return False
            # What a node claimed at this very moment was not taken away.
            refuse_purge(name, row["removed_at"], await db.fetchval(self._sql.held_of_job, job))
            try:
                async with db.transaction():
                    await db.execute(self._sql.purge_job, job)
            except ForeignKeyViolationError:
                # Somebody's own transaction has asked for it meanwhile: the next look sees that request.
                return False
            return True
