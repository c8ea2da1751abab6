"""A server whose clock is set while real nodes run on it."""

import asyncio
import signal

import pytest

from everytick.domain.facts import Trigger
from everytick.domain.ids import job_id
from everytick.stores.addresses import store_of
from tests.acceptance.node.conftest import new_database
from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import all_records, query
from tests.servers.launch import Server

SILENT = 2.0
"""The node_timeout of the programs, in seconds."""


@pytest.fixture
def address(postgres: Server) -> str:
    """The address of a new store whose server's clock can be set."""
    made = asyncio.run(new_database(postgres))
    asyncio.run(_opened(made))
    query(made, "create table everytick.clock_step as select interval '0' as step")
    query(
        made,
        "create or replace function everytick.everytick_now() returns timestamptz language sql volatile as "
        "$$ select clock_timestamp() + step from everytick.clock_step $$",
    )
    return made


async def _opened(address: str) -> None:
    store = store_of(address)
    await store.open()
    await store.close()


def set_clock(address: str, step: str) -> None:
    """Let the server's clock show so much more or less than it should."""
    query(address, f"update everytick.clock_step set step = interval '{step}'")


def ask(address: str, key: str) -> None:
    """Ask for a run of the job `asked`, as a client beside the nodes does."""

    async def asking() -> None:
        store = store_of(address)
        await store.open()
        try:
            await store.request(job_id("asked"), Trigger(key))
        finally:
            await store.close()

    asyncio.run(asking())


def test_a_server_whose_clock_is_set_ahead_takes_nothing_from_healthy_nodes(address: str, fleet: Fleet) -> None:
    """F-5, I5: what runs goes on where it runs, and comes to its end once."""
    nodes = [fleet.start("clocks", address)]
    fleet.hear("began 1", by=nodes[0])
    nodes += [fleet.start("clocks", address) for _ in range(2)]
    for number in range(4):
        set_clock(address, f"{30 * (number + 1)} seconds")
        fleet.hear_for(2 * SILENT)
    nodes[0].process.send_signal(signal.SIGUSR1)
    fleet.hear("held completed")
    for node in nodes:
        node.tell_to_stop()
    assert [node.ended() for node in nodes] == [0, 0, 0]
    assert [line for line in fleet.heard() if line.startswith("began")] == ["began 1"]
    [whole] = all_records(address)
    assert [(attempt.number, str(attempt.status)) for _, attempt in whole.attempts] == [(1, "success")]


@pytest.mark.parametrize("steps", [("-300 seconds",), ("1 hour", "0")], ids=["back", "ahead and back"])
def test_a_server_whose_clock_is_set_back_lets_nothing_fail_unrun(
    address: str, fleet: Fleet, steps: tuple[str, ...]
) -> None:
    """F-5, C-05: an execution_timeout counts from the claim, whatever the clock showed before."""
    node = fleet.start("clocks", address)
    fleet.hear("began 1", by=node)
    for number, step in enumerate(steps):
        ask(address, f"before {number}")
        fleet.hear("asked completed")
        set_clock(address, step)
    for number in range(3):
        ask(address, f"after {number}")
        fleet.hear("asked")
        fleet.hear_for(SILENT)
    node.process.send_signal(signal.SIGUSR1)
    fleet.hear("held completed")
    node.tell_to_stop()
    assert node.ended() == 0
    said = fleet.heard()
    assert said.count("asked completed None") == len(steps) + 3, said
    assert said.count("ran") == len(steps) + 3
    for whole in all_records(address):
        record = whole.occurrence
        assert record.started_at is not None
        assert record.ended_at is not None
        assert record.ended_at >= record.started_at
