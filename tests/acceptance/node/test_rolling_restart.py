"""A fleet is restarted node by node under load: nothing is lost, doubled, broken off or later than its grace."""

import asyncio
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from everytick.domain.ids import job_id
from tests.acceptance.node.conftest import new_database
from tests.acceptance.node.fleet import Fleet, Node
from tests.acceptance.node.records import all_records
from tests.acceptance.node.test_store_moves import JOBS, hear_instants
from tests.servers.launch import Server

GRACE = timedelta(seconds=60)
"""The grace of a job that says none."""


@pytest.mark.parametrize("is_new_first", [True, False], ids=["kubernetes", "systemd"])
def test_a_fleet_is_restarted_node_by_node(
    postgres: Server, fleet: Fleet, tmp_path: Path, *, is_new_first: bool
) -> None:
    """Kubernetes starts the new node before it stops an old one, systemd stops it first."""
    address = asyncio.run(new_database(postgres))

    def start() -> Node:
        return fleet.start("following", address, "-", tmp_path / "gate")

    nodes = [start(), start()]
    hear_instants(fleet, nodes)
    for place, old in enumerate(tuple(nodes)):
        if is_new_first:
            nodes[place] = start()
            fleet.hear("ran ", by=nodes[place])
        old.tell_to_stop()
        assert old.ended() == 0, old.complaints()
        if not is_new_first:
            nodes[place] = start()
        hear_instants(fleet, nodes)
    for node in nodes:
        node.tell_to_stop()
    assert [node.ended() for node in nodes] == [0, 0]

    ran = Counter(tuple(line.split()[1:]) for line in fleet.heard() if line.startswith("ran "))
    assert set(ran.values()) == {1}
    records = [whole.occurrence for whole in all_records(address)]
    begun = [each for each in records if each.started_at is not None]
    assert {str(each.status) for each in begun} == {"completed"}
    assert {(each.job_id, str(int(each.scheduled_for.timestamp()))) for each in begun} == {
        (job_id(job), instant) for job, instant in ran
    }
    for job in JOBS:
        instants = sorted(int(each.scheduled_for.timestamp()) for each in records if each.job_id == job_id(job))
        assert {later - earlier for earlier, later in pairwise(instants)} == {1}
    assert max(each.started_at - each.scheduled_for for each in begun if each.started_at is not None) < GRACE
