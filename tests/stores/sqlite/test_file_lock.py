"""Standing in line to write: in order, past the dead and the frozen, and without a line where there is none."""

import asyncio
import errno
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from everytick.stores.sqlite import file_lock
from everytick.stores.sqlite.file_lock import Turn
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import job, put
from tests.stores.sqlite.processes import begin, finished, killed

LONG = 60.0

IN_LINE = """
from everytick.stores.sqlite.file_lock import Turn
with Turn(path).line():
    print("first", flush=True)
    sys.stdin.readline()
    if sys.argv[2] == "die": die()
"""


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process waits in line until it is the first."""
    monkeypatch.setattr(file_lock, "IN_LINE_SECONDS", LONG)


@pytest.fixture
def turns(path: Path) -> Iterator[tuple[Turn, Turn]]:
    """Two places in one line: a lock belongs to the opened file, as between processes."""
    made = Turn(path), Turn(path)
    yield made
    for each in made:
        each.close()


class Waiting:
    """A thread that stands in a line, and says when it is the first."""

    def __init__(self, in_line: Turn) -> None:
        self.is_first = Event()
        self._may_leave = Event()
        self._line = in_line
        self._thread = Thread(target=self._stand)
        self._thread.start()

    def _stand(self) -> None:
        with self._line.line():
            self.is_first.set()
            assert self._may_leave.wait(LONG)

    def leave(self) -> None:
        self._may_leave.set()
        self._thread.join()


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.usefixtures("patient")
def test_one_after_the_other_is_first(turns: tuple[Turn, Turn], same: bool) -> None:
    """Threads of one process and other processes stand in the same line."""
    first = Waiting(turns[0])
    assert first.is_first.wait(LONG)
    second = Waiting(turns[0] if same else turns[1])
    assert not second.is_first.wait(0.05)
    first.leave()
    assert second.is_first.wait(LONG / 2)
    second.leave()


@pytest.mark.usefixtures("patient")
async def test_the_place_of_a_process_that_was_killed_is_free(opened: SqliteStore, path: Path) -> None:
    other = begin(IN_LINE, path, "die")
    assert other.stdout is not None
    assert await asyncio.to_thread(other.stdout.readline) == "first\n"
    waiting = asyncio.create_task(put(opened, job()))
    await asyncio.to_thread(killed, other, "\n")
    assert (await waiting).changed


async def test_a_frozen_process_in_line_is_passed(
    opened: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is only a courtesy: a process that cannot write does not block others."""
    monkeypatch.setattr(file_lock, "IN_LINE_SECONDS", 0.05)
    other = begin(IN_LINE, path, "leave")
    assert other.stdout is not None
    assert await asyncio.to_thread(other.stdout.readline) == "first\n"
    for name in ("a", "b"):
        assert (await put(opened, job(name))).changed
    await asyncio.to_thread(finished, other, "\n")
    monkeypatch.setattr(file_lock, "IN_LINE_SECONDS", LONG)
    assert (await put(opened, job("c"))).changed


def test_one_frozen_process_costs_one_wait_and_one_thread(
    turns: tuple[Turn, Turn], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each write would take a second while a process in line is stopped, and leave a thread behind."""
    frozen, other = Waiting(turns[0]), turns[1]
    assert frozen.is_first.wait(LONG)
    before = threading.active_count()
    monkeypatch.setattr(file_lock, "IN_LINE_SECONDS", 0.05)
    with other.line():
        pass
    monkeypatch.setattr(file_lock, "IN_LINE_SECONDS", LONG)
    began = time.monotonic()
    for _ in range(20):
        with other.line():
            pass
    assert time.monotonic() - began < LONG
    assert threading.active_count() == before + 1
    passed = other._passed
    assert passed is not None
    frozen.leave()
    assert passed.wait(LONG)
    again = Waiting(other)
    assert again.is_first.wait(LONG)
    behind = Waiting(turns[0])
    assert not behind.is_first.wait(0.05)
    again.leave()
    assert behind.is_first.wait(LONG / 2)
    behind.leave()


class _Unlockable:
    """A file system that knows no such locks."""

    LOCK_EX = LOCK_NB = LOCK_UN = 0

    @staticmethod
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")


@pytest.mark.parametrize("locks", [None, _Unlockable])
async def test_without_a_line_writers_take_turns_as_before_and_it_is_said_once(
    opened: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, locks: object
) -> None:
    monkeypatch.setattr(file_lock, "fcntl", locks)
    with caplog.at_level(logging.WARNING):
        for name in ("a", "b"):
            assert (await put(opened, job(name))).changed
    [said] = caplog.records
    assert "store.db-turn cannot be locked" in said.getMessage()
    assert "take turns at random" in said.getMessage()
