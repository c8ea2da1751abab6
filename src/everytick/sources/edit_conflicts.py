"""Edits that meet those of others: how often they are decided and sent again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everytick.errors import VersionConflict
    from everytick.stores.protocols import JobStore

EDIT_TRIES = 5
"""How often an edit is tried while others edit the same jobs."""


class EditTries:
    """Counts the tries of one edit of several jobs.

    `unreadable` has the names of jobs that the store has and this everytick cannot read: such a job gives way to any
    definition. A try that only found another one of them does not count.
    """

    def __init__(self, store: JobStore) -> None:
        self._store, self._left = store, EDIT_TRIES
        self.unreadable: frozenset[str] = frozenset()

    async def may_go_on(self, conflict: VersionConflict) -> bool:
        """Return whether to read the jobs again, decide and send the edit once more."""
        hidden = await self._hidden(conflict)
        self._left -= not hidden - self.unreadable
        self.unreadable |= hidden
        return self._left > 0

    async def _hidden(self, conflict: VersionConflict) -> frozenset[str]:
        """Return the job of the conflict if `list` leaves it out, since its definition cannot be read."""
        shown = {record.job.name for record in await self._store.list()}
        return frozenset() if conflict.expected or conflict.job in shown else frozenset({conflict.job})
