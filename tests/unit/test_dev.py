"""dev.py: what it refuses, what it says, and when it makes the environment anew."""

import ast
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def dev(tmp_path: Path) -> ModuleType:
    """dev.py as it is in a repository of its own, which a test may spoil."""
    root = tmp_path / "a clone"
    shutil.copytree(ROOT / "requirements", root / "requirements")
    for name in ("dev.py", "pyproject.toml"):
        shutil.copy(ROOT / name, root / name)
    spec = importlib.util.spec_from_file_location("dev_in_a_clone", root / "dev.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def test_help_explains_every_command(dev: ModuleType) -> None:
    assert all(f"python3 dev.py {command} " in (dev.__doc__ or "") for command in dev.COMMANDS)


def test_an_unknown_command_is_answered_with_the_known_ones(dev: ModuleType) -> None:
    with pytest.raises(
        SystemExit, match=r"no command 'tset'; there are: run, test, check, docs, bench, audit, lock, setup"
    ):
        dev.main(["tset"])


def test_an_older_python_can_read_the_file_and_is_told_what_to_do() -> None:
    source = (ROOT / "dev.py").read_text()
    ast.parse(source, feature_version=(3, 7))

    older = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.version_info = (3, 10); exec({source!r})"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert older.returncode == 1
    assert older.stderr.startswith("dev.py: everytick needs Python 3.11 or newer")
    assert older.stderr.count("\n") == 1


def test_lock_files_as_they_are_give_no_cause_for_complaint(dev: ModuleType) -> None:
    assert dev.lock_complaint() == ""


def test_an_address_in_a_lock_file_is_refused(dev: ModuleType) -> None:
    append(dev.REQUIREMENTS / "bench.lock", "left @ file:///somewhere/left.whl\n")

    assert "requirements/bench.lock:" in dev.lock_complaint()
    assert "an address: left @ file:///somewhere/left.whl" in dev.lock_complaint()


@pytest.mark.parametrize(
    ("changed", "text", "stale"),
    [
        ("requirements/tools.in", "nox\n", ["tools"]),
        ("requirements/dev.in", "nox\n", ["dev"]),
        ("requirements/dev.lock", "# other versions\n", ["bench", "ray", "audit"]),
        ("requirements/servers.in", "nox\n", ["servers"]),
    ],
)
def test_a_lock_file_older_than_its_inputs_is_refused(
    dev: ModuleType, changed: str, text: str, stale: list[str]
) -> None:
    append(dev.ROOT / changed, text)

    assert dev.lock_complaint().splitlines() == [
        f"requirements/{name}.lock is older than what it is made of; run: python3 dev.py lock" for name in stale
    ]


def test_a_new_dependency_of_the_project_makes_the_lock_file_old(dev: ModuleType) -> None:
    project = dev.ROOT / "pyproject.toml"
    project.write_text(project.read_text().replace('"click>=8.2"', '"click>=8.3"'))

    assert "requirements/dev.lock is older" in dev.lock_complaint()


def test_settings_of_tools_make_neither_lock_files_nor_the_environment_old(dev: ModuleType) -> None:
    before = dev.wanted_stamp()
    append(dev.ROOT / "pyproject.toml", "\n[tool.other]\nsetting = 1\n")

    assert dev.lock_complaint() == ""
    assert dev.wanted_stamp() == before


@pytest.mark.parametrize("changed", ["tools.lock", "dev.lock", "servers.lock"])
def test_a_changed_lock_file_makes_the_environment_old(dev: ModuleType, changed: str) -> None:
    dev.PYTHON.parent.mkdir(parents=True)
    dev.PYTHON.touch()
    dev.STAMP.write_text(dev.wanted_stamp())
    assert dev.is_current()

    append(dev.REQUIREMENTS / changed, "# other versions\n")

    assert not dev.is_current()


def test_an_index_out_of_reach_is_said_in_one_line(dev: ModuleType) -> None:
    says_so = "import sys; sys.exit('Failed to fetch: dns error: Name or service not known')"

    with pytest.raises(SystemExit, match=r"^dev\.py: the package index cannot be reached; connect .* run this again$"):
        dev.install_step([sys.executable, "-c", says_so])


def test_any_other_failure_is_shown_whole(dev: ModuleType) -> None:
    with pytest.raises(SystemExit, match=r"(?s)^dev\.py: this failed: .*\nhash mismatch for left-1\.0$"):
        dev.install_step([sys.executable, "-c", "import sys; sys.exit('hash mismatch for left-1.0')"])


def test_a_failing_step_is_reported_with_its_words_and_a_good_one_in_a_line(
    dev: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dev.report("lint", *dev.timed(lambda: "line too long")) == 1
    assert dev.report("types", *dev.timed(lambda: "")) == 0

    failed, words, blank, good = capsys.readouterr().out.splitlines()
    assert failed.startswith("FAILED  lint")
    assert (words, blank) == ("line too long", "")
    assert good.startswith("ok      types")


LAW = """
from hypothesis import given
from hypothesis import strategies as st

@given(st.integers(0, 2**64))
def test_law(number):
    print("example", number)
    assert {holds}
"""


@pytest.fixture
def law(dev: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Write a law that pytest finds in the clone, with the settings of this repository."""
    monkeypatch.setattr(dev, "environment", lambda: sys.executable)
    shutil.copytree(ROOT / "tests" / "servers", dev.ROOT / "tests" / "servers")
    for name in ("conftest.py", "hanging.py", "order.py"):
        shutil.copy(ROOT / "tests" / name, dev.ROOT / "tests" / name)

    def write(holds: str) -> None:
        (dev.ROOT / "tests" / "test_law.py").write_text(LAW.format(holds=holds))

    return write


def examples(dev: ModuleType, capfd: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    dev.main(["test", *arguments, "-s", "tests/test_law.py"])
    return [line for line in capfd.readouterr().out.splitlines() if line.startswith("example")]


def test_the_examples_are_fixed_and_new_ones_are_explored_on_demand(
    dev: ModuleType, law: Callable[..., None], capfd: pytest.CaptureFixture[str]
) -> None:
    """A change is judged by what it changes; new examples are looked for on purpose."""
    law(holds="True")
    fixed = [examples(dev, capfd) for _ in range(2)]
    explored = examples(dev, capfd, "--explore")
    assert len(fixed[0]) > 50
    assert fixed[0] == fixed[1] != explored


def test_what_was_explored_and_failed_is_told_how_to_be_kept(
    dev: ModuleType, law: Callable[..., None], capfd: pytest.CaptureFixture[str]
) -> None:
    law(holds="number < 100")
    assert dev.main(["test", "--explore", "tests/test_law.py"]) == 1
    assert "write it above the test as @example" in capfd.readouterr().err
    assert list((dev.ROOT / ".hypothesis" / "examples").iterdir())


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}', 0, "1 packages, 0 affected, 0 not answered"),
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1"}]}]}', 1, "a 1: PYSEC-1"),
        ('{"dependencies": [{"name": "a", "skip_reason": "?"}]}', 1, "the database does not know a"),
        ("Traceback: connection refused", 1, "nothing was audited; run this again"),
    ],
)
def test_an_audit_is_good_only_if_every_package_was_asked_about(
    dev: ModuleType, capsys: pytest.CaptureFixture[str], answer: str, code: int, said: str
) -> None:
    """S18: a registry that knows no advisories is not taken for one that has none to tell."""
    done = subprocess.CompletedProcess([], 0, f"noise\n{answer}\n")

    assert dev.judge_audit("dev", done) == code
    assert said in capsys.readouterr().out
