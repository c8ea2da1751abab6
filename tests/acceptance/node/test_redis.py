"""A Redis that is killed, stands still, forgets or has no memory left, under nodes that run."""

from collections import Counter
from itertools import pairwise

import pytest

from everytick.exits import Exit
from tests.acceptance.node.fleet import Fleet, Node
from tests.acceptance.node.records import all_records
from tests.acceptance.node.stoppable_redis import StoppableRedis


def two_nodes(fleet: Fleet, server: StoppableRedis) -> list[Node]:
    nodes = [fleet.start("outage", server.address) for _ in range(2)]
    for node in nodes:
        fleet.hear_error("running 2 jobs", by=node)
    fleet.hear("ran all_of_them")
    return nodes


def go_on(fleet: Fleet, nodes: list[Node]) -> None:
    """Hear what runs once the store is found again, and stop the nodes."""
    for node in nodes:
        fleet.hear_also("store_found", by=node)
    after = max(instants(fleet), default=0)
    fleet.hear(lambda line: line.startswith("ran all_of_them") and instant(line) > after + 1)
    for node in nodes:
        node.tell_to_stop()
    assert [node.ended() for node in nodes] == [0, 0]
    assert not [node.name for node in nodes if "Traceback" in node.errors()]


def instant(line: str) -> int:
    return int(line.split()[2])


def instants(fleet: Fleet) -> list[int]:
    """The instants of `all_of_them` that ran, each as often as it did."""
    return [instant(line) for line in fleet.heard() if line.startswith("ran all_of_them")]


def kept(server: StoppableRedis) -> list[int]:
    """The instants of `all_of_them` in the history that have ended, each as often as it is there."""
    found = [whole for whole in all_records(server.address) if {task for task, _ in whole.attempts} == {"all_of_them"}]
    return sorted(int(whole.occurrence.scheduled_for.timestamp()) for whole in found)


def assert_each_ran_once(fleet: Fleet, server: StoppableRedis) -> None:
    ran = Counter(instants(fleet))
    assert set(ran.values()) == {1}
    assert {later - earlier for earlier, later in pairwise(sorted(ran))} == {1}
    assert kept(server) == sorted(ran)


def test_a_redis_that_is_killed_and_comes_back_with_its_log_has_lost_nothing(
    redis_server: StoppableRedis, fleet: Fleet
) -> None:
    """C-28: with every change on its disk no instant runs twice, and none is left out."""
    nodes = two_nodes(fleet, redis_server)
    redis_server.kill()
    for node in nodes:
        fleet.hear_also("store_lost", by=node)
    redis_server.start()
    go_on(fleet, nodes)
    assert_each_ran_once(fleet, redis_server)


def test_what_a_redis_has_lost_is_run_again_and_recorded_once(redis_server: StoppableRedis, fleet: Fleet) -> None:
    """F-12: nodes know more than the server, and go on with what it has. Nothing before that is touched."""
    nodes = two_nodes(fleet, redis_server)
    known = max(instants(fleet))
    saved = redis_server.saved()
    fleet.hear(lambda line: line.startswith("ran all_of_them") and instant(line) > known + 1)
    redis_server.kill()
    for node in nodes:
        fleet.hear_also("store_lost", by=node)
    redis_server.put_back(saved)
    redis_server.start()
    go_on(fleet, nodes)
    ran = Counter(instants(fleet))
    assert {at for at, times in ran.items() if times > 1}, "nothing was lost"
    assert {times for at, times in ran.items() if at < known} <= {1}
    assert {later - earlier for earlier, later in pairwise(sorted(ran))} == {1}
    assert kept(redis_server) == sorted(ran)


def test_a_redis_that_stands_still_is_waited_for(redis_server: StoppableRedis, fleet: Fleet) -> None:
    """C-28: its connections stay open, and nothing is known about what was asked of it."""
    nodes = two_nodes(fleet, redis_server)
    redis_server.freeze()
    try:
        for node in nodes:
            fleet.hear_also("store_lost", by=node)
    finally:
        redis_server.thaw()
    go_on(fleet, nodes)
    assert_each_ran_once(fleet, redis_server)


def test_a_redis_without_memory_is_away_until_it_has_some(redis_server: StoppableRedis, fleet: Fleet) -> None:
    """C-28: it refuses every write and loses nothing."""
    nodes = two_nodes(fleet, redis_server)
    redis_server.tell("CONFIG", "SET", "maxmemory", "1")
    for node in nodes:
        fleet.hear_also("store_lost", by=node)
        fleet.hear_error("it takes no writes now", by=node)
    redis_server.tell("CONFIG", "SET", "maxmemory", "0")
    go_on(fleet, nodes)
    assert_each_ran_once(fleet, redis_server)


@pytest.mark.parametrize("way", ["flushed", "started empty"])
def test_nodes_stop_when_redis_has_forgotten_everything(redis_server: StoppableRedis, fleet: Fleet, way: str) -> None:
    """F-14: nothing is written into the empty server, and a start makes a new store."""
    nodes = two_nodes(fleet, redis_server)
    if way == "flushed":
        redis_server.tell("FLUSHALL")
    else:
        redis_server.kill()
        redis_server.start(keeps=False)
    for node in nodes:
        assert node.ended() == Exit.UNREACHABLE
        assert "; this node stops" in node.errors()
        assert "the server has no store of this name any more" in node.errors()
        assert "Traceback" not in node.errors(), node.complaints()
    assert redis_server.tell("KEYS", "*") == []
    fresh = fleet.start("outage", redis_server.address)
    fleet.hear("ran all_of_them", by=fresh)
    fresh.tell_to_stop()
    assert fresh.ended() == 0
