"""Several nodes on one store: each instant is run once, by one of them."""

from collections import Counter
from itertools import pairwise

import pytest

from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import all_records

INSTANTS = 3
JOBS = ("on_the_loop", "in_a_thread")


@pytest.mark.parametrize("nodes", [2, 4])
def test_each_instant_is_run_by_exactly_one_of_several_nodes(address: str, fleet: Fleet, nodes: int) -> None:
    """S0-070, S0-071, S1-002: the bodies' own lines are counted, and the records agree with them."""
    for _ in range(nodes):
        fleet.start("seconds", address)
    ran: Counter[tuple[str, int]] = Counter()
    while any(len({at for name, at in ran if name == job}) < INSTANTS for job in JOBS):
        ran[read(fleet.hear("ran "))] += 1

    for node in fleet.nodes:
        node.tell_to_stop()
    assert [node.ended() for node in fleet.nodes] == [0] * nodes

    ran = Counter(read(line) for line in fleet.heard() if line.startswith("ran "))
    assert set(ran.values()) == {1}
    for job in JOBS:
        instants = sorted(at for name, at in ran if name == job)
        assert {later - earlier for earlier, later in pairwise(instants)} == {1}
    completed = [whole for whole in all_records(address) if whole.occurrence.status == "completed"]
    recorded = Counter(int(whole.occurrence.scheduled_for.timestamp()) for whole in completed)
    assert recorded == Counter(at for _, at in ran.elements())
    assert {len(whole.attempts) for whole in completed} == {1}


def read(line: str) -> tuple[str, int]:
    _, job, instant = line.split()
    return job, int(instant)
