"""The handle of a requested occurrence: its id, and a way to wait for its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.domain.durations import duration
from everytick.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import timedelta

    from everytick.domain.occurrence import EndedOccurrence
    from everytick.stores.addresses import AnyStore

_FIRST_LOOK, _LAST_LOOK = 0.01, 0.5
"""Seconds between two reads of the store: 0.01 at first, doubled each time, at most 0.5."""


class Handle:
    """An occurrence that was requested. It may not exist yet."""

    def __init__(self, id: str, opened: Callable[[], Awaitable[AnyStore]]) -> None:
        self.id = id
        self._opened = opened

    def __repr__(self) -> str:
        return f"Handle({self.id!r})"

    async def wait(self, timeout: timedelta | str | None = None) -> EndedOccurrence:  # noqa: ASYNC109 - a duration
        """Return the occurrence once it has ended, on any node. Raise TimeoutError if that takes too long.

        Its `result` is what the last task returned, `results` what each task returned, by task name.
        """
        import asyncio

        async with asyncio.timeout(None if timeout is None else duration(timeout).total_seconds()):
            return await self._ended()

    async def _ended(self) -> EndedOccurrence:
        import asyncio

        from everytick.domain.occurrence import ended_with
        from everytick.domain.statuses import ENDED

        store, pause, seen = await self._opened(), _FIRST_LOOK, False
        while True:
            try:
                whole = await store.whole(self.id)
            except NotFound:
                if seen:
                    # It was pruned or purged after the last read: its end cannot be known any more.
                    raise
            else:
                seen = True
                if whole.occurrence.status in ENDED:
                    return ended_with(whole.occurrence, whole.results, whole.result)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LAST_LOOK)
