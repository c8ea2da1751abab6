"""The watch over zone tables: a node that has others than the nodes before it reports which runs to come move.

The store has the next run of each job, and the runs to come of jobs with a horizon, as they were written by the old
tables. Jobs of which one moves are looked at again at once, as after an edit: the old tables set their wakes too.
"""

import logging
from collections.abc import Iterator

from everytick.deciding.zone_moves import ZoneMove, zone_move
from everytick.domain.facts import LookAgain, Move
from everytick.domain.lookups import ComingRuns
from everytick.domain.nodes import NodeFacts
from everytick.errors import NotFound
from everytick.node.clock import NodeClock
from everytick.node.events import Event, Happening, Listeners
from everytick.node.settings import NodeSettings
from everytick.schedules.timezones import zone_data
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Nodes

_log = logging.getLogger("everytick.node")

_JOBS_AT_ONCE = 500
"""How many jobs one question reads: their snapshots fit into memory."""

MOVED_BACK_BECAUSE = "the zone tables changed"
"""Why a run is moved to the time that it had by the old tables."""


async def moved_runs(store: AnyStore) -> list[ZoneMove]:
    """Return the jobs in service whose runs to come move by the zone tables of this process."""
    moves: list[ZoneMove] = []
    records = [record for record in await store.list() if record.next_run is not None]
    for place in range(0, len(records), _JOBS_AT_ONCE):
        some = {record.job.id: record for record in records[place : place + _JOBS_AT_ONCE]}
        seen, coming, now = await store.look(list(some)), await store.ask(ComingRuns(list(some))), await store.now()
        for id_, snapshot in seen.items():
            next_run = some[id_].next_run
            assert next_run is not None, "the others were left out"
            written = [run.at for run in coming[id_].runs] if id_ in coming else [next_run]
            moves += _found(zone_move(snapshot, written, now))
    return moves


def _found(move: ZoneMove | None) -> Iterator[ZoneMove]:
    if move is not None:
        yield move


class ZoneWatch:
    """Compares the runs to come by old and new zone tables, at a start and while a living node has other tables."""

    def __init__(
        self, store: AnyStore, name: str, clock: NodeClock, listeners: Listeners, settings: NodeSettings
    ) -> None:
        self._store, self._name, self._clock = store, name, clock
        self._listeners, self._settings = listeners, settings
        self._is_mixed = False
        self._told: set[ZoneMove] = set()

    async def look(self) -> None:
        """Report what moves, if any node that is known has or had other zone tables than this one."""
        others = [node for node in await self._store.ask(Nodes()) if node.id != self._name and _differs(node.facts)]
        now = await self._store.now()
        self._is_mixed = any(node.is_alive(now, self._settings.node_timeout) for node in others)
        if others:
            newest = max(others, key=lambda node: node.beat_at).facts
            await self._compare("" if newest is None else newest.zone_data)

    async def round(self) -> int:
        """Look again while a living node has other tables: it plans by them. Return 0, for there is no more."""
        if self._is_mixed:
            await self.look()
        return 0

    async def _compare(self, before: str) -> None:
        for move in await moved_runs(self._store):
            try:
                for new, old in move.keeps:
                    await self._store.request(move.job_id, Move(new, old, MOVED_BACK_BECAUSE, self._name))
                await self._store.request(move.job_id, LookAgain())
            except NotFound:
                continue
            if move not in self._told:
                self._told.add(move)
                self._tell(move, before)

    def _tell(self, move: ZoneMove, before: str) -> None:
        text = f"the zone tables changed from {before} to {zone_data().version}: {move}"
        _log.warning("job '%s': %s; the job is planned again at once by the new tables", move.job, text)
        if self._listeners.wanted:
            self._listeners.tell(Event(Happening.RUNS_MOVED, self._clock.now(), move.job, text=text))


def _differs(facts: NodeFacts | None) -> bool:
    return facts is not None and facts.zone_data.partition(" ")[0] != zone_data().version
