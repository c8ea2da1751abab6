"""A store moves while nodes run on it: nothing is lost or doubled, whichever process is killed meanwhile."""

import asyncio
import sqlite3
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from everytick import Everytick, StoreArriving, StoreMoved
from everytick.domain.ids import job_id
from tests.acceptance.node.conftest import new_database
from tests.acceptance.node.fleet import Fleet, Node
from tests.acceptance.node.records import all_records
from tests.servers.launch import Server

JOBS = [f"every_second_{number}" for number in range(8)]
BEFORE_THE_CUT = ("MARKED", "FILLED", "FOLLOWED", "HELD", "COMPARED")


def test_nothing_is_lost_when_movers_and_a_node_are_killed_under_load(
    postgres: Server, fleet: Fleet, tmp_path: Path
) -> None:
    """B16: from SQLite to PostgreSQL, every mover but the last is killed, and then a node; running work goes along."""
    old, new = f"sqlite:///{tmp_path / 'store.db'}", asyncio.run(new_database(postgres))
    gate = tmp_path / "gate"
    nodes = [fleet.start("following", old, new, gate) for _ in range(2)]
    hear_instants(fleet, nodes)
    asyncio.run(ask(old, "held"))
    fleet.hear("held ")
    holder = fleet.lines[-1][0]

    for stage in BEFORE_THE_CUT:
        mover = fleet.start("mover", old, new, stage)
        assert mover.ended() == -9, mover.complaints()
        hear_instants(fleet, nodes)  # the old store is in use
        with pytest.raises(StoreArriving):
            all_records(new)
    mover = fleet.start("mover", old, new, "SHUT")
    assert mover.ended() == -9, mover.complaints()
    with pytest.raises(StoreMoved):
        all_records(old)
    hear_instants(fleet, nodes)  # the new store is in use: one of them has let it arrive

    gate.touch()
    ended = fleet.hear("let go ")
    [kept], [killed] = ([node for node in nodes if (node.name == holder) is is_kept] for is_kept in (True, False))
    killed.kill()
    hear_instants(fleet, [kept])
    kept.tell_to_stop()
    assert kept.ended() == 0, kept.complaints()

    again = fleet.start("mover", old, new, "-")
    assert again.ended() == 1
    assert "there is nothing left to do" in again.complaints()
    assert_each_instant_once(fleet, new)
    [whole] = [each for each in all_records(new) if each.occurrence.job_id == job_id("held")]
    assert (whole.occurrence.status, whole.result, len(whole.attempts)) == ("completed", "ended", 1)
    assert ended == "let go 1"
    assert_nothing_was_written_after_the_move(tmp_path / "store.db", new)


def test_nodes_that_do_not_follow_stop_with_the_address_and_go_on_there(
    postgres: Server, fleet: Fleet, tmp_path: Path
) -> None:
    """B16: from PostgreSQL to SQLite; a node that was started on the new store waits until it has arrived."""
    old, new = asyncio.run(new_database(postgres)), f"sqlite:///{tmp_path / 'store.db'}"
    gate = tmp_path / "gate"
    nodes = [fleet.start("following", old, "-", gate) for _ in range(2)]
    hear_instants(fleet, nodes)
    filled = fleet.start("mover", old, new, "FILLED")
    assert filled.ended() == -9
    early = fleet.start("following", new, "-", gate)
    fleet.hear_error("is being moved into it", by=early)

    command = [sys.executable, "-m", "everytick", "db", "move", old, new, "--yes"]
    moved = fleet.run(command)
    assert moved.ended() == 0, moved.complaints()
    assert "the new store is in use" in moved.errors()
    for node in nodes:
        assert node.ended() == 69, node.complaints()
        assert f"has moved to {new}" in node.errors()
    hear_instants(fleet, [early])
    early.tell_to_stop()
    assert early.ended() == 0, early.complaints()
    assert_each_instant_once(fleet, new)


async def ask(address: str, job: str) -> None:
    tick = Everytick(address, name="asking")
    await tick.trigger(job)
    await tick.close()


def hear_instants(fleet: Fleet, nodes: list[Node]) -> None:
    """Return when each of these nodes has run some more instants, and each job one more."""
    for node in nodes:
        fleet.hear("ran ", by=node)
    heard = Counter[str]()
    while any(heard[job] < 1 for job in JOBS):
        heard[fleet.hear("ran ").split()[1]] += 1


def assert_each_instant_once(fleet: Fleet, address: str) -> None:
    """Every instant of every job is recorded once, and ran once unless the node that had it was killed."""
    lines = (line.split() for line in fleet.heard() if line.startswith("ran "))
    ran = Counter((job, int(instant)) for _, job, instant in lines)
    assert set(ran.values()) == {1}, [each for each, runs in ran.items() if runs > 1]
    records = [whole.occurrence for whole in all_records(address)]
    for job in JOBS:
        known = {int(each.scheduled_for.timestamp()): each.status for each in records if each.job_id == job_id(job)}
        assert {later - earlier for earlier, later in pairwise(sorted(known))} == {1}, job
        newest = max(at for name, at in ran if name == job)
        assert {str(known[at]) for at in known if at <= newest and (job, at) not in ran} <= {"failed_stale"}
        assert {(job, at) for at, status in known.items() if status == "completed"} <= set(ran)


def assert_nothing_was_written_after_the_move(file: Path, new: str) -> None:
    """What the old store holds was carried: it knows no occurrence that the new one does not."""
    with sqlite3.connect(file) as it:
        left = {row[0] for row in it.execute("select lower(hex(id)) from occurrence")}
    it.close()
    carried = {whole.occurrence.id.removeprefix("occ_").replace("-", "") for whole in all_records(new)}
    assert left <= carried
