"""Two services of one name on one store: neither removes what the other defines while it lives (C-42, L3b)."""

import logging
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from everytick import Everytick
from everytick.domain.lookups import UndefinedJobs
from everytick.stores.addresses import AnyStore
from tests.stores.clock import ManualClock


def work() -> None:
    """Do nothing."""


def service(store: AnyStore, *jobs: str) -> Everytick:
    """A program whose file is `main.py`, with these jobs."""
    made = Everytick(store, name="main")
    for name in jobs:
        made.job("0 * * * *", name=name)(work)
    return made


@pytest.fixture
async def one(store: AnyStore, clock: ManualClock) -> AsyncIterator[Everytick]:
    """The first service, which runs and defines `job1` and what both have in common."""
    made = service(store, "both", "job1")
    await made.start()
    clock.move(minutes=2)
    yield made
    await made.stop()


async def kinds(app: Everytick) -> dict[str, str]:
    return {each.name: each.kind for each in await app.sync()}


async def test_a_start_keeps_what_a_living_node_of_its_name_defines(
    store: AnyStore, one: Everytick, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """C-42: nothing is removed, then or ten minutes later, and a WARNING names the node and its jobs."""
    assert one.node is not None
    two = service(store, "both", "job2")
    with caplog.at_level(logging.WARNING, "everytick.node"):
        assert await kinds(two) == {"both": "unchanged", "job2": "added", "job1": "kept"}
    [warning] = [each.getMessage() for each in caplog.records if "which this program does not" in each.getMessage()]
    assert f"node '{one.node.name}' defines 'job1', which this program does not" in warning
    assert "Everytick(name=...)" in warning
    clock.move(minutes=20)
    await one.node.janitor.round()
    assert [each.job.name for each in await store.list()] == ["both", "job1", "job2"]
    assert [each.name for each in (await store.ask(UndefinedJobs())).jobs] == ["job1"]


async def test_what_it_defined_retires_once_it_is_gone_for_good(
    store: AnyStore, one: Everytick, clock: ManualClock
) -> None:
    """C-42: the janitor of any node sets retire_at = now + 10 min once no living node's set holds the job."""
    two = service(store, "both", "job2")
    await two.start()
    try:
        await one.stop()
        assert two.node is not None
        await two.node.janitor.round()
        now = await store.now()
        gone = {each.job.name: each.retire_at for each in await store.list(removed=True)}
        assert gone == {"both": None, "job2": None, "job1": now + timedelta(minutes=10)}
    finally:
        await two.stop()


async def test_the_jobs_of_a_service_that_is_only_stopped_stay(
    store: AnyStore, one: Everytick, clock: ManualClock
) -> None:
    """Nothing was left out by a start: an application that is down has an outage, and keeps its jobs."""
    await one.stop()
    other = Everytick(store, name="other")
    await other.start()
    try:
        clock.move(hours=1)
        assert other.node is not None
        await other.node.janitor.round()
    finally:
        await other.stop()
    assert [each.job.name for each in await store.list()] == ["both", "job1"]


async def test_a_deploy_that_leaves_a_job_out_removes_it(store: AnyStore, clock: ManualClock) -> None:
    """C-22, C-42: also within the minute in which the version before it started."""
    old = service(store, "both", "job1")
    await old.start()
    clock.move(seconds=1)
    await old.stop()
    new = service(store, "both")
    assert await kinds(new) == {"both": "unchanged", "job1": "removed"}
    assert [each.job.name for each in await store.list()] == ["both"]


async def test_a_roll_back_takes_the_mark_away(store: AnyStore, one: Everytick, clock: ManualClock) -> None:
    """The old version starts again while its node before it lives: afterwards nothing is left out."""
    await service(store, "both").sync()
    assert [each.name for each in (await store.ask(UndefinedJobs())).jobs] == ["job1"]
    assert await kinds(service(store, "both", "job1")) == {"both": "unchanged", "job1": "unchanged"}
    assert (await store.ask(UndefinedJobs())).jobs == ()


async def test_a_running_node_that_syncs_again_removes_what_it_defined_itself(
    store: AnyStore, clock: ManualClock
) -> None:
    """Its row still names the set of before, and must not keep the job."""
    app = service(store, "both", "job1")
    await app.start()
    try:
        del app._definitions[next(id_ for id_, each in app._definitions.items() if each.name == "job1")]
        assert await kinds(app) == {"both": "unchanged", "job1": "removed"}
    finally:
        await app.stop()
