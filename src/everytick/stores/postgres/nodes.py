"""leave and nodes: which nodes there are, and what they said of themselves."""

import json
from collections.abc import Sequence

from everytick.domain.nodes import facts_from
from everytick.stores.base import ClaimKey, NodeRecord
from everytick.stores.postgres.base import Base
from everytick.stores.postgres.door import patiently


class Nodes(Base):
    """What nodes say of themselves."""

    @patiently
    async def leave(self, node: str) -> None:
        """Say that the node beats no more: its beats are 0, and what it still holds is an orphan at once."""
        async with self._door.connection() as db:
            await db.execute(self._sql.leave, node)

    @patiently
    async def nodes(self) -> Sequence[NodeRecord]:
        """Return the nodes that were heard of and every other owner of anything, by id."""
        async with self._door.connection() as db:
            found = await db.fetch(self._sql.nodes)
        return [
            NodeRecord(
                row["id"],
                row["beat_at"],
                row["holds"],
                None if row["facts"] is None else facts_from(json.loads(row["facts"])),
                row["beats"],
                tuple(map(ClaimKey, row["overdue"] or (), row["fences"] or (), row["tokens"] or ())),
            )
            for row in found
        ]
