"""Very many due at once: a node plans two batches at the same time, and neither sees the other's jobs."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import Any

import pytest

from everytick.domain.decisions import Plan
from everytick.node import planner
from everytick.node.planner import Planner
from everytick.node.scope import Scope
from everytick.node.settings import node_settings
from everytick.stores.base import Batch, Commit, Committed, NodeScope, Offer
from everytick.stores.postgres.store import PostgresStore
from tests.servers.launch import Server
from tests.stores.acting import job, put, statuses
from tests.stores.clock import ManualClock
from tests.unit.node.parts import EveryJob, inbox, tools


class Watched(PostgresStore):
    """Lets no batch but the first end before there were two at once, and no plan be stale."""

    begun = open_now = 0

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.two_at_once = asyncio.Event()

    @asynccontextmanager
    async def due(self, scope: NodeScope, limit: int, by: datetime | None = None) -> AsyncIterator[Batch]:
        async with super().due(scope, limit, by) as batch:
            self.begun += 1
            self.open_now += 1
            if self.open_now == 2:
                self.two_at_once.set()
            try:
                yield batch
            finally:
                self.open_now -= 1

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        if self.begun > 1:
            await asyncio.wait_for(self.two_at_once.wait(), 60)
        done = await super().commit_plans(batch, plans, offer)
        assert set(done.answers) == {Commit.COMMITTED}, "a plan was made in vain"
        return done


class Busy:
    """A claimer without a free slot."""

    @contextmanager
    def offer(self, is_wanted: bool) -> Iterator[None]:
        yield None


async def test_two_batches_are_planned_at_once_and_none_is_stale(
    postgres: Server, store: PostgresStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is decided while the other is written: two cores share what very many jobs cost."""
    monkeypatch.setattr(planner, "BATCH", 4)
    for number in range(30):
        await put(store, job(f"job-{number}"))
    clock.move(hours=1)
    watched = Watched(postgres.address, schema=store.schema, clock=clock)
    watched.jobs_due.unheld = 0
    await watched.open()
    scope = Scope("node-1", "", node_settings(), EveryJob())
    made = Planner(watched, tools(), scope, Busy(), inbox())
    assert (await made.round()).jobs == 30
    assert await statuses(store) == ["pending"] * 30
    assert watched.open_now == 0
    await watched.close()
