"""The writer of a node that fires without its store: what became the store's meanwhile is written there."""

import asyncio
from typing import Protocol

from everytick.node.health import Health
from everytick.node.inbox import Inbox
from everytick.node.occurrence import OwnedOccurrence
from everytick.node.writer import Writer
from everytick.stores.addresses import AnyStore


class HandsOver(Protocol):
    """A store that hands over what it has to another one."""

    def is_home(self, handle: int) -> bool:
        """Whether the other store decides about this one, or is being asked to."""
        ...


class LocalWriter(Writer):
    """Writes at once what is this store's own.

    What was handed over has a second writer, so that it waits for its store, should that be
    away again, and nothing else does. `home` is what is known of that store, and `hands_over`
    says which occurrences are decided there.
    """

    def __init__(self, store: AnyStore, health: Health, inbox: Inbox, *, home: Health, hands_over: HandsOver) -> None:
        super().__init__(store, health, inbox)
        self._hands_over = hands_over
        self._at_home = Writer(store, home, inbox)

    @property
    def waiting(self) -> int:
        """How many occurrences have something to write."""
        return super().waiting + self._at_home.waiting

    async def flushed(self) -> None:
        """Return when nothing waits to be written, here or there."""
        await super().flushed()
        await self._at_home.flushed()

    async def run(self) -> None:
        """Write for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._at_home.run())
            await super().run()

    async def _write(self, batch: list[OwnedOccurrence]) -> None:
        for occurrence in [each for each in batch if self._hands_over.is_home(each.claim.handle)]:
            batch.remove(occurrence)
            steps, occurrence.steps, occurrence.is_queued = occurrence.steps, (), False
            for step in steps:
                self._at_home.put(occurrence, step)
        if batch:
            await super()._write(batch)
