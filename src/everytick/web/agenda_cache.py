"""The last agenda of this service: it is counted once, however many people look, and anew while they look at it."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from everytick.errors import EverytickError

if TYPE_CHECKING:
    from datetime import datetime

    from fastapi import Request

    from everytick.app import Everytick
    from everytick.domain.agenda import FleetAgenda
    from everytick.web.known_jobs import KnownJobs

FRESH_SECONDS = 20.0
"""An agenda so young is shown as it is: schedules change seldom, and counting 10,000 jobs takes a second."""

KEPT_SECONDS = 300.0
"""An older one, up to this age, is shown while the next one is counted. Beyond that the reader waits for it."""

COUNT_SECONDS = 1.5
"""Seconds for which the starts of all jobs are counted. The page then says how many jobs are left out."""

WHOLE_SECONDS = 0.2
"""Seconds that the first reader waits until all jobs are counted. 10,000 take less: to count some of them beside that
takes as long again (`bench/service.py`, the first opening of the agenda)."""

QUICK_SECONDS = 0.05
"""Seconds for which jobs are counted for this reader after that. The page shows those."""

CHEAP_SECONDS = 0.25
"""What takes no longer is counted for the reader who has changed something."""

Counted: TypeAlias = "tuple[FleetAgenda, float]"
"""An agenda, and the moment on this process's clock at which it was asked for."""

_log = logging.getLogger("everytick.web")


class AgendaCache:
    """Keeps the agenda of one application."""

    def __init__(self, tick: Everytick, known: KnownJobs) -> None:
        self._tick, self._known = tick, known
        self._kept: Counted | None = None
        self._took = 0.0
        self._is_old = False
        self._counting: asyncio.Task[Counted] | None = None
        self._is_ended = False

    async def get(self) -> tuple[FleetAgenda, datetime]:
        """Return the agenda, at most some minutes old, and the store's time now."""
        found, at = await self._get()
        return found, found.now + timedelta(seconds=max(monotonic() - at, 0.0))

    async def _get(self) -> Counted:
        age = float("inf") if self._kept is None else monotonic() - self._kept[1]
        if self._kept is not None and age < FRESH_SECONDS and not self._is_old:
            return self._kept
        if self._counting is None or self._counting.done():
            self._counting = asyncio.create_task(self._count())
            self._counting.add_done_callback(_told)
        if self._kept is not None and age < KEPT_SECONDS:
            return self._kept
        counting = self._counting
        await asyncio.wait([counting], timeout=WHOLE_SECONDS)
        if not counting.done():
            return await self._first_look()
        # Shielded: a reader who leaves must not end what others wait for.
        return await asyncio.shield(self._counting)

    def forget(self) -> None:
        """Count anew at the next look: schedules were changed here."""
        self._kept = self._counting = None

    def end(self) -> None:
        """Count no more: the process leaves when its threads have ended, and counting many jobs takes a second."""
        self._is_ended = True

    def changed(self) -> None:
        """Count anew: something was changed here. What takes long is shown as it was while it is counted."""
        self._is_old, self._counting = True, None
        if self._took <= CHEAP_SECONDS:
            self.forget()

    async def _first_look(self) -> Counted:
        """Return what can be counted in a moment, and say how many jobs are left out, while all are counted."""
        asked = monotonic()
        return await self._asked_for(QUICK_SECONDS), asked

    async def _asked_for(self, seconds: float) -> FleetAgenda:
        records = await self._known.records()
        return await self._tick.agenda(seconds=seconds, records=records, is_ended=lambda: self._is_ended)

    async def _count(self) -> Counted:
        asked = monotonic()
        found = await self._asked_for(COUNT_SECONDS)
        # If something was changed since it was asked, another has its place.
        if self._counting is asyncio.current_task():
            self._kept, self._took, self._is_old = (found, asked), monotonic() - asked, False
        return found, asked


def agenda_cache(request: Request) -> AgendaCache:
    """Return the cache of this service."""
    kept: AgendaCache = request.app.state.agenda_cache
    return kept


def _told(counting: asyncio.Task[Counted]) -> None:
    """Say why the agenda could not be counted; the last one is shown until it is too old."""
    if counting.cancelled() or (error := counting.exception()) is None:
        return
    if not isinstance(error, EverytickError):
        _log.error("the agenda could not be counted; the next look tries again", exc_info=error)
