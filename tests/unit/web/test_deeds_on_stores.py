"""Deeds from pages on the stores that keep data: one story, from the first page to the audit."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from everytick import Everytick, every
from everytick.domain.deeds import DeedFilter
from everytick.stores.addresses import AnyStore
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.clock import ManualClock
from tests.stores.postgres.kit import opened
from tests.unit.web.conftest import client_of
from tests.unit.web.forms_of_pages import sent, sent_again, text_of


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path) -> AsyncIterator[AnyStore]:
    if request.param == "postgres":
        async with opened(request.getfixturevalue("postgres"), clock) as shared:
            yield shared
        return
    made = SqliteStore(tmp_path / "a.db", clock=clock)
    await made.open()
    yield made
    await made.close()


async def test_a_day_of_an_operator(store: AnyStore, clock: ManualClock) -> None:
    tick = Everytick(store, name="shop")

    @tick.job(every("1h"), name="etl", owner="api", tags=["billing"])
    def etl(size: int = 3) -> None: ...

    await tick.sync()
    now = await tick.now()
    instant = (now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    async with client_of(tick) as client:
        said = text_of(await client.get("/jobs"))
        assert "1 job; no node is live." in said
        steps = [
            await sent(client, "/jobs/etl/do/trigger", p__size="5", reason="by hand"),
            await sent(client, f"/jobs/etl/do/skip?at={instant}"),
            await sent(client, f"/jobs/etl/do/undo?at={instant}"),
            await sent(client, "/jobs/etl/do/pause", reason="audit"),
            await sent(client, "/jobs/do/resume?state=paused"),
            await sent(client, "/do/brake?reach=tag:billing"),
            await sent(client, "/do/release?reach=tag:billing"),
            await sent(client, f"/jobs/etl/do/backfill?after={_past(clock, 9)}&through={_past(clock, 5)}"),
        ]
        seen = await client.get("/jobs/etl/do/edit?schedule=every+2h")
        steps.append(await sent_again(client, "/jobs/etl/do/edit", seen))
        steps.append(await sent(client, "/jobs/etl/do/rollback?version=1"))
        assert [step.status_code for step in steps] == [303] * len(steps), [text_of(step)[:300] for step in steps]
        assert "1 backfill" in text_of(await client.get("/history")).replace("One", "1")

    record = await tick.job("etl")
    assert (record.job.version, record.pause) == (3, None)
    [snapshot] = (await store.look([record.job.id])).values()
    assert [request.payload.read() for request in snapshot.requests if request.payload] == [{"size": 5}]
    deeds = (await store.access.deeds(DeedFilter())).deeds
    assert {deed.doer.name for deed in deeds} == {"local"}
    assert len(deeds) >= len(steps)


def _past(clock: ManualClock, hours: int) -> str:
    return (clock() - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
