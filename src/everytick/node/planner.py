"""The planner: due → plan → commit. Live ticks, late ones, requests and endings all come through here."""

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any, Protocol

from everytick.deciding.pace import with_latency
from everytick.deciding.plan import plan as decide
from everytick.domain.decisions import Plan, put_off
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.texts import CLAIM_FAILED, NO_NEXT_RUN
from everytick.domain.values import value
from everytick.node.foresight import Foresight
from everytick.node.inbox import Inbox, Planned
from everytick.node.scope import Scope
from everytick.node.tools import Tools
from everytick.stores.base import Batch, CommitAway, Committed, Offer
from everytick.stores.protocols import PlanStore

_log = logging.getLogger("everytick.planner")

BATCH = 500
"""Largest batch of jobs that is planned and committed together; 500 keeps a batch's locks under 50 ms."""

_MANY_JOBS = 50
"""After a round of fewer jobs the planner does not rest: it took a few milliseconds."""


class Offers(Protocol):
    """The part of an engine that knows how many slots are free."""

    def offer(self, is_wanted: bool) -> AbstractContextManager[Offer | None]:
        """Reserve the free slots for the claims that a commit of plans may bring along, until it is answered."""
        ...


@value
class RoundResult:
    """How many jobs a round has planned, and how many of the plans were useful: they made or changed an occurrence.

    A job whose plan could not be written yet is not counted: it is still due, and is for another round.
    """

    jobs: int = 0
    useful: int = 0

    def __add__(self, other: "RoundResult") -> "RoundResult":
        return RoundResult(self.jobs + other.jobs, self.useful + other.useful)


class Planner:
    """Plans due jobs, one batch at a time."""

    def __init__(self, store: PlanStore, tools: Tools, scope: Scope, claimer: Offers, inbox: Inbox) -> None:
        self._store, self._scope, self._claimer, self._inbox = store, scope, claimer, inbox
        self._clock, self._health, self._limit = tools.clock, tools.health, tools.settings.plan_limit
        self.foresight = Foresight(store, scope)
        self._look, self._has_looked, self.is_waiting = asyncio.Event(), asyncio.Event(), False
        self._is_over, self._open, self._is_idle = False, 0, asyncio.Event()
        self._read_seconds = self._write_seconds = 0.0
        self._is_idle.set()

    def wake(self) -> None:
        """Plan due jobs now."""
        self._look.set()
        if self.is_waiting:
            self._has_looked.clear()

    async def looked(self) -> None:
        """Return when no round is asked for or under way; at once while the planner rests."""
        await self._has_looked.wait()

    async def stopped(self) -> None:
        """Commit no further batch. Return when those under way are answered: their claims must arrive."""
        self._is_over = True
        await self._is_idle.wait()

    async def run(self) -> None:
        """Plan whenever something may be due. After a long round it rests: then thousands of ends are one round."""
        while True:
            self.is_waiting = True
            await self._look.wait()
            self.is_waiting = False
            self._look.clear()
            began = self._clock.monotonic()
            try:
                planned = await self.round()
            except BaseException:
                # Ready occurrences can be claimed though nothing can be planned.
                self._inbox.put(_nothing(Batch(self._clock.now(), (), 0), began))
                raise
            finally:
                self._has_looked.set()
            self._health.answered()
            if planned.jobs >= _MANY_JOBS:
                is_useful = planned.useful * 10 >= planned.jobs
                await asyncio.sleep(_rest_seconds(self._clock.monotonic() - began, is_useful))

    async def round(self) -> RoundResult:
        """Plan everything that is due now, batch by batch.

        Jobs that become due meanwhile, mostly by ends, are for the next round: else the ends of
        thousands of occurrences would delay those that have not begun.
        """
        foreseen, first = await self._foreseen(), await self._batch()
        of_first, now = _result(first), first.batch.now
        planned = foreseen + of_first
        if not first.batch.more or not of_first.jobs:
            return planned
        # Two at once: one is decided while the other is written.
        return sum(await _side_by_side(self._all_due_by(now), self._all_due_by(now)), planned)

    async def _all_due_by(self, by: datetime) -> RoundResult:
        """Plan batch after batch of jobs that are due by this moment, until one is empty."""
        planned = RoundResult()
        while True:
            # Between two batches the engine begins what the first one made.
            await asyncio.sleep(0)
            last = _result(await self._batch(by))
            planned += last
            if not last.jobs:
                return planned

    async def _batch(self, by: datetime | None = None) -> Planned:
        """Plan one batch of jobs that are due now, or by this moment."""
        asked_at = self._clock.monotonic()
        async with self._store.due(self._scope.on_time, BATCH, by) as batch:
            self._read_seconds = self._clock.monotonic() - asked_at
            if by is None:
                self._clock.learn(batch.now, asked_at)
            # `by` had passed when it was read. If it is ahead again, the store's clock was set back.
            if self._is_over or batch.is_ahead:
                return _nothing(batch, asked_at)
            snapshots = self._scope.runnable(batch.snapshots)
            plans = [self._plan(snapshot, batch.now) for snapshot in snapshots]
            return await self._commit(batch, snapshots, plans)

    async def _foreseen(self) -> RoundResult:
        """Commit the plans that were made before this instant. Jobs that changed since are planned with the others."""
        planned = RoundResult()
        if self._is_over or not self.foresight.is_ready:
            return planned
        for batch, plans in self.foresight.take_plans(await self._store.now(), BATCH):
            if planned.jobs:
                # Those written so far may start. Not after the last part: jobs of the same instant that were not
                # foreseen are still to be planned, and may have to come first.
                await asyncio.sleep(0)
            planned += _result(await self._commit(batch, batch.snapshots, plans))
        return planned

    async def _commit(self, batch: Batch, snapshots: Sequence[JobSnapshot], plans: Sequence[Plan]) -> Planned:
        """Commit the plans. With the last batch of a round the store may return claims."""
        asked_at = self._clock.monotonic()
        with self._under_way(), self._claimer.offer(bool(plans) and not batch.more) as offer:
            done = await self._store.commit_plans(batch, plans, offer) if plans else Committed(())
            self._write_seconds = self._clock.monotonic() - asked_at
            planned = Planned(batch, snapshots, plans, done, asked_at)
            self._inbox.put(planned)
        return planned

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        self._open += 1
        self._is_idle.clear()
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self._is_idle.set()

    def _plan(self, snapshot: JobSnapshot, now: datetime) -> Plan:
        """Return the job's plan; one that cannot be made is put off, so that it disturbs no other job."""
        try:
            return decide(with_latency(snapshot, max(self._read_seconds, self._write_seconds)), now, self._limit)
        except Exception:  # noqa: BLE001, a schedule may be a user's code
            name = snapshot.editions[-1].job.name
            about = {"component": "scheduler", "job": name}
            _log.exception("%s: %s: %s; it is planned again in a minute", CLAIM_FAILED, name, NO_NEXT_RUN, extra=about)
            return put_off(snapshot, now)


def _nothing(batch: Batch, asked_at: float) -> Planned:
    return Planned(Batch(batch.now, (), batch.token), (), (), Committed(()), asked_at)


def _result(planned: Planned) -> RoundResult:
    away = sum(1 for answer in planned.done.answers if isinstance(answer, CommitAway))
    useful = sum(1 for plan in planned.plans if plan.creations or plan.releases or plan.endings or plan.spans)
    return RoundResult(len(planned.batch.snapshots) - away, useful)


async def _side_by_side(*works: Coroutine[Any, Any, RoundResult]) -> list[RoundResult]:
    """Return what all of them return; if one fails, the others are ended first."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _rest_seconds(took: float, is_useful: bool) -> float:
    """Return how long to plan nothing after a long round, so that running has its share."""
    return min(4.0 * took, 0.25) if is_useful else min(20.0 * took, 1.0)
