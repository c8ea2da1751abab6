"""One SQLite file and several processes: none of them blocks another for long."""

import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import query


def test_two_applications_of_one_process_go_on_while_commands_come_and_go(fleet: Fleet, tmp_path: Path) -> None:
    """F4, S0-058: a command that closes the file last of its own process leaves the log of the others alone.

    Only real processes can show this, so the simulated fleet does not open a store twice. A process loses its locks
    on a file when it closes any handle of it, and locks of one process never stand in its own way: the fault needs
    two stores in one process and a second process beside them. The simulated fleet is one process on a clock of its
    own, and a store on a file has threads that wait for real time.
    """
    path = tmp_path / "store.db"
    address = f"sqlite:///{path}"
    both = fleet.start("two", address)
    for job in ("of_the_first", "of_the_second"):
        fleet.hear(f"ran {job} ", by=both)

    for _ in range(2):
        listing = fleet.run([sys.executable, "-m", "everytick", "--store", address, "list"])
        assert listing.ended() == 0
        for job in ("of_the_first", "of_the_second"):
            for _ in range(2):
                fleet.hear(f"ran {job} ", by=both)

    assert [name for name in _open_files(both.process.pid) if "(deleted)" in name] == []
    both.kill()
    assert query(address, "pragma integrity_check") == [("ok",)]


@pytest.mark.parametrize("deed", ["replace", "delete"])
def test_nodes_whose_file_is_replaced_or_deleted_stop_and_make_no_other(
    fleet: Fleet, tmp_path: Path, deed: str
) -> None:
    """F-11: none goes on with a file that has no name any more, and none runs an instant of the new one."""
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    address = f"sqlite:///{path}"
    nodes = [fleet.start("writing", address) for _ in range(2)]
    for node in nodes:
        fleet.hear("ran quick", by=node)
    shutil.copy(path, copy)
    if deed == "replace":
        copy.rename(path)
    else:
        path.unlink()
    for name in ("store.db-wal", "store.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)

    for node in nodes:
        assert node.ended() != 0
        assert node.complaints().count(f"{path} is gone: ") >= 1
        assert "start this node again" in node.complaints()
    assert path.exists() is (deed == "replace")


def _open_files(process: int) -> list[str]:
    """Return the names of the files that a process has open, where the system tells."""
    found = list[str]()
    folder = Path(f"/proc/{process}/fd")
    for each in folder.iterdir() if folder.exists() else ():
        with suppress(FileNotFoundError):  # closed meanwhile
            found.append(str(each.readlink()))
    return found
