"""The janitor: forgets what retention no longer keeps, in small batches, removes jobs that no node defines, and folds.

To fold is to add what has ended to the counts and lengths that pages read: the end itself does not write them.
"""

from collections.abc import Callable

from everytick.node.clock import NodeClock
from everytick.node.definers import retire_undefined
from everytick.node.logs import OUTPUT_KEPT, Logs
from everytick.stores.addresses import AnyStore
from everytick.stores.base import NodeRecord

_PRUNED_AT_ONCE = 1_000
"""Largest number of occurrences that one question deletes: it keeps the locks short."""


class Janitor:
    """Prunes ended occurrences and retires jobs. `lives` says whether a node beats, as this node has seen it."""

    def __init__(
        self, store: AnyStore, node: str, clock: NodeClock, logs: Logs, lives: Callable[[NodeRecord], bool]
    ) -> None:
        self._store, self._node, self._clock, self._logs, self._lives = store, node, clock, logs, lives

    async def round(self) -> int:
        """Forget one batch and return how many occurrences it held; a full one says that there is more."""
        forgotten = await self._store.prune(_PRUNED_AT_ONCE)
        if forgotten < _PRUNED_AT_ONCE:
            self._logs.forget_before(self._clock.now() - OUTPUT_KEPT)
            await self.retire()
        return forgotten

    async def fold(self) -> int:
        """Fold one batch and return how many occurrences it held, if it was full: then there is more."""
        folded = await self._store.fold(self._store.folds_at_once)
        return folded if folded >= self._store.folds_at_once else 0

    async def retire(self) -> None:
        """Remove the jobs that a start left out, once no living node defines them."""
        await retire_undefined(self._store, self._lives, self._node)
