"""The janitor: forgets what retention no longer keeps, in small batches, and old output with it."""

from everytick.node.clock import NodeClock
from everytick.node.logs import KEPT, Logs
from everytick.stores.protocols import HistoryStore

_AT_ONCE = 1_000


class Janitor:
    """Cleans up; never touches what is not over."""

    def __init__(self, store: HistoryStore, clock: NodeClock, logs: Logs) -> None:
        self._store, self._clock, self._logs = store, clock, logs

    async def round(self) -> int:
        """Forget one batch and return how many occurrences it held; a full one says that there is more."""
        forgotten = await self._store.prune(_AT_ONCE)
        if forgotten < _AT_ONCE:
            self._logs.forget_before(self._clock.now() - KEPT)
        return forgotten
