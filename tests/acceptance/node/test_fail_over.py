"""A server that crashes, and an older copy of it that answers in its place, while real nodes run."""

import signal

from tests.acceptance.node.asking import ask
from tests.acceptance.node.fleet import Fleet, freeze
from tests.acceptance.node.records import query
from tests.acceptance.node.stoppable import StoppableServer

CROWD = 48
"""More than 32: a sequence of PostgreSQL skips up to so many numbers in a crash, and the keys must meet."""


def test_no_end_is_written_into_another_occurrence_after_a_fail_over(server: StoppableServer, fleet: Fleet) -> None:
    """F-12: the copy gives the keys of what it does not know to other occurrences, and each keeps its own.

    The older node stands still from before the crash until the copy has given those keys away, and then tells of
    the ends of what it ran.
    """
    older = fleet.start("asked", server.address)
    fleet.hear("ended short completed", by=older)
    copy = server.copy()
    ask(server.address, "slow", CROWD)
    for _ in range(CROWD):
        fleet.hear("began slow", by=older)
    before = _keys(server.address, "slow")
    freeze(older)
    server.fail_over(copy)
    newer = fleet.start("asked", server.address)
    asked = ask(server.address, "other", CROWD)
    for _ in range(CROWD):
        fleet.hear("began other", by=newer)
    assert before & _keys(server.address, "other"), "the attack was none: no key was given away twice"

    older.process.send_signal(signal.SIGUSR1)
    older.process.send_signal(signal.SIGCONT)
    fleet.hear("over slow", by=older)
    older.tell_to_stop()
    assert older.ended() == 0
    newer.process.send_signal(signal.SIGUSR2)
    for _ in range(CROWD):
        fleet.hear("ended other completed", by=newer)
    newer.tell_to_stop()
    assert newer.ended() == 0

    results = query(server.address, "select occurrence_id, result from everytick.task_runs where job = 'other'")
    assert sorted(results) == sorted((each, f'"result of {each}"') for each in asked)


def _keys(address: str, job: str) -> set[int]:
    """The keys by which the store knows the occurrences of this job, which are not visible outside of it."""
    sql = "select o.handle from everytick.occurrence o join everytick.job j using (job_key) where j.name = '{}'"
    return {key for (key,) in query(address, sql.format(job))}
