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
    """S0-070, S0-071: the bodies' own lines are counted, not what the store says about them."""
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


def test_every_occurrence_of_several_nodes_has_one_attempt(address: str, fleet: Fleet) -> None:
    """S0-070, S0-071: the records agree with the lines: one occurrence, one attempt, one success for each."""
    for _ in range(3):
        fleet.start("seconds", address)
    for _ in range(2 * INSTANTS):
        fleet.hear("ran ")
    for node in fleet.nodes:
        node.tell_to_stop()
    assert [node.ended() for node in fleet.nodes] == [0, 0, 0]

    lines = Counter(read(line)[1] for line in fleet.heard() if line.startswith("ran "))
    records = all_records(address)
    completed = [whole for whole in records if whole.occurrence.status == "completed"]
    assert Counter(int(whole.occurrence.scheduled_for.timestamp()) for whole in completed) == lines
    assert {len(whole.attempts) for whole in completed} == {1}


def read(line: str) -> tuple[str, int]:
    _, job, instant = line.split()
    return job, int(instant)
