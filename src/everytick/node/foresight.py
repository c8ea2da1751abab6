"""A second, faster way, foresight: the plain plans of the next instant, made in an idle moment before it.

Price: `bench/lateness.py` in memory, processor time a job from the instant on, 64 µs with it and 76 without: 16 %.

Thousands of jobs may be due in the same second, and deciding about them takes longer than
starting them. A decision is a function of a snapshot and a time, so it can be made before
that time has come; it is only written once it has, and only if nothing changed since
(docs/decisions/0014-plans-made-ahead.md).
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeAlias

from everytick.deciding.plain_plans import plain_plan
from everytick.domain.decisions import Plan
from everytick.domain.snapshots import JobSnapshot
from everytick.node.scope import Scope
from everytick.node.slots import Slots
from everytick.node.writer import Writer
from everytick.stores.base import Batch
from everytick.stores.protocols import PlanStore

LEAD_SECONDS = 1.0
"""How long before an instant its plans are made: 10,000 of them take half a second."""

_MOST_JOBS = 20_000
"""More plans than this would take most of a second, and hundreds of megabytes."""

_PLANS_IN_A_ROW = 100
"""After this many plans other coroutines run: an attempt that ends waits for a millisecond at most."""

_HOLDS_FOR = timedelta(seconds=1)
"""How long after its instant a plan may be written: later, `plan` may have to call the instant late."""

MadeAhead: TypeAlias = tuple[Batch, Sequence[Plan]]
"""A batch that was read before its instant, and its plans."""


class Calm:
    """Knows whether an engine has nothing to start and nothing to write."""

    def __init__(self, slots: Slots, ready: Sized, writer: Writer) -> None:
        self._slots, self._ready, self._writer = slots, ready, writer

    def is_calm(self) -> bool:
        """Whether nothing waits to be started or written."""
        return not self._slots.waiting and not self._ready and not self._writer.waiting


class Foresight:
    """Plans for one instant, kept until it has come."""

    def __init__(self, store: PlanStore, scope: Scope) -> None:
        self._store, self._scope = store, scope
        self._at: datetime | None = None
        self._batch: Batch | None = None
        self._snapshots: list[JobSnapshot] = []
        self._plans: list[Plan] = []
        self._is_whole = False

    async def plan_ahead(self, at: datetime, is_calm: Callable[[], bool]) -> None:
        """Make the plain plans of this instant now, until the engine has something else to do."""
        if at == self._at or not is_calm():
            return
        self._at, self._batch, self._snapshots, self._plans, self._is_whole = at, None, [], [], False
        async with self._store.due(self._scope.on_time, _MOST_JOBS, at) as batch:
            runnable = self._scope.runnable(batch.snapshots)
        self._batch = batch
        for number, snapshot in enumerate(runnable, 1):
            plan = _plain_plan(snapshot, at)
            if plan is not None:
                self._snapshots.append(snapshot)
                self._plans.append(plan)
            if number % _PLANS_IN_A_ROW == 0:
                await asyncio.sleep(0)
                if self._at != at or not is_calm():
                    return
        self._is_whole = not batch.more and len(self._plans) == len(batch.snapshots)

    @property
    def is_ready(self) -> bool:
        """Whether anything was decided about an instant."""
        return bool(self._plans)

    def take_plans(self, now: datetime, size: int) -> Iterator[MadeAhead]:
        """Give the plans of the instant if it has come, in parts of this size, and drop them.

        The last part says that no more is due only if every job of the instant was planned. Plans of an instant that
        came more than a second ago are dropped: an occurrence that was on time then may be late now.
        """
        if self._at is None or now < self._at:
            return
        at, batch, snapshots, plans = self._at, self._batch, self._snapshots, self._plans
        self._at, self._batch, self._snapshots, self._plans = None, None, [], []
        if batch is not None and now - at < _HOLDS_FOR:
            for first in range(0, len(plans), size):
                part, is_last = slice(first, first + size), first + size >= len(plans)
                yield replace(batch, snapshots=snapshots[part], more=not is_last or not self._is_whole), plans[part]


def _plain_plan(snapshot: JobSnapshot, at: datetime) -> Plan | None:
    try:
        return plain_plan(snapshot, at)
    except Exception:  # noqa: BLE001, a schedule may be a user's code; the planner logs it when it is due
        return None
