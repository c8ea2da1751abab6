"""The verbs that both SQL stores carry out by the same steps."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TypeVar

from everytick.stores.base import NodeRecord
from everytick.stores.sql.commands import Make
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.verbs import nodes, purging

T = TypeVar("T")


class ColdVerbs(ABC):
    """What people, definitions and reapers ask. A store says how it carries a verb out, and keeps its hot verbs."""

    _q: ColdQueries

    @abstractmethod
    async def _transact(self, make: Make[T]) -> T:
        """Carry the verb out in one transaction and return its answer once that is committed."""

    @abstractmethod
    async def _question(self, make: Make[T]) -> T:
        """Carry out a verb that only reads, and return its answer: all of it is of one moment."""

    async def purge(self, job_id: str, limit: int = 1000) -> bool:
        """Forget up to `limit` occurrences of a removed job for good, and the job once none is left."""
        return await self._transact(partial(purging.purge, self._q, job_id, limit))

    async def leave(self, node: str) -> None:
        """Say that the node beats no more: its beats are 0, and what it still holds is an orphan at once."""
        await self._transact(partial(nodes.leave, self._q, node))

    async def nodes(self) -> Sequence[NodeRecord]:
        """Return the nodes that were heard of and every other owner of an occurrence, by id."""
        return await self._question(partial(nodes.nodes, self._q))
