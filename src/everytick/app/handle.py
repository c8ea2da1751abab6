"""The handle of a requested occurrence: its id, and a way to wait for its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.domain.durations import duration, format_duration
from everytick.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import timedelta

    from everytick.domain.occurrence import EndedOccurrence
    from everytick.stores.addresses import AnyStore

_FIRST_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 0.01, 0.5
"""Seconds between two reads of the store: 0.01 at first, doubled each time, at most 0.5."""


class Handle:
    """An occurrence that was requested. It may not exist yet."""

    def __init__(self, id: str, opened: Callable[[], Awaitable[AnyStore]], by: str = "") -> None:
        self.id = id
        self._opened, self._by = opened, by
        self._seen: str | None = None  # the status when it was last looked at

    def __repr__(self) -> str:
        return f"Handle({self.id!r})"

    async def wait(self, timeout: timedelta | str | None = None) -> EndedOccurrence:  # noqa: ASYNC109 - a duration
        """Return the occurrence once it has ended, on any node. Raise TimeoutError if that takes too long.

        Its `result` is what the last task returned, `results` what each task returned, by task name.
        """
        import asyncio

        within = None if timeout is None else duration(timeout)
        try:
            async with asyncio.timeout(None if within is None else within.total_seconds()) as limit:
                return await self._ended()
        except TimeoutError:
            if within is None or not limit.expired():
                raise
            raise TimeoutError(self.not_ended(within)) from None

    async def cancel(self, reason: str = "") -> bool:
        """End it, or ask the node that runs it to stop; return whether it was still active.

        A run that was asked for later never runs then.
        """
        from everytick.domain.facts import Cancel

        said = f"canceled by {self._by}"
        fact = Cancel(f"{said}: {reason}" if reason else said)
        return (await (await self._opened()).request(self.id, fact)).changed

    def not_ended(self, within: timedelta) -> str:
        """Say how far it has come, for a caller who waited so long."""
        state = "no node has planned it yet, is one running?" if self._seen is None else f"it is {self._seen}"
        return f"occurrence {self.id} has not ended within {format_duration(within)}: {state}"

    async def _ended(self) -> EndedOccurrence:
        import asyncio

        from everytick.domain.occurrence import ended_with
        from everytick.domain.statuses import ENDED

        store, pause, seen = await self._opened(), _FIRST_LOOK_SECONDS, False
        while True:
            try:
                whole = await store.whole(self.id)
            except NotFound:
                if seen:
                    # It was pruned or purged after the last read: its end cannot be known any more.
                    raise
            else:
                seen = True
                self._seen = None if whole.occurrence.created_at is None else whole.occurrence.status
                if whole.occurrence.status in ENDED:
                    return ended_with(whole.occurrence, whole.results, whole.result)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK_SECONDS)
