"""A node claims what it begins: what waits for a slot is another node's to run, and does not die with this one."""

from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import all_records, query


def test_a_crowd_behind_full_slots_is_run_by_a_second_node_and_survives_the_first(address: str, fleet: Fleet) -> None:
    """F1, S0-071, S0-104: running is what runs; a killed node takes with it what its slots held, and nothing else."""
    holder = fleet.start("crowd", address, "hold")
    begun = {_began(fleet, holder) for _ in range(5)}

    helper = fleet.start("crowd", address, "help")
    helped = {_began(fleet, helper) for _ in range(25)}
    assert len(helped) == 25
    assert not begun & helped
    _until_running(5, fleet, address)

    holder.kill()
    _until_running(0, fleet, address)
    ended = {each.occurrence.id: str(each.occurrence.status) for each in all_records(address)}
    assert {ended[each] for each in helped} == {"completed"}
    assert {ended[each] for each in begun} == {"failed_stale"}


def _began(fleet: Fleet, node: object) -> str:
    return fleet.hear("began ", by=node).removeprefix("began ")  # type: ignore[arg-type]


def _running(address: str) -> int:
    view = "occurrences" if address.startswith("sqlite") else "everytick.occurrences"
    return len(query(address, f"select id from {view} where status = 'running' and job = 'long'"))


def _until_running(wanted: int, fleet: Fleet, address: str) -> None:
    """Return once so many of the long ones are called running."""
    fleet.wait_until(lambda: _running(address) == wanted, f"{wanted} are called running")
