"""A node that stands still between the claim of an occurrence and its start, for longer than its silence is borne."""

import asyncio
import signal

import asyncpg
import pytest

from tests.acceptance.node.asking import ask
from tests.acceptance.node.conftest import new_database
from tests.acceptance.node.fleet import Fleet, Node, freeze
from tests.acceptance.node.records import query
from tests.servers.launch import Server

LOCK = 4711
"""The advisory lock that every claim passes by."""


@pytest.fixture
def address(postgres: Server) -> str:
    """The address of an empty store on PostgreSQL."""
    return asyncio.run(new_database(postgres))


def test_a_node_frozen_between_claim_and_start_does_not_begin_what_another_has_run(address: str, fleet: Fleet) -> None:
    """I5: the answer to its claim waits in its socket, and is too old to begin when the node wakes.

    The node beats before it reads that answer. So it has been heard of again, and its beat did not ask about the claim.
    """
    frozen = fleet.start("asked", address, "slowly")
    fleet.hear("ended short completed", by=frozen)
    _let_claims_pass_a_lock(address)
    asyncio.run(_freeze_in_claim(address, frozen))
    survivor = fleet.start("asked", address)
    taken = fleet.hear("began short", by=survivor)
    fleet.hear("ended short completed", by=survivor)
    survivor.tell_to_stop()
    assert survivor.ended() == 0

    beats = _beats(address)
    frozen.process.send_signal(signal.SIGCONT)
    fleet.wait_until(lambda: _beats(address) > beats + 1, "the node that woke has beaten twice")
    frozen.process.send_signal(signal.SIGHUP)
    ask(address, "short")
    fleet.hear("ended short completed", by=frozen)
    frozen.tell_to_stop()
    assert frozen.ended() == 0
    begun = [line for line in fleet.heard() if line.startswith("began")]
    assert begun.count(taken) == 1
    assert len(begun) == 3


def _beats(address: str) -> int:
    """How often the node that is left has beaten."""
    [(beats,)] = query(address, "select max(beats) from everytick.node")
    return int(beats)


def _let_claims_pass_a_lock(address: str) -> None:
    query(
        address,
        "create function pass_the_lock() returns trigger language plpgsql as "
        f"$$ begin perform pg_advisory_xact_lock({LOCK}); return new; end $$",
    )
    query(
        address,
        "create trigger pass_the_lock before insert or update on everytick.occurrence "
        "for each row when (new.owner is not null) execute function pass_the_lock()",
    )


async def _freeze_in_claim(address: str, node: Node) -> None:
    """Ask for a run; the node is frozen while its claim waits, and the claim is then committed."""
    db = await asyncpg.connect(address)
    try:
        await db.execute(f"select pg_advisory_lock({LOCK})")
        await asyncio.to_thread(ask, address, "short")
        waiting = "select count(*) from pg_locks where locktype = 'advisory' and objid = $1 and not granted"
        async with asyncio.timeout(60):
            while not await db.fetchval(waiting, LOCK):
                pass
        freeze(node)
        await db.execute(f"select pg_advisory_unlock({LOCK})")
        async with asyncio.timeout(60):
            while not await db.fetchval("select count(*) from everytick.occurrence where owner is not null"):
                pass
    finally:
        await db.close()
