"""Which schedules the index must hold, and what to tell a Redis that has lost its data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from secrets import token_hex
from time import monotonic
from typing import TYPE_CHECKING

from everytick.beat.decision import RULE_ERRORS, is_ours

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from everytick.beat.decision import Recorded
    from everytick.beat.logs import BeatLog
    from everytick.beat.registry import RegisteredSchedule, Registry
    from everytick.beat.store import BeatStore, TickLook

_CHECK_SECONDS = 60.0
"""How often a beat looks whether the index still holds all its schedules: another beat may have let one go."""

_FOREIGN_FOR = timedelta(minutes=10)
"""How long a schedule that no beat here knows may stand due in the index before it is taken out."""

_SETTLED_INTERVALS = 2
"""After Redis has lost its data nothing fires for so many intervals: by then every beat has told what it decided."""


class Enrolling:
    """Keeps the index in step with the registry of one beat, and remembers what a lost record would say."""

    def __init__(self, registry: Registry, store: BeatStore, log: BeatLog, interval: timedelta) -> None:
        self._registry, self._store, self._log, self._interval = registry, store, log, interval
        self._epoch = ""
        self._known: set[str] = set()
        """The schedules that the index has been told of."""
        self._checked_at = monotonic()
        self._looked_at: datetime | None = None
        self._left: set[str] = set()
        """The schedules that are left to a beat which started later."""
        self._open: Mapping[str, datetime | None] = {}
        """Those that stayed due in the last tick, with the time through which each had been decided, if known."""
        self.started_at = datetime.max.replace(tzinfo=UTC)

    def looked(self, now: datetime, open_: Mapping[str, datetime | None]) -> None:
        """Remember that everything due by now was decided, but for the schedules in `open_`."""
        self._looked_at, self._open = now, open_

    def left_to_newer(self, id: str) -> None:
        """Say once that a schedule has another rule, which a beat that started later knows."""
        if id not in self._left:
            self._left.add(id)
            self._log.warning(
                "Schedule was changed by a beat that started later; this one leaves it alone until it is restarted",
                schedule_id=id,
            )

    async def tell(self, look: TickLook) -> bool:
        """Tell Redis what it must know before this tick; return whether it was told anything."""
        await self._drop_foreign(look)
        if not self._epoch:
            self.started_at = look.now
            self._epoch = look.epoch or await self._store.begin_epoch(token_hex(16))
        elif look.epoch != self._epoch:
            await self._restore(look)
            return True
        missing = await self._missing()
        if missing:
            await self._enroll(missing, look.now)
        return bool(missing)

    async def _missing(self) -> list[RegisteredSchedule]:
        """Return the schedules that are new here, and once a minute those that the index has lost."""
        if len(self._registry) != len(self._known):
            new = [schedule.id for schedule in self._registry.list() if schedule.id not in self._known]
        elif monotonic() - self._checked_at >= _CHECK_SECONDS:
            self._checked_at = monotonic()
            enabled = [schedule.id for schedule in self._registry.list() if schedule.enabled]
            held = await self._store.indexed(enabled)
            new = [id for id, is_held in zip(enabled, held, strict=True) if not is_held]
        else:
            return []
        return [entry for id in new if (entry := self._registry.entry(id)) is not None]

    async def _enroll(self, entries: list[RegisteredSchedule], now: datetime) -> None:
        """Put schedules into the index: those that need a decision now, the others at their next time."""
        records = await self._store.records([entry.schedule.id for entry in entries])
        looks: list[tuple[str, datetime]] = []
        for entry, record in zip(entries, records, strict=True):
            look_at = self._look_at(entry, None if record is None else record.recorded, now)
            if look_at is not None:
                looks.append((entry.schedule.id, look_at))
        await self._store.enroll(looks)
        self._known |= {entry.schedule.id for entry in entries}

    def _look_at(self, entry: RegisteredSchedule, recorded: Recorded | None, now: datetime) -> datetime | None:
        """Return when a tick must look at a schedule: now if it never ran, or has another rule than was recorded."""
        through = None if recorded is None else recorded.decided_through
        if recorded is None or through is None:
            return now if entry.schedule.enabled else None
        if recorded.definition not in ("", entry.definition):
            return now if is_ours(entry, recorded, self.started_at) else None
        return _next_after(entry, through, now) if entry.schedule.enabled else None

    async def _restore(self, look: TickLook) -> None:
        """Tell a Redis that has lost its data through when everything was decided: nothing is decided twice.

        Each beat reports its last look and the latest counts. Nothing fires until all have reported. Schedules without
        a report are enrolled again.
        """
        self._log.warning(
            "Redis has lost what was recorded of the schedules; they go on from the last tick, and counts begin anew",
            epoch=look.epoch,
        )
        epoch = look.epoch or await self._store.begin_epoch(token_hex(16))
        told = [] if self._looked_at is None else list(self._known_through(self._looked_at))
        await self._store.restore(told, look.now + _SETTLED_INTERVALS * self._interval)
        # Last: if Redis fails before, the next tick tells it again.
        self._epoch, self._known = epoch, {id for id, _, _ in told}

    def _known_through(self, looked_at: datetime) -> Iterable[tuple[str, datetime, datetime]]:
        """Give what is known of each schedule: through when it is decided, and its next time after that."""
        for id in self._known:
            entry = self._registry.entry(id)
            through = self._open.get(id, looked_at)
            if entry is None or not entry.schedule.enabled or through is None:
                continue
            next_run = _next_after(entry, through, looked_at)
            if next_run is not None:
                yield id, through, next_run

    async def _drop_foreign(self, look: TickLook) -> None:
        """Take schedules out of the index that this beat does not know and no beat has handled for ten minutes."""
        unknown = [id for id in look.due if self._registry.entry(id) is None]
        if unknown:
            await self._store.forget(unknown, look.now - _FOREIGN_FOR)


def _next_after(entry: RegisteredSchedule, through: datetime, now: datetime) -> datetime | None:
    """Return the next time of a schedule. If its rule raises, look at it now: the tick logs why."""
    try:
        return entry.job.bound(None).next_after(through)
    except RULE_ERRORS:
        return now
