"""Two living instances in processes of their own: a rolling deploy, a kill, a roll back.

Where a test waits for whole minutes, time passes four times as fast in its processes.
"""

import os
import signal
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.acceptance.node.fleet import Fleet, Node

PROGRAMS = "tests.acceptance.declarative.programs"
WITHIN = 90.0
"""Seconds: a minute must have come in this time, and another instance must have been noticed."""

_numbers = count(1)


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return f"{request.getfixturevalue('postgres').address}#instances_{os.getpid()}_{next(_numbers)}"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with Fleet(tmp_path) as made:
        yield made


def instance(fleet: Fleet, address: str, *tasks: str, begins: bool = False, is_fast: bool = False) -> Node:
    """Start an instance; when this returns it is initialized, and if it `begins` its callback has begun."""
    program = [f"{PROGRAMS}.fast", f"{PROGRAMS}.instance", "fast"] if is_fast else [f"{PROGRAMS}.instance", "real"]
    made = fleet.run([sys.executable, "-m", *program, address, *tasks])
    awaited = {"initialized", "began"} if begins else {"initialized"}
    while awaited:
        awaited.discard(fleet.hear(lambda line: line.split()[0] in awaited, by=made, within=WITHIN).split()[0])
    return made


def said(fleet: Fleet, *words: str) -> list[tuple[str, str]]:
    """Return who said lines that begin so, in the order in which they were heard."""
    fleet.heard()
    return [(name, line) for name, line in fleet.lines if line.startswith(words)]


def test_what_a_living_process_runs_goes_on_when_a_newer_one_initializes(fleet: Fleet, address: str) -> None:
    """S2-007, S2-026, S2-059, C-43: nothing is canceled or doubled; the next run is the newer one's."""
    older = instance(fleet, address, "a", begins=True, is_fast=True)
    newer = instance(fleet, address, "a", is_fast=True)
    older.tell_to_stop(signal.SIGUSR1)
    fleet.hear("event TaskRunCompleted a", by=older)
    fleet.hear("began a", by=newer, within=WITHIN)
    newer.tell_to_stop(signal.SIGUSR1)
    fleet.hear("event TaskRunCompleted a", by=newer)

    assert said(fleet, "began", "ended", "canceled")[:4] == [
        (older.name, "began a Running"),
        (older.name, "ended a"),
        (newer.name, "began a Running"),
        (newer.name, "ended a"),
    ]
    for each in (older, newer):
        each.tell_to_stop()
        assert each.ended() == 0


def test_stop_waits_for_its_callbacks_though_a_newer_process_initializes(fleet: Fleet, address: str) -> None:
    """S2-064, C-43: a rolling deploy."""
    older = instance(fleet, address, "a", begins=True)
    older.tell_to_stop()
    fleet.hear("event SchedulerStopRequested", by=older)
    newer = instance(fleet, address, "a")
    # A minute comes: the newer instance plans it, and must let it wait.
    older.tell_to_stop(signal.SIGUSR1)
    assert older.ended() == 0
    assert [line for name, line in said(fleet, "began", "ended", "canceled", "stopped") if name == older.name] == [
        "began a Running",
        "ended a",
        "stopped",
    ]
    newer.tell_to_stop(signal.SIGUSR1)
    newer.tell_to_stop()
    assert newer.ended() == 0


def test_what_a_killed_process_ran_is_begun_at_once_by_the_newer_one(fleet: Fleet, address: str) -> None:
    """S2-059, C-43: the kill is noticed by the lock that it leaves, not by twenty seconds of silence."""
    older = instance(fleet, address, "a", begins=True)
    newer = instance(fleet, address, "a")
    older.kill()
    fleet.hear("began a", by=newer, within=15)
    assert [line for _, line in said(fleet, "canceled", "ended")] == []
    newer.tell_to_stop(signal.SIGUSR1)
    newer.tell_to_stop()
    assert newer.ended() == 0


def test_the_older_process_goes_on_with_its_tasks_when_the_newer_was_killed(fleet: Fleet, address: str) -> None:
    """L3, C-43: a service of the same name came and went."""
    older = instance(fleet, address, "x", is_fast=True)
    older.tell_to_stop(signal.SIGUSR1)
    fleet.hear("event TaskRunCompleted x", by=older)
    newer = instance(fleet, address, "y", begins=True, is_fast=True)
    newer.kill()
    fleet.hear("event TaskRunCompleted x", by=older, within=WITHIN)
    older.tell_to_stop()
    assert older.ended() == 0
    assert "is gone: callbacks are started here again" in older.complaints()
