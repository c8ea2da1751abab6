"""One SQLite file and several users of it: no one of them takes it away from another."""

import sys
from contextlib import suppress
from pathlib import Path

from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import query


def test_two_applications_of_one_process_go_on_while_commands_come_and_go(fleet: Fleet, tmp_path: Path) -> None:
    """F4, S0-058: a command that closes the file last of its own process leaves the log of the others alone."""
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


def _open_files(process: int) -> list[str]:
    """Return the names of the files that a process has open, where the system tells."""
    found = list[str]()
    folder = Path(f"/proc/{process}/fd")
    for each in folder.iterdir() if folder.exists() else ():
        with suppress(FileNotFoundError):  # closed meanwhile
            found.append(str(each.readlink()))
    return found
