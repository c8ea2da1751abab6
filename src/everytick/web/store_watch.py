"""Watching the store for what other processes do: what is new among the occurrences of the last minutes.

Events reach only the process of the node that makes them. A service without a node, or beside one of several nodes,
asks the store once a second while a stream is open, and tells the differences as the same events.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from everytick.app import Everytick
from everytick.app.store_access import open_store
from everytick.domain.questions import Glance, Glances
from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.errors import EverytickError
from everytick.node.events import Event, Happening

_PAUSE, _PAUSE_ALONE = 1.0, 5.0
"""Seconds between two looks. The only node of a store tells everything itself: then it is only asked for others."""

_BACK = timedelta(minutes=2)
"""Instants of this time are looked at. What runs is seen however old its instant is."""

_NAMES_SECONDS = 5.0
"""How often the names of jobs are asked for at most, when an unknown job appears."""


class Watch:
    """Looks at the store again and again, and tells what is new since the last look."""

    def __init__(self, tick: Everytick, tell: Callable[[Event], None]) -> None:
        self._tick, self._tell = tick, tell
        self._seen: dict[str, Glance] | None = None
        self._names: dict[str, str] = {}
        self._named_at = float("-inf")
        self._is_away = False
        self.pause = _PAUSE

    async def look(self) -> None:
        """Tell what is new. A store that does not answer is told once, and so is its return."""
        try:
            store = await open_store(self._tick)
            now = await store.now()
            is_alone = await self._is_alone(now)
            self.pause = _PAUSE_ALONE if is_alone else _PAUSE
            if is_alone:
                self._seen = None
                self._found(now)
                return
            found = await self._tick.window(now - _BACK, now)
            await self._learn_names(found)
        except EverytickError as error:
            self._lost(error)
            return
        self._found(now)
        self._tell_differences(found, now)

    async def _is_alone(self, now: datetime) -> bool:
        """Whether the node of this process is the only one that lives: its own events are all there are."""
        node = self._tick.node
        if node is None:
            return False
        others = [other for other in await self._tick.nodes() if other.id != node.name]
        return not any(other.is_alive(now, self._tick.settings.node_timeout) for other in others)

    def _found(self, now: datetime) -> None:
        if self._is_away:
            self._is_away = False
            self._tell(Event(Happening.STORE_FOUND, now))

    def _lost(self, error: EverytickError) -> None:
        self.pause = _PAUSE
        if not self._is_away:
            self._is_away = True
            self._tell(Event(Happening.STORE_LOST, datetime.now(UTC), text=str(error)))

    async def _learn_names(self, found: Glances) -> None:
        unknown = any(run.job_id not in self._names for run in found.runs)
        if unknown and time.monotonic() - self._named_at > _NAMES_SECONDS:
            self._names = {record.job.id: record.job.name for record in await self._tick.jobs(removed=True)}
            self._named_at = time.monotonic()

    def _tell_differences(self, found: Glances, now: datetime) -> None:
        before, self._seen = self._seen, {run.id: run for run in found.runs}
        if before is None:
            return
        for run in reversed(found.runs):
            for event in _news(before.get(run.id), run, self._names.get(run.job_id, ""), now):
                self._tell(event)
        # What ran and is gone from the answer has ended: its instant is older than the window.
        for gone in before.keys() - self._seen.keys():
            old = before[gone]
            if old.status not in ENDED:
                self._tell(_event(Happening.ENDED, old, self._names.get(old.job_id, ""), now, ""))


def _news(old: Glance | None, new: Glance, job: str, now: datetime) -> Iterator[Event]:
    """Give what happened to an occurrence between two looks."""
    if old is None:
        is_run = new.status not in (OccurrenceStatus.SKIPPED, OccurrenceStatus.MISSED)
        yield _event(Happening.CREATED if is_run else Happening.SKIPPED, new, job, now)
    if new.started_at is not None and (old is None or old.started_at is None):
        yield _event(Happening.STARTED, new, job, now)
    if old is not None and old.status != new.status and new.status is OccurrenceStatus.AWAITING_RETRY:
        yield _event(Happening.RETRY_PLANNED, new, job, now)
    if new.ended_at is not None and (old is None or old.ended_at is None):
        yield _event(Happening.ENDED, new, job, now)


def _event(kind: Happening, run: Glance, job: str, now: datetime, status: str | None = None) -> Event:
    at = {Happening.STARTED: run.started_at, Happening.ENDED: run.ended_at}.get(kind) or now
    told = str(run.status) if status is None else status
    return Event(kind, at, job, run.id, run.scheduled_for, status=told, text=run.why)
