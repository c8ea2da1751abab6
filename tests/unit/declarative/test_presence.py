"""The sign of life of an instance, seen from this process and from others."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from everytick.declarative import presence

PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from everytick.declarative import presence

async def live():
    presence.show(Path(sys.argv[1]), "theirs")
    if sys.argv[2] == "forks" and os.fork() == 0:
        os.write(1, b"child\\n")
        sys.stdin.read()
        os._exit(0)
    os.write(1, b"shown\\n")
    sys.stdin.readline()
    presence.withdraw("theirs")

asyncio.run(live())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store.db-instances"


@pytest.fixture
def process(folder: Path, request: pytest.FixtureRequest) -> Iterator["subprocess.Popen[str]"]:
    """Another process that shows an instance called `theirs`."""
    how = getattr(request, "param", "alone")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as made:
        assert made.stdout is not None
        lines = {made.stdout.readline().split()[0] for _ in range(2 if how == "forks" else 1)}
        assert "shown" in lines
        yield made
        made.kill()


def test_a_process_that_lives_holds_its_lock_and_one_that_was_killed_does_not(
    folder: Path, process: "subprocess.Popen[str]"
) -> None:
    """C-43: known at once; that several look changes nothing."""
    assert [presence.is_gone(folder, "theirs") for _ in range(3)] == [False] * 3
    process.kill()
    process.wait(60)
    assert [presence.is_gone(folder, "theirs") for _ in range(3)] == [True] * 3


@pytest.mark.parametrize("process", ["forks"], indirect=True)
def test_a_child_that_was_forked_does_not_speak_for_its_parent(folder: Path, process: "subprocess.Popen[str]") -> None:
    """C-43: multiprocessing forks, and its children may outlive a node that was killed."""
    assert presence.is_gone(folder, "theirs") is False
    process.kill()
    process.wait(60)
    assert presence.is_gone(folder, "theirs") is True


def test_one_that_stopped_leaves_nothing(folder: Path, process: "subprocess.Popen[str]") -> None:
    """C-43."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.wait(60) == 0
    assert presence.is_gone(folder, "theirs") is None
    assert not folder.exists()


def test_nothing_is_known_of_instances_of_other_hosts(folder: Path, process: "subprocess.Popen[str]") -> None:
    """C-43: a folder may be shared by hosts that do not see each other's locks."""
    process.kill()
    process.wait(60)
    assert presence.is_gone(folder, "theirs") is True
    (folder / "theirs.lock").write_text("another host")
    assert presence.is_gone(folder, "theirs") is None
    assert presence.is_gone(folder, "never seen") is None
    assert presence.is_gone(None, "never seen") is None


def test_an_instance_of_this_process_lives_as_long_as_its_loop(folder: Path) -> None:
    """C-43: an instance ends with asyncio.run, also without a stop."""

    async def show() -> None:
        presence.show(folder, "mine")
        assert presence.is_gone(folder, "mine") is False

    asyncio.run(show())
    assert presence.is_gone(folder, "mine") is True
    presence.withdraw("mine")
    assert presence.is_gone(folder, "mine") is None


async def test_an_instance_that_dies_alone_frees_its_lock(folder: Path) -> None:
    """C-43: as the end of its process would."""
    presence.show(folder, "mine")
    presence.die("mine")
    assert presence.is_gone(folder, "mine") is True
    presence._here.pop("mine")
    assert presence.is_gone(folder, "mine") is True
    # And it may come back under its name.
    presence.show(folder, "mine")
    assert presence.is_gone(folder, "mine") is False
    presence.withdraw("mine")


async def test_where_no_lock_can_be_held_nothing_is_known(tmp_path: Path) -> None:
    """C-43: then the silence tells."""
    (tmp_path / "a file").touch()
    presence.show(tmp_path / "a file", "mine")
    presence._here.pop("mine")
    assert presence.is_gone(tmp_path / "a file", "mine") is None


async def test_files_of_the_dead_are_deleted_after_a_day(folder: Path) -> None:
    """They are of no use then, and there may be many."""
    for name in ("old", "fresh", "living"):
        presence.show(folder, name)
    for name in ("old", "fresh"):
        presence.die(name)
        presence._here.pop(name)
    for name in ("old", "living"):
        os.utime(folder / f"{name}.lock", (0, 0))
    presence.show(folder, "mine")
    assert {each.removesuffix(".lock") for each in os.listdir(folder)} == {"fresh", "living", "mine"}
    for name in ("living", "mine"):
        presence.withdraw(name)
