"""Nothing in the repository tells on which machine, or through which registry, it was made."""

import re
import socket
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

from tests.tidy.tree import ROOT, files, lines, under

PUBLIC: list[str] = tomllib.loads((ROOT / "tests/tidy/hosts.toml").read_text())["public"]


def spelled(path: Path) -> str:
    """Return a pattern for a path of this machine; one as short as `/app` would be found by chance."""
    return rf"|{re.escape(str(path))}(?!\w)" if len(path.parts) > 2 else ""


# Folders in which people and build machines keep their clones, and those of this very machine.
PRIVATE_PATHS = re.compile(
    r"(?<![\w.~/-])(?:/(?:home|Users|root|work|workspace|builds?)/\w" + spelled(ROOT) + spelled(Path.home()) + ")"
)


def test_no_path_of_a_machine_stands_in_a_file() -> None:
    found = [f"{place}: {line}" for path in files() for place, line in lines(path) if PRIVATE_PATHS.search(line)]

    assert found == []


def test_the_name_of_this_machine_stands_in_no_file() -> None:
    # A short or common name would be found by chance.
    name = re.escape(socket.gethostname())
    told = re.compile(rf"\b{name}\b") if len(name) > 8 else re.compile(r"(?!)")

    assert [f"{place}: {line}" for path in files() for place, line in lines(path) if told.search(line)] == []


def test_links_lead_to_public_hosts_only() -> None:
    found = [
        f"{place}: {address}"
        for path in files()
        for place, line in lines(path)
        for address in re.findall(r"https?://[^\s\"'`<>)\]]+", line)
        if urlsplit(address).hostname not in PUBLIC
    ]

    assert found == []


def test_lock_files_hold_no_address() -> None:
    """Names, versions and hashes only: a lock file works with whatever index its reader uses."""
    locks = under("requirements/", suffix=".lock")
    found = [f"{place}: {line}" for path in locks for place, line in lines(path) if "://" in line or " @ " in line]

    assert len(locks) == 6
    assert found == []


def test_no_lock_format_that_writes_addresses_is_tracked() -> None:
    assert [path for path in files() if re.search(r"(^|/)(uv\.lock|pylock[^/]*\.toml)$", path)] == []
