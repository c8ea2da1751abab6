"""A node that dies in the middle of a task: another one settles what it held, as each job wants it."""

from tests.acceptance.node.conftest import ON_REDIS_TOO
from tests.acceptance.node.fleet import WITHIN, Fleet
from tests.acceptance.node.records import all_records

WAYS = {"fail", "restart", "resume"}


@ON_REDIS_TOO
def test_what_a_killed_node_held_is_settled_by_another_as_each_job_wants_it(address: str, fleet: Fleet) -> None:
    """S4-040, S0-071, S0-073: on_orphan fail ends it, restart begins anew, resume keeps the finished task.

    The lost attempt is on record, and attempts are numbered without holes.
    """
    killed = fleet.start("orphans", address)
    for _ in WAYS:
        fleet.hear(lambda line: line.endswith("second 1"), by=killed)
    survivor = fleet.start("orphans", address)
    killed.kill()

    reported: set[str] = set()
    while len(reported) < len(WAYS):
        # A report may come twice, but never not at all.
        reported.add(fleet.hear(lambda line: " ended " in line, by=survivor, within=WITHIN))
    survivor.tell_to_stop()
    assert survivor.ended() == 0

    said = fleet.heard()
    assert sorted(reported) == [
        "fail ended failed_stale",
        "restart ended completed",
        "resume ended completed",
    ]
    assert [line for line in said if line.startswith("fail ") and " ended " not in line] == [
        "fail first 1",
        "fail second 1",
    ]
    assert [line for line in said if line.startswith("restart ") and " ended " not in line] == [
        "restart first 1",
        "restart second 1",
        "restart first 2",
        "restart second 2",
    ]
    assert [line for line in said if line.startswith("resume ") and " ended " not in line] == [
        "resume first 1",
        "resume second 1",
        "resume second 2",
    ]

    found = {
        len(whole.attempts): sorted((task, attempt.number, str(attempt.status)) for task, attempt in whole.attempts)
        for whole in all_records(address)
    }
    assert found == {
        2: [("first", 1, "success"), ("second", 1, "lost")],
        3: [("first", 1, "success"), ("second", 1, "lost"), ("second", 2, "success")],
        4: [
            ("first", 1, "success"),
            ("first", 2, "success"),
            ("second", 1, "lost"),
            ("second", 2, "success"),
        ],
    }
