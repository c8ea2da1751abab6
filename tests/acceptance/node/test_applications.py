"""Several applications on one store, each in processes of its own."""

from tests.acceptance.node.conftest import ON_REDIS_TOO
from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import query


def test_an_application_that_was_down_catches_up_though_another_was_up(fleet: Fleet, address: str) -> None:
    """A3, C-41: its outage is its own, and its recovery decides when it is back."""
    first = fleet.start("one_of_two", address, "a")
    other = fleet.start("one_of_two", address, "b")
    fleet.hear("ran a", by=first)
    fleet.hear("ran b", by=other)
    first.tell_to_stop()
    assert first.ended() == 0
    for _ in range(5):
        fleet.hear("ran b", by=other)

    again = fleet.start("one_of_two", address, "a")
    for _ in range(5):
        fleet.hear("ran a", by=again)

    schema = "" if address.startswith("sqlite") else "everytick."
    [(late,)] = query(address, f"select count(*) from {schema}occurrences where job = 'job of a' and late")
    assert late >= 2
    assert query(address, f"select why from {schema}skipped_spans where job = 'job of a'") == []


@ON_REDIS_TOO
def test_two_applications_with_one_name_of_a_job_run_each_its_own_function(fleet: Fleet, address: str) -> None:
    """A4, C-42: the second leaves the job to its owner, says so with both names, and runs none of it.

    Its node is up and looks at the store all the while, also when the owner has ended.
    """
    owner = fleet.start("one_of_two", address, "a", "shared")
    fleet.hear("ran a", by=owner)
    second = fleet.start("one_of_two", address, "b", "shared")
    for owned_by in ("code:a", "code:b"):
        fleet.hear_error(owned_by, by=second)
    for _ in range(3):
        fleet.hear("ran a", by=owner)
    owner.tell_to_stop()
    assert owner.ended() == 0
    fleet.hear_for(1.5)
    second.tell_to_stop()
    assert second.ended() == 0

    assert {line for _, line in fleet.lines if line.startswith("ran")} == {"ran a"}
