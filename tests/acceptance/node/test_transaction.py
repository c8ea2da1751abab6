"""A task's own writes and its success: together or not at all, also when the process dies between them."""

from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import all_records, query

SECONDS_UNTIL_TAKEN_OVER = 4
"""A node is silent after two, and the reaper looks twice a second."""


def test_what_was_written_before_a_kill_is_not_there_and_the_next_attempt_writes_it_once(
    address: str, fleet: Fleet
) -> None:
    """Killed between the write and the commit, nothing of it is kept."""
    make_table(address)
    killed = fleet.start("transaction", address, "before")
    fleet.hear("written 1", by=killed)
    killed.kill()
    assert query(address, "select count(*) from effect") == [(0,)]

    survivor = fleet.start("transaction", address, "before")
    fleet.hear("ended completed", by=survivor)
    survivor.tell_to_stop()
    assert survivor.ended() == 0

    assert query(address, "select count(*) from effect") == [(1,)]
    assert attempts_of_writes(address) == [(1, "lost"), (2, "success")]


def test_what_was_committed_before_a_kill_is_never_done_again(address: str, fleet: Fleet) -> None:
    """S0-072; the success was in the same commit, so on_orphan restart has nothing to restart."""
    make_table(address)
    killed = fleet.start("transaction", address, "after")
    fleet.hear("committed 1", by=killed)
    killed.kill()

    survivor = fleet.start("transaction", address, "after")
    for _ in range(SECONDS_UNTIL_TAKEN_OVER):
        fleet.hear("second", by=survivor)
    survivor.tell_to_stop()
    assert survivor.ended() == 0

    assert [line for line in fleet.heard() if line.startswith("committed")] == ["committed 1"]
    assert query(address, "select count(*) from effect") == [(1,)]
    assert attempts_of_writes(address) == [(1, "success")]


def attempts_of_writes(address: str) -> list[tuple[int, str]]:
    return [
        (attempt.number, str(attempt.status))
        for whole in all_records(address)
        for task, attempt in whole.attempts
        if task == "write"
    ]


def make_table(address: str) -> None:
    """There is a table of the user's own beside the store's, which are made first."""
    assert all_records(address) == []
    query(address, "create table effect (fence integer not null)")
