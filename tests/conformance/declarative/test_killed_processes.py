"""Crashes with real processes: a scheduler is killed in the middle of things, and another begins on its store.

This file is about everytick's stores; other implementations are crashed by their adapter.
"""

import os
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from tests.acceptance.node.fleet import Fleet, Node
from tests.conformance.declarative.test_real_time_bounds import MANY

BEGIN = datetime(2026, 3, 3, 12, 0, 10, tzinfo=UTC)
PROGRAM = "tests.conformance.declarative.programs.life"
SOON = timedelta(seconds=1)

_numbers = count(1)


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return f"{request.getfixturevalue('postgres').address}#killed_{os.getpid()}_{next(_numbers)}"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with Fleet(tmp_path) as made:
        yield made


def life(
    fleet: Fleet, address: str, begin: datetime, cron: str, *calls: str, up: float = 45, delay: str = "5m"
) -> Node:
    """Start a process; its calls do what they are told, then they succeed."""
    arguments = [address, begin.isoformat(), cron, delay, str(up), *calls]
    return fleet.run([sys.executable, "-m", PROGRAM, *arguments])


def told(fleet: Fleet, node: Node) -> list[tuple[datetime, str]]:
    """Return what the process has said, each thing with its virtual time."""
    fleet.heard()
    said = [line.split(" ", 1) for name, line in fleet.lines if name == node.name]
    return [(datetime.fromisoformat(at), what) for at, what in said]


def began(fleet: Fleet, node: Node) -> list[datetime]:
    return [at for at, what in told(fleet, node) if what.startswith("began")]


def events(fleet: Fleet, node: Node) -> list[str]:
    return [what.removeprefix("event ") for _, what in told(fleet, node) if what.startswith("event Task")]


def hear(fleet: Fleet, node: Node, what: str) -> datetime:
    """Wait until the process says this; return its virtual time."""
    line = fleet.hear(lambda line: line.split(" ", 1)[1].startswith(what), by=node)
    return datetime.fromisoformat(line.split(" ", 1)[0])


def test_orphaned_task_restarts_immediately_after_a_kill(fleet: Fleet, address: str) -> None:
    """S2-058, S2-059, S2-061, S2-070: killed within the callback; the next instance runs it at once, and once."""
    first = life(fleet, address, BEGIN, "0 12 * * *", "hang")
    hear(fleet, first, "began hang")
    first.kill()

    back = BEGIN + timedelta(seconds=5)
    second = life(fleet, address, back, "0 12 * * *")
    assert second.ended() == 0

    assert [at - back < SOON for at in began(fleet, second)] == [True]
    assert events(fleet, second) == ["TaskRunStarted", "TaskRunCompleted"]


@pytest.mark.parametrize("down", [timedelta(minutes=1), timedelta(days=30)], ids=str)
def test_no_make_up_execution_policy_at_most_one_run_after_a_kill(fleet: Fleet, address: str, down: timedelta) -> None:
    """S2-011, S2-067: killed in a run, down for any time, due every minute: one run, then the schedule."""
    first = life(fleet, address, BEGIN, "* * * * *", "ok", "ok", "hang", up=600)
    last = hear(fleet, first, "began hang")
    first.kill()

    back = (last + down).replace(second=20)
    second = life(fleet, address, back, "* * * * *", up=60)
    assert second.ended() == 0

    assert [at - back < SOON for at in began(fleet, second)] == [True, False]
    assert began(fleet, second)[1].replace(microsecond=0) == (back + timedelta(minutes=1)).replace(second=0)


def test_awaiting_retry_survives_a_kill(fleet: Fleet, address: str) -> None:
    """S2-021, S2-022, S2-067: the wait goes on where it was."""
    first = life(fleet, address, BEGIN, "0 12 * * *", "fail", up=1e9, delay="10m")
    hear(fleet, first, "event TaskRunFailed")
    first.kill()

    second = life(fleet, address, BEGIN + timedelta(minutes=4), "0 12 * * *", up=390, delay="10m")
    assert second.ended() == 0

    assert events(fleet, second) == ["TaskRetryStarted", "TaskRunCompleted"]
    assert timedelta(0) <= began(fleet, second)[0] - (BEGIN + timedelta(minutes=10)) < SOON


def test_recovery_from_crashes_at_any_moment_restores_a_consistent_state(fleet: Fleet, address: str) -> None:
    """S2-067, S2-011, S2-007: killed at random moments, six times; each return is exactly one run at once."""
    chance = random.Random(MANY)
    begin = BEGIN
    for _ in range(6):
        node = life(fleet, address, begin, "* * * * *", *["ok", "3", "fail", "20", "ok"] * 20, up=1e9, delay="25s")
        for _ in range(chance.randint(1, 20)):
            hear(fleet, node, "")
        node.kill()
        assert_one_run_at_once(fleet, node, begin)
        assert_never_beside_itself(fleet, node)
        begin = (max(at for at, _ in told(fleet, node)) + timedelta(hours=2)).replace(second=20)


def assert_one_run_at_once(fleet: Fleet, node: Node, begin: datetime) -> None:
    """The first life is new in its own minute, every later one has missed some."""
    at_once = [at for at, what in told(fleet, node) if what in ("event TaskRunStarted",) and at - begin < SOON]
    known = told(fleet, node)
    if known[-1][0] > begin + SOON:
        assert len(at_once) == 1


def assert_never_beside_itself(fleet: Fleet, node: Node) -> None:
    runs = 0
    for _, what in told(fleet, node):
        if what in ("event TaskRunStarted", "event TaskRetryStarted"):
            runs += 1
        elif what in ("event TaskRunCompleted", "event TaskRunFailed"):
            runs -= 1
        assert runs in (0, 1)
