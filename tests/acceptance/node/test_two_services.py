"""Two services that are both called `main` share a store, each in processes of its own (C-42, L3b)."""

import pytest

from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import query


def in_service(address: str) -> set[str]:
    """The jobs that are not removed, as people see them in SQL."""
    schema = "" if address.startswith("sqlite") else "everytick."
    return {name for (name,) in query(address, f"select name from {schema}jobs where removed_at is null")}


def test_two_services_of_one_name_keep_each_others_jobs(fleet: Fleet, address: str) -> None:
    """C-42, L3b: the second says what the first defines, and both go on; also when either starts again."""
    one = fleet.start("service", address, "main", "job1", "both")
    fleet.hear("ran job1", by=one)
    two = fleet.start("service", address, "main", "job2", "both")
    fleet.hear_error("defines 'job1', which this program does not", by=two)
    fleet.hear("ran job2", by=two)
    for _ in range(2):
        fleet.hear("ran job1", by=one)
        fleet.hear("ran job2", by=two)
    assert in_service(address) == {"job1", "job2", "both"}

    one.tell_to_stop()
    assert one.ended() == 0
    again = fleet.start("service", address, "main", "job1", "both")
    fleet.hear_error("defines 'job2', which this program does not", by=again)
    fleet.hear("ran job1", by=again)
    fleet.hear("ran job2", by=two)
    assert in_service(address) == {"job1", "job2", "both"}


def test_the_jobs_of_a_service_that_is_gone_for_good_retire(fleet: Fleet, address: str) -> None:
    """C-42: no living node defines what the start of the other left out; the janitor of any node removes it."""
    one = fleet.start("service", address, "main", "job1", "both")
    fleet.hear("ran job1", by=one)
    two = fleet.start("service", address, "main", "job2", "both")
    fleet.hear("ran job2", by=two)
    one.tell_to_stop()
    assert one.ended() == 0

    # Its janitor looks at its start; that of `two` looks once a minute, and may have been first.
    unrelated = fleet.start("service", address, "other", "job3")
    fleet.hear("ran job3", by=unrelated)
    fleet.wait_until(lambda: in_service(address) == {"job2", "job3", "both"}, "job1 is removed")
    fleet.hear("ran job2", by=two)


def test_a_deploy_that_leaves_a_job_out_removes_it(fleet: Fleet, address: str) -> None:
    """C-22, C-42: the old process has ended before the new one starts."""
    old = fleet.start("service", address, "main", "goes", "stays")
    fleet.hear("ran goes", by=old)
    old.tell_to_stop()
    assert old.ended() == 0
    new = fleet.start("service", address, "main", "stays")
    fleet.hear("ran stays", by=new)
    assert in_service(address) == {"stays"}


def test_a_rolling_deploy_removes_a_job_once_the_last_old_process_has_ended(fleet: Fleet, address: str) -> None:
    """C-42: as long as one lives that defines it, it runs there."""
    old = fleet.start("service", address, "main", "goes", "stays")
    fleet.hear("ran goes", by=old)
    new = fleet.start("service", address, "main", "stays")
    fleet.hear_error("defines 'goes', which this program does not", by=new)
    fleet.hear("ran goes", by=old)
    old.tell_to_stop()
    assert old.ended() == 0
    second = fleet.start("service", address, "main", "stays")
    fleet.wait_until(lambda: in_service(address) == {"stays"}, "the job that was left out is removed")
    new.tell_to_stop()
    assert new.ended() == 0
    # A process that runs a job has its signal handlers.
    fleet.hear("ran stays", by=second)
    second.tell_to_stop()
    assert second.ended() == 0


@pytest.mark.slow
def test_the_jobs_of_a_service_that_was_killed_retire(fleet: Fleet, address: str) -> None:
    """C-42: it said no goodbye. The janitor of another node removes its jobs once it has been silent for long enough.

    A janitor looks once a minute, after `node_timeout` of silence: nothing can be moved in real processes.
    """
    one = fleet.start("service", address, "main", "job1", "both")
    fleet.hear("ran job1", by=one)
    two = fleet.start("service", address, "main", "job2", "both")
    fleet.hear_error("defines 'job1', which this program does not", by=two)
    fleet.hear("ran job2", by=two)
    one.kill()
    assert in_service(address) == {"job1", "job2", "both"}

    fleet.wait_until(lambda: in_service(address) == {"job2", "both"}, "job1 is removed", within=240)
    fleet.hear_error("job 'job1' is removed, since no living node defines it", by=two)
    fleet.hear("ran job2", by=two)
    fleet.hear("ran both", by=two)
