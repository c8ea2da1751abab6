"""Several applications on one store, each in processes of its own."""

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
