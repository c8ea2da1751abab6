"""A node that is told to stop: the first signal ends it in order, the second at once."""

import signal

from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import all_records


def test_a_stopped_node_cancels_what_must_not_run_again(address: str, fleet: Fleet) -> None:
    """S0-109: under on_orphan fail the attempt and its occurrence end as canceled: shutdown."""
    node = fleet.start("held", address, "fail", "obedient")
    fleet.hear("began 1")

    node.tell_to_stop(signal.SIGTERM)

    assert node.ended() == 0
    [whole] = all_records(address)
    assert (whole.occurrence.status, whole.occurrence.error) == ("canceled", "shutdown")
    assert [(each.number, str(each.status), each.error) for _, each in whole.attempts] == [(1, "canceled", "shutdown")]


def test_a_stopped_node_gives_back_what_may_run_again(address: str, fleet: Fleet) -> None:
    """S0-109: under on_orphan restart it is pending again, and the next node runs it to its end."""
    first = fleet.start("held", address, "restart", "obedient")
    fleet.hear("began 1")
    first.tell_to_stop(signal.SIGINT)
    assert first.ended() == 0
    [whole] = all_records(address)
    assert (whole.occurrence.status, whole.occurrence.owner) == ("pending", None)

    second = fleet.start("held", address, "restart", "obedient")
    fleet.hear("began 2", by=second)
    second.tell_to_stop()

    assert second.ended() == 0
    [whole] = all_records(address)
    assert whole.occurrence.status == "completed"
    assert [(each.number, str(each.status)) for _, each in whole.attempts] == [(1, "canceled"), (2, "success")]


def test_a_second_signal_leaves_at_once(address: str, fleet: Fleet) -> None:
    """S0-109: a task that does not listen holds the grace period, but not past the second signal.

    What it leaves is settled by the reaper of the next node.
    """
    node = fleet.start("held", address, "fail", "deaf")
    fleet.hear("began 1")

    node.tell_to_stop(signal.SIGTERM)
    fleet.hear("told to stop", by=node)
    node.tell_to_stop(signal.SIGTERM)

    assert node.ended(within=20) != 0
    [whole] = all_records(address)
    assert whole.occurrence.status == "running"

    survivor = fleet.start("held", address, "fail", "obedient")
    fleet.wait_until(lambda: _statuses(address) == ["failed_stale"], "a reaper has settled what was left")
    survivor.tell_to_stop()
    assert survivor.ended() == 0


def _statuses(address: str) -> list[str]:
    return [str(whole.occurrence.status) for whole in all_records(address)]
