"""prune: how old occurrences are forgotten."""

from everytick.stores.postgres.base import Base
from everytick.stores.postgres.door import patiently


class HistoryVerbs(Base):
    """What is asked about occurrences in bulk."""

    @patiently
    async def prune(self, limit: int = 1000) -> int:
        """Forget up to `limit` ended occurrences that their job's retention no longer keeps; return how many."""
        async with self._door.connection() as db:
            await db.execute(self._sql.relabel_wakes)
            return int(await db.fetchval(self._sql.prune, limit))
