"""A node that fired without its store is killed once the store is back: what it ran is on record and is settled."""

import sqlite3
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from everytick.stores.base import Whole
from tests.acceptance.node.fleet import Fleet, Node
from tests.acceptance.node.records import all_records
from tests.acceptance.node.stoppable import StoppableServer


class LockableFile:
    """A store in a file that another process can lock."""

    def __init__(self, path: Path) -> None:
        self.address = f"sqlite:///{path}"
        self._path = path
        self._locked: sqlite3.Connection | None = None

    def stop(self) -> None:
        """No other process writes to it."""
        self._locked = sqlite3.connect(self._path, isolation_level=None, timeout=30)
        self._locked.execute("begin immediate")

    def start(self) -> None:
        """It can be written to."""
        assert self._locked is not None
        self._locked.execute("rollback")
        self._locked.close()


Place = StoppableServer | LockableFile


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "postgres":
        yield request.getfixturevalue("server")
        return
    yield LockableFile(tmp_path / "store.db")


def test_a_local_run_whose_process_was_killed_is_found_and_run_again(place: Place, fleet: Fleet) -> None:
    """C-28, S0-071: kill -9 after the store is back loses no record of what runs, and `on_orphan` holds for it."""
    killed = fleet.start("long_local", place.address, "held")
    fired = _through_an_outage(place, fleet, killed)
    handed_over = _until(fleet, lambda: _unverified(place.address, "running"))
    killed.kill()
    assert {_instant(each) for each in handed_over} & fired

    heir = fleet.start("long_local", place.address, "free")
    left = {_instant(each) for each in handed_over}
    while left:
        left.discard(int(fleet.hear("ended", by=heir).split()[1]))
    _until(fleet, lambda: len(_unverified(place.address, "completed")) >= len(handed_over))
    heir.tell_to_stop()
    assert heir.ended() == 0
    ids = {each.occurrence.id for each in handed_over}
    for whole in all_records(place.address):
        if whole.occurrence.id in ids:
            assert [(each.number, str(each.status)) for _, each in whole.attempts] == [(1, "lost"), (2, "success")]
    _assert_every_second_is_there(place.address)


def test_a_local_run_killed_before_the_store_is_back_is_made_up_for(place: Place, fleet: Fleet) -> None:
    """C-28: its runs are unknown, so its instants are decided by `recovery` like any that were missed."""
    killed = fleet.start("long_local", place.address, "held")
    fired = _through_an_outage(place, fleet, killed, survives=False)
    heir = fleet.start("long_local", place.address, "free")
    while fired:
        fired.discard(int(fleet.hear("ended", by=heir).split()[1]))
    heir.tell_to_stop()
    assert heir.ended() == 0
    _assert_every_second_is_there(place.address)


def _through_an_outage(place: Place, fleet: Fleet, node: Node, survives: bool = True) -> set[int]:
    """Let the store go away and come back; return the instants that began meanwhile."""
    for _ in range(6):
        # After a few seconds it knows what to go on with.
        fleet.hear("began", by=node)
    place.stop()
    fleet.hear("store_lost", by=node)
    fired = {int(fleet.hear("began", by=node).split()[1]) for _ in range(3)}
    if not survives:
        node.kill()
    place.start()
    if survives:
        fleet.hear("store_found", by=node)
    return fired


def _until(fleet: Fleet, found: "Callable[[], list[Whole] | bool]") -> list[Whole]:
    """Return what is found, once something is."""
    for _ in range(200):
        seen = found()
        if seen:
            return seen if isinstance(seen, list) else []
        fleet.hear_for(0.1)
    raise AssertionError("it did not come about")


def _unverified(address: str, status: str) -> list[Whole]:
    return [
        each for each in all_records(address) if each.occurrence.is_unverified and str(each.occurrence.status) == status
    ]


def _assert_every_second_is_there(address: str) -> None:
    instants = sorted(map(_instant, all_records(address)))
    assert {later - earlier for earlier, later in pairwise(instants)} == {1}


def _instant(whole: Whole) -> int:
    return int(whole.occurrence.scheduled_for.timestamp())
