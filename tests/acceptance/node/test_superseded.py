"""A retry that is due, and the next instant of its job that is due too, in real time."""

from tests.acceptance.node.fleet import Fleet

CROWD = 100
"""Jobs of the program: enough that a round of planning takes longer than one claim."""


def test_a_due_retry_does_not_run_beside_the_instant_that_supersedes_it(address: str, fleet: Fleet) -> None:
    """L1, S2-019, S2-023, S2-065: a failure at an instant is to be tried again just after the next instant.

    So whenever a retry is due, an instant of its job is due as well, and takes its place. No attempt is a second one,
    whether the planner or the claimer comes first.
    """
    node = fleet.start("superseded", address, CROWD)
    for _ in range(5 * CROWD):
        fleet.hear("ran ", by=node)
    node.tell_to_stop()
    assert node.ended() == 0
    assert {line.rpartition(" ")[2] for line in fleet.heard() if line.startswith("ran ")} == {"1"}
