"""existing and prune: which occurrences are there, and how old ones are forgotten."""

from collections.abc import Collection

from everytick.stores.postgres.base import Base, occurrence_key
from everytick.stores.postgres.door import patiently


class HistoryVerbs(Base):
    """What is asked about occurrences in bulk."""

    @patiently
    async def existing(self, occurrence_ids: Collection[str]) -> frozenset[str]:
        """Return those of these ids that an occurrence has."""
        async with self._door.connection() as db:
            found = await db.fetch(self._sql.existing, [occurrence_key(id_) for id_ in occurrence_ids])
        return frozenset(row[0] for row in found)

    @patiently
    async def prune(self, limit: int = 1000) -> int:
        """Forget up to `limit` ended occurrences that their job's retention no longer keeps; return how many."""
        async with self._door.connection() as db:
            await db.execute(self._sql.relabel_wakes)
            return int(await db.fetchval(self._sql.prune, limit))
