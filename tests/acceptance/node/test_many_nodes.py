"""Several nodes on one store: each instant is run once, by one of them, and none is lost when all of them die."""

from collections import Counter, defaultdict
from itertools import pairwise

from everytick.domain.ids import job_id
from tests.acceptance.node.conftest import ON_REDIS_TOO
from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import all_records

NODES = 5
INSTANTS = 3
JOBS = ("on_the_loop", "in_a_thread")


@ON_REDIS_TOO
def test_each_instant_is_run_by_exactly_one_of_several_nodes(address: str, fleet: Fleet) -> None:
    """S0-070, S0-071, S1-002, S1-035: the bodies' own lines are counted, and the records agree with them."""
    for _ in range(NODES):
        fleet.start("seconds", address)
    hear_instants(fleet)
    for node in fleet.nodes:
        node.tell_to_stop()
    assert [node.ended() for node in fleet.nodes] == [0] * NODES

    ran = runs(fleet)
    assert set(ran.values()) == {1}
    for job in JOBS:
        instants = sorted(at for name, at in ran if name == job)
        assert {later - earlier for earlier, later in pairwise(instants)} == {1}
    completed = [whole for whole in all_records(address) if whole.occurrence.status == "completed"]
    recorded = Counter(int(whole.occurrence.scheduled_for.timestamp()) for whole in completed)
    assert recorded == Counter(at for _, at in ran.elements())
    assert {len(whole.attempts) for whole in completed} == {1}


@ON_REDIS_TOO
def test_no_instant_is_lost_when_every_node_is_killed_at_once(address: str, fleet: Fleet) -> None:
    """S1-028, S0-090: the node that comes afterwards finds what was due meanwhile; nothing is due twice."""
    killed = [fleet.start("seconds", address) for _ in range(2)]
    hear_instants(fleet)
    for node in killed:
        node.kill()
    # Two instants pass while no node is up.
    fleet.hear_for(2.0)
    alone = fleet.start("seconds", address)
    hear_instants(fleet)
    alone.tell_to_stop()
    assert alone.ended() == 0

    ran = runs(fleet)
    assert set(ran.values()) == {1}
    records: dict[str, dict[int, str]] = defaultdict(dict)
    for whole in all_records(address):
        records[whole.occurrence.job_id][int(whole.occurrence.scheduled_for.timestamp())] = whole.occurrence.status
    for job in JOBS:
        known = records[job_id(job)]
        assert {later - earlier for earlier, later in pairwise(sorted(known))} == {1}
        newest = max(at for name, at in ran if name == job)
        not_run = [at for at in known if at <= newest and (job, at) not in ran]
        # What a killed node was about to run is recorded so: these jobs do not want it run again.
        assert {str(known[at]) for at in not_run} <= {"failed_stale"}


def hear_instants(fleet: Fleet) -> None:
    """Return when each job has run for so many instants more."""
    heard: set[tuple[str, int]] = set()
    while any(len({at for name, at in heard if name == job}) < INSTANTS for job in JOBS):
        heard.add(read(fleet.hear("ran ")))


def runs(fleet: Fleet) -> Counter[tuple[str, int]]:
    """Return how often each instant of each job was run."""
    return Counter(read(line) for line in fleet.heard() if line.startswith("ran "))


def read(line: str) -> tuple[str, int]:
    _, job, instant = line.split()
    return job, int(instant)
