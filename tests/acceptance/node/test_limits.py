"""A limit holds on all nodes together, and no node idles while one of those that wait may start."""

import asyncio
import time

from everytick import Everytick
from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import query

MOST = 5
RUNS = 60


def test_three_nodes_of_two_hundred_slots_never_run_six_of_a_tag_limited_to_five(address: str, fleet: Fleet) -> None:
    """S1-040: by the bodies' own words and by the records. The nodes look again only when the bell rings: all that wait
    are run all the same, also those of a node that is killed, and what is not limited starts past them."""
    nodes = [fleet.start("limited", address) for _ in range(3)]
    for _ in nodes:
        fleet.hear("ready")
    asyncio.run(_ask(address))

    for _ in range(RUNS // 3):
        fleet.hear("ended ")
    nodes[0].kill()
    killed_at = time.monotonic_ns()
    fleet.wait_until(lambda: len(_ended(fleet)) == RUNS, f"{RUNS} have ended")

    assert "free" in fleet.heard()
    assert 1 < _most_at_once(_spans_by_word(fleet, nodes[0].name, killed_at)) <= MOST
    _until_all_are_written(address, fleet)
    assert _most_at_once(_spans_by_record(address)) <= MOST


async def _ask(address: str) -> None:
    tick = Everytick(address, name="asking")
    try:
        await tick.set_limit("tag:crm", most=MOST)
        for _ in range(RUNS):
            await tick.trigger("sync")
        await tick.trigger("free")
    finally:
        await tick.close()


def _ended(fleet: Fleet) -> set[str]:
    return {line.split()[1] for line in fleet.heard() if line.startswith("ended ")}


def _spans_by_word(fleet: Fleet, killed: str, killed_at: int) -> list[tuple[int, int]]:
    """Return when each body began and ended; those of the killed node have ended with it."""
    fleet.heard()
    begun: dict[tuple[str, str], int] = {}
    spans = []
    for node, line in fleet.lines:
        what, *rest = line.split()
        if what == "began":
            begun[node, rest[0]] = int(rest[1])
        elif what == "ended":
            spans.append((begun.pop((node, rest[0])), int(rest[1])))
    assert {node for node, _ in begun} <= {killed}
    return spans + [(at, killed_at) for at in begun.values()]


def _spans_by_record(address: str) -> list[tuple[str, str]]:
    """Return from when to when each was owned, by the store's clock; its end is written before the next claim.

    One that was claimed twice was not owned all the time, and is left out.
    """
    view = "occurrences" if address.startswith("sqlite") else "everytick.occurrences"
    return query(address, f"select started_at, updated_at from {view} where job = 'sync' and fence = 2")


def _until_all_are_written(address: str, fleet: Fleet) -> None:
    view = "occurrences" if address.startswith("sqlite") else "everytick.occurrences"
    left = f"select id from {view} where job = 'sync' and status <> 'completed'"
    fleet.wait_until(lambda: query(address, left) == [], "all are completed")


def _most_at_once(spans: "list[tuple[int, int]] | list[tuple[str, str]]") -> int:
    moments = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    running = most = 0
    for _, change in moments:
        running += change
        most = max(most, running)
    return most
