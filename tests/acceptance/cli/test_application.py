"""Naming the application, and what is said where it cannot be had: one sentence, a way out, a code, no traceback."""

from pathlib import Path

import pytest

from tests.acceptance.cli.terminal import everytick


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run"], 2, "neither an application nor a folder of jobs was named: give -a module:object"),
        (["run", "shop.py"], 2, "an application is named with -a, as everytick run -a shop"),
        (["explain", "every", "5m"], 2, "write a schedule in quotes, as everytick explain 'every 5m'"),
        (["explain", "evry 5m"], 2, "did you mean 'every'?"),
        (["run", "-a", "shp:tick"], 2, "there is no module 'shp' here"),
        (["run", "-a", "shop.py"], 2, "write module:object, like shop:tick"),
        (["run", "-a", "shop:tock"], 2, "did you mean 'tick'"),
        (["run", "-a", "shop:nightly"], 2, "holds there a function, not an Everytick"),
        (["run", "-a", "json"], 2, "holds no Everytick"),
        (["run", "-a", "broken_one"], 65, 'broken_one.py:3: Invalid cron expression "61 * * * *": minute'),
        (["run", "-a", "raising"], 65, "raising.py:1: ZeroDivisionError: division by zero"),
        (["run", "-a", "unreadable"], 65, "unreadable.py:1: SyntaxError"),
        (["run", "--store", "sqlite:///jobs.db"], 2, "only an application or a folder of jobs can run"),
        (["run", "-a", "shop", "--slots", "0"], 2, "setting slots=0 must be a whole number"),
        (["run", "-a", "shop", "--slots", "few"], 2, "slots=few in --slots must be a whole number"),
        (["list", "-a", "far"], 69, "does not answer"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_sentence(folder: Path, arguments: list[str], code: int, said: str) -> None:
    (folder / "broken_one.py").write_text(
        "from everytick import Everytick\ntick = Everytick()\n@tick.job('61 * * * *')\ndef job(): ...\n"
    )
    (folder / "raising.py").write_text("1 / 0\n")
    (folder / "unreadable.py").write_text("def def\n")
    (folder / "far.py").write_text(
        "from everytick import Everytick\ntick = Everytick('postgresql://nobody@127.0.0.1:1/none')\n"
    )

    done = everytick(folder, *arguments)

    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_store_in_this_folder_is_offered_to_who_named_none(tmp_path: Path) -> None:
    """B34: the ten lines of the README make everytick.db, and `everytick list` is the next thing that people type."""
    (tmp_path / "everytick.db").touch()

    asked = everytick(tmp_path, "list")
    run = everytick(tmp_path, "run")

    assert asked.returncode == 2
    assert "everytick.db is in this folder: give --store sqlite:///everytick.db to use it; or" in asked.stderr
    assert run.returncode == 2
    assert "sqlite:///everytick.db" not in run.stderr, "a store alone cannot be run"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "; everytick init writes an example here"),
        (
            {"jobs.py": "from everytick import Everytick\n\ntick = Everytick()\n"},
            "jobs:tick is in this folder: name it with -a",
        ),
        ({"a.py": "x: Everytick = everytick.Everytick('memory://')\n"}, "a:x is in this folder: name it with -a"),
        ({"a.py": "t = Everytick()\n", "b.py": "t = Everytick()\n"}, "a:t or b:t is in this folder: name it with -a"),
        ({"not-a-name.py": "t = Everytick()\n"}, "; everytick init writes an example here"),
    ],
)
def test_a_run_without_an_application_says_how_to_begin(tmp_path: Path, files: dict[str, str], said: str) -> None:
    """A newcomer types `everytick run` in an empty folder, or beside the ten lines of the README."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    done = everytick(tmp_path, "run")

    assert done.returncode == 2
    assert said in done.stderr
    assert "--store" not in done.stderr, "a store alone cannot be run"


def test_a_traceback_is_shown_only_when_asked_for(folder: Path) -> None:
    (folder / "raising.py").write_text("1 / 0\n")

    done = everytick(folder, "run", "-a", "raising", "--debug")

    assert done.returncode == 65
    assert "Traceback" in done.stderr


def test_an_unexpected_error_is_our_own_fault_and_still_a_sentence(folder: Path) -> None:
    (folder / "odd.py").write_text(
        "from everytick import Everytick\n"
        "class Odd(Everytick):\n"
        "    async def jobs(self):\n        raise RuntimeError('out of \\x1b[31mcheese')\n"
        "tick = Odd('sqlite:///odd.db')\n"
    )
    everytick(folder, "run", "--once", "-a", "odd")

    done = everytick(folder, "list", "-a", "odd")

    assert done.returncode == 70
    assert "this should not have happened: RuntimeError: out of \\x1b[31mcheese; the same with --debug" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_module_that_leaves_while_it_is_imported_is_an_invalid_file(folder: Path) -> None:
    (folder / "leaving.py").write_text("import sys\nsys.exit(0)\n")

    done = everytick(folder, "run", "-a", "leaving")

    assert done.returncode == 65
    assert "ends the process when it is imported" in done.stderr


def test_of_several_applications_in_a_module_one_must_be_named(folder: Path) -> None:
    (folder / "two.py").write_text(
        "from everytick import Everytick\none, other = Everytick('memory://'), Everytick('memory://')\n"
    )

    done = everytick(folder, "run", "-a", "two")

    assert done.returncode == 2
    assert "holds 2 applications: write two:one or two:other" in done.stderr


def test_a_broken_configuration_is_an_invalid_file(folder: Path) -> None:
    (folder / "everytick.toml").write_text("ap = 'shop:tick'\n")

    done = everytick(folder, "run")

    assert done.returncode == 65
    assert "setting ap=shop:tick in everytick.toml is not known (did you mean 'app'?)" in done.stderr


def test_python_m_everytick_is_the_same_command(folder: Path) -> None:
    import subprocess
    import sys

    from tests.acceptance.cli.terminal import environment

    done = subprocess.run(
        [sys.executable, "-m", "everytick", "--version"], cwd=folder, env=environment(), capture_output=True, text=True
    )

    assert done.stdout.startswith("everytick 0.")
