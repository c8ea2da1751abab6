"""What operations over HTTP answer with: an occurrence to wait for, a backfill to steer, a page of the history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.domain.durations import duration, format_duration
from everytick.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from datetime import datetime, timedelta

    from everytick.client.client import Client
    from everytick.domain.backfills import BackfillRecord
    from everytick.domain.occurrence import EndedOccurrence, Occurrence

_FIRST_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 0.05, 2.0
"""Seconds between two looks over the network: 0.05 at first, doubled each time, at most 2."""


class RemoteHandle:
    """An occurrence that was requested. It may not exist yet."""

    def __init__(self, client: Client, id: str) -> None:
        self.id, self._client = id, client

    def __repr__(self) -> str:
        return f"RemoteHandle({self.id!r})"

    async def wait(self, timeout: timedelta | str | None = None) -> EndedOccurrence:  # noqa: ASYNC109 - a duration
        """Return the occurrence once it has ended, on any node. Raise TimeoutError if that takes too long."""
        import asyncio

        within = None if timeout is None else duration(timeout)
        try:
            async with asyncio.timeout(None if within is None else within.total_seconds()):
                return await self._ended()
        except TimeoutError:
            if within is None:
                raise
            raise TimeoutError(f"occurrence {self.id} has not ended within {format_duration(within)}") from None

    async def _ended(self) -> EndedOccurrence:
        import asyncio

        from everytick.domain.occurrence import ended_with
        from everytick.domain.statuses import ENDED

        pause, is_seen = _FIRST_LOOK_SECONDS, False
        while True:
            try:
                whole = await self._client.occurrence(self.id)
            except NotFound:
                if is_seen:
                    # It was deleted after the last look: its end cannot be known any more.
                    raise
            else:
                is_seen = True
                if whole.occurrence.status in ENDED:
                    return ended_with(whole.occurrence, whole.results, whole.result)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK_SECONDS)

    async def cancel(self, reason: str = "") -> bool:
        """End it, or ask the node that runs it to stop; return whether it was still active."""
        return await self._client.cancel(self.id, reason=reason)


class RemoteBackfill:
    """A backfill. `id` is None if it was a dry run, or there was nothing to fill."""

    def __init__(self, client: Client, id: str | None, instants: Sequence[datetime] = (), more: bool = False) -> None:
        self.id, self.instants, self.more, self._client = id, tuple(instants), more, client

    def __repr__(self) -> str:
        return f"RemoteBackfill({self.id!r}, {len(self.instants)}{' or more' if self.more else ''} instants)"

    async def progress(self) -> BackfillRecord:
        """Return where it stands: how many are done, have failed, run, and are left."""
        return await self._client.read_backfill(self._known())

    async def approve(self, by: str | None = None) -> bool:
        """Let it run. Return whether it was not running."""
        return await self._client.steer_backfill(self._known(), "approve")

    async def pause(self, by: str | None = None) -> bool:
        """Let it make no further occurrences until it is resumed. Return if it changed."""
        return await self._client.steer_backfill(self._known(), "pause")

    async def resume(self, by: str | None = None) -> bool:
        """Let it go on. Return whether it was paused."""
        return await self._client.steer_backfill(self._known(), "resume")

    async def cancel(self, by: str | None = None) -> bool:
        """End it, and what it has made and no node has claimed. Return if it changed."""
        return await self._client.steer_backfill(self._known(), "cancel")

    async def wait(self, timeout: timedelta | str | None = None) -> BackfillRecord:  # noqa: ASYNC109 - a duration
        """Return it once nothing of it is left to do. Raise TimeoutError if that takes too long."""
        import asyncio

        within, pause = None if timeout is None else duration(timeout), _FIRST_LOOK_SECONDS
        async with asyncio.timeout(None if within is None else within.total_seconds()):
            while not (record := await self.progress()).is_over:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_LOOK_SECONDS)
            return record

    def _known(self) -> str:
        if self.id is None:
            raise NotFound("backfill", "that was never planned")
        return self.id


class RemoteHistory:
    """A page of the past, newest first. `for` gives this page, `async for` this page and all that follow."""

    def __init__(
        self, client: Client, asked: dict[str, object], occurrences: Sequence[Occurrence], cursor: str | None
    ) -> None:
        self.occurrences, self.cursor = tuple(occurrences), cursor
        self._client, self._asked = client, asked

    def __iter__(self) -> Iterator[Occurrence]:
        return iter(self.occurrences)

    def __len__(self) -> int:
        return len(self.occurrences)

    async def __aiter__(self) -> AsyncIterator[Occurrence]:
        page = self
        while True:
            for occurrence in page.occurrences:
                yield occurrence
            if page.cursor is None:
                return
            page = await self._client.read_history({**self._asked, "cursor": page.cursor})
