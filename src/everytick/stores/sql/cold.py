"""The verbs that both SQL stores carry out by the same steps."""

from abc import ABC, abstractmethod
from functools import partial
from typing import TypeVar

from everytick.stores.sql.commands import Make
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.verbs import purging

T = TypeVar("T")


class ColdVerbs(ABC):
    """What people, definitions and reapers ask. A store says how it carries a verb out, and keeps its hot verbs."""

    _q: ColdQueries

    @abstractmethod
    async def _transact(self, make: Make[T]) -> T:
        """Carry the verb out in one transaction and return its answer once that is committed."""

    @abstractmethod
    async def _question(self, make: Make[T]) -> T:
        """Carry out a verb that only reads, and return its answer."""

    async def purge(self, job_id: str, limit: int = 1000) -> bool:
        """Forget up to `limit` occurrences of a removed job for good, and the job once none is left."""
        return await self._transact(partial(purging.purge, self._q, job_id, limit))
