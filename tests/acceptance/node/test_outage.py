"""The store goes away and comes back: nothing fires meanwhile, then everything resumes, each job in its own way."""

import asyncio
from collections import Counter
from itertools import pairwise
from pathlib import Path

import asyncpg

from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.stoppable import StoppableServer


def test_an_outage_of_the_store_is_made_up_for_by_each_job_in_its_own_way(
    server: StoppableServer, fleet: Fleet, tmp_path: Path
) -> None:
    """C-28: firing stops with the store and resumes with it; no instant runs twice, and execute_all loses none."""
    node = fleet.start("outage", server.address)
    fleet.hear("ran all_of_them", by=node)
    fleet.hear("ran only_the_last", by=node)
    # A second node on a store of its own tells how the seconds pass.
    seconds = fleet.start("seconds", f"sqlite:///{tmp_path / 'seconds.db'}")
    fleet.hear("ran on_the_loop", by=seconds)

    server.stop()
    fleet.hear("store_lost", by=node)
    stopped_at = instant(fleet.hear("ran on_the_loop", by=seconds))
    for _ in range(3):
        resumed_at = instant(fleet.hear("ran on_the_loop", by=seconds))
    during = len(fleet.heard())
    server.start()
    fleet.hear("store_found", by=node)
    fleet.hear(lambda line: line.startswith("ran all_of_them") and instant(line) > resumed_at, by=node)
    fleet.hear(lambda line: line.startswith("ran only_the_last") and instant(line) > resumed_at, by=node)
    node.tell_to_stop()
    assert node.ended() == 0

    said = [line for name, line in fleet.lines if name == node.name]
    lost, found = said.index("store_lost"), said.index("store_found")
    assert [line for line in said[lost:found] if line.startswith("ran ") and instant(line) > stopped_at] == []
    ran = Counter(line for line in said if line.startswith("ran "))
    assert set(ran.values()) == {1}
    assert gaps(ran, "all_of_them") == {1}
    assert max(gaps(ran, "only_the_last")) > 1
    assert during > 0


def test_a_node_that_is_started_while_its_store_is_away_waits_for_it(server: StoppableServer, fleet: Fleet) -> None:
    """One line says so, no traceback does, and it runs once the store is there."""
    server.stop()
    node = fleet.start("outage", server.address)
    fleet.hear_error("the start waits until the store answers", by=node)
    server.start()
    fleet.hear("ran all_of_them", by=node)
    node.tell_to_stop()
    assert node.ended() == 0
    assert node.complaints().count("the start waits until the store answers") == 1
    assert "Traceback" not in node.complaints()


def test_a_node_that_waits_for_its_store_can_be_told_to_stop(server: StoppableServer, fleet: Fleet) -> None:
    """A service manager need not kill it."""
    server.stop()
    node = fleet.start("outage", server.address)
    fleet.hear_error("the start waits until the store answers", by=node)
    node.tell_to_stop()
    assert node.ended() == 0
    server.start()


def gaps(ran: "Counter[str]", job: str) -> set[int]:
    """Return the seconds between the instants that ran."""
    instants = sorted(instant(line) for line in ran if line.startswith(f"ran {job} "))
    return {later - earlier for earlier, later in pairwise(instants)}


def instant(line: str) -> int:
    return int(line.split()[2])


def test_a_job_that_does_not_wait_for_the_store_runs_on_and_is_recorded_afterwards(
    server: StoppableServer, fleet: Fleet
) -> None:
    """C-28, S1-020: with `fire_local` no second is left out, none runs twice, and all of them are in the history."""
    node = fleet.start("local", server.address)
    for _ in range(6):
        fleet.hear("ran here", by=node)
    server.stop()
    fleet.hear("store_lost", by=node)
    for _ in range(5):
        fleet.hear("ran here", by=node)
    server.start()
    fleet.hear("store_found", by=node)
    for _ in range(3):
        last = instant(fleet.hear("ran here", by=node))
    node.tell_to_stop()
    assert node.ended() == 0

    said = [line for name, line in fleet.lines if name == node.name]
    lost, found = said.index("store_lost"), said.index("store_found")
    assert len([line for line in said[lost:found] if line.startswith("ran ")]) >= 4
    assert "duplicate" not in said
    ran = Counter(line for line in said if line.startswith("ran "))
    assert set(ran.values()) == {1}
    assert gaps(ran, "here") == {1}
    kept = asyncio.run(recorded(server.address))
    assert {at for at, _, _ in kept} >= {instant(line) for line in ran if instant(line) <= last}
    assert {status for _, status, _ in kept if status != "canceled"} == {"completed"}
    assert len([at for at, _, reason in kept if reason.startswith("unverified")]) >= 3
    assert len({at for at, _, _ in kept}) == len(kept)


async def recorded(address: str) -> list[tuple[int, str, str]]:
    """Return the instant, the status and the reason of everything in the history."""
    db = await asyncpg.connect(address)
    try:
        rows = await db.fetch("select scheduled_for, status, reason from everytick.occurrences")
        return [(int(row[0].timestamp()), row[1], row[2]) for row in rows]
    finally:
        await db.close()
