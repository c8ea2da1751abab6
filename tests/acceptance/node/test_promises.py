"""A job whose only node is killed: nodes of another application tell that it breaks its promise."""

from pathlib import Path

import pytest

from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import query


@pytest.mark.parametrize("address", ["postgres"], indirect=True)
def test_the_nodes_of_another_application_tell_once_of_a_breach_and_of_its_end(
    fleet: Fleet, address: str, tmp_path: Path
) -> None:
    """A18, A19: kill -9 of the job's only node; two nodes that cannot run it find the breach, and one tells."""
    told = tmp_path / "told"
    owner = fleet.start("promises", address, "shop", told)
    fleet.hear("ran shop", by=owner)
    others = [fleet.start("promises", address, "bank", told) for _ in range(2)]
    fleet.hear("ran bank")
    owner.kill()

    fleet.wait_until(lambda: _lines(told, "shop") == ["job of shop broken"], "that the promise is broken")
    again = fleet.start("promises", address, "shop", told)
    fleet.hear("ran shop", by=again)
    fleet.wait_until(lambda: len(_lines(told, "shop")) > 1, "that it is kept again")
    for node in (again, *others):
        node.tell_to_stop()
        assert node.ended() == 0

    assert _lines(told, "shop") == ["job of shop broken", "job of shop kept"]
    sql = "select promise, ended_at > due_at, count > 1 from everytick.breaches where job = 'job of shop'"
    assert query(address, sql) == [("start_by", True, True)]
    said = "".join(node.errors() for node in (again, *others))
    assert said.count("promise broken: start_by: the start for") == 1


def _lines(told: Path, job: str) -> list[str]:
    return [line for line in told.read_text().splitlines() if job in line] if told.exists() else []
