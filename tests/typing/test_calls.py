"""The public API from the outside, as a type checker sees it: right calls pass, wrong ones fail."""

import json
import re
import subprocess
import sys
from pathlib import Path

CALLS = Path(__file__).with_name("calls.py")
IGNORED = re.compile(r"  # type: ignore\[(.+)\]$", re.MULTILINE)


def promised() -> dict[int, set[str]]:
    """Return the errors that the lines of the file promise."""
    found = ((number, IGNORED.search(line)) for number, line in enumerate(CALLS.read_text().splitlines(), 1))
    return {number: set(match[1].split(", ")) for number, match in found if match}


def told(folder: Path) -> dict[int, set[str]]:
    """Return the errors that mypy --strict finds once nothing is ignored."""
    bare = folder / "calls.py"
    bare.write_text(IGNORED.sub("", CALLS.read_text()))
    options = ["--strict", "--no-error-summary", "--hide-error-context", "--cache-dir", str(folder / "cache")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(bare)],
        cwd=CALLS.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    errors: dict[int, set[str]] = {}
    for line in done.stdout.splitlines():
        match = re.search(r"calls\.py:(\d+): error: .*\[([\w-]+)\]$", line)
        if match:
            errors.setdefault(int(match[1]), set()).add(match[2])
        assert match or ": note:" in line, line
    return errors


def test_a_wrong_argument_fails_mypy_and_a_right_one_does_not(tmp_path: Path) -> None:
    """A decorated function has its own signature, and its trigger that without the context."""
    expected = promised()
    assert len(expected) == 16
    assert told(tmp_path) == expected


def refused(folder: Path) -> set[int]:
    """Return the lines in which pyright finds an error."""
    bare, settings = folder / "calls.py", folder / "pyrightconfig.json"
    bare.write_text(IGNORED.sub("", CALLS.read_text()))
    root = CALLS.parents[2]
    extra = [str(root / "src")]
    settings.write_text(json.dumps({"include": ["calls.py"], "typeCheckingMode": "standard", "extraPaths": extra}))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "basedpyright",
            "--project",
            str(settings),
            "--pythonpath",
            sys.executable,
            "--outputjson",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert {each["severity"] for each in found} == {"error"}
    return {each["range"]["start"]["line"] + 1 for each in found}


def test_a_wrong_argument_fails_pyright_and_a_right_one_does_not(tmp_path: Path) -> None:
    """The same file, as editors read it."""
    assert refused(tmp_path) == set(promised())
