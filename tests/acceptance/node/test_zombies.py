"""A node that was frozen for longer than its silence is borne: it may finish, but it cannot record."""

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from tests.acceptance.node.conftest import ON_REDIS_TOO
from tests.acceptance.node.fleet import Fleet, freeze
from tests.acceptance.node.records import all_records


@contextmanager
def nobody_writing(address: str) -> Iterator[None]:
    """Let no node be in the middle of a write: a frozen process keeps the lock of the file."""
    if not address.startswith("sqlite"):
        yield
        return
    with closing(sqlite3.connect(address.removeprefix("sqlite:///"), timeout=30, isolation_level=None)) as db:
        db.execute("begin immediate")
        yield
        db.execute("rollback")


@ON_REDIS_TOO
def test_a_frozen_node_that_wakes_up_changes_no_record_of_what_was_taken_from_it(address: str, fleet: Fleet) -> None:
    """S0-072, S4-049: its occurrence was taken over with a higher fence and run to its end, which stays as it is."""
    zombie = fleet.start("zombie", address)
    fleet.hear("began 1", by=zombie)
    with nobody_writing(address):
        freeze(zombie)
    survivor = fleet.start("zombie", address)
    fleet.hear("began 2", by=survivor)
    fleet.hear("ended completed", by=survivor)
    before = all_records(address)

    zombie.process.send_signal(signal.SIGCONT)
    zombie.process.send_signal(signal.SIGUSR1)
    fleet.hear("over 1", by=zombie)
    zombie.tell_to_stop()
    survivor.tell_to_stop()

    assert [zombie.ended(), survivor.ended()] == [0, 0]
    assert all_records(address) == before
    [whole] = before
    assert whole.occurrence.status == "completed"
    assert [(each.number, str(each.status)) for _, each in whole.attempts] == [(1, "lost"), (2, "success")]
