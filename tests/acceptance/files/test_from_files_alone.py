"""Everytick without Python code: files and a terminal, with real processes."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

from tests.acceptance.cli.terminal import COMMAND, WITHIN, Terminal, environment, everytick


def test_from_nothing_to_a_replay_with_files_alone(tmp_path: Path) -> None:
    """init, edit, validate, run, trigger, pause, break a file, fix it, replay, stop."""
    with Terminal(tmp_path, "init", "--yaml", "shop") as terminal:
        terminal.see("now: cd shop && everytick run")
        assert terminal.ended() == 0
    folder = tmp_path / "shop"
    file = folder / "jobs/example.yaml"

    # Edit, at first with a mistake.
    good = file.read_text().replace("every 10s", "every 1s")
    file.write_text(good.replace("retry:", "retri:"))
    with Terminal(folder, "validate") as terminal:
        terminal.see(r"example\.yaml:\d+:\d+: job 'nightly': unknown key 'retri' \(did you mean 'retry'\?\)")
        assert terminal.ended() == 65
    file.write_text(good)
    assert everytick(folder, "validate").stderr == "1 file with 3 jobs: no mistakes\n"

    with Terminal(folder, "run") as node:
        node.see(r"3 jobs in 1 file; changes are live at once")
        node.see(r"hello \S+ completed")

        with Terminal(folder, "trigger", "report", "--wait") as terminal:
            occurrence = terminal.see(r"occ_[0-9a-f-]{36}").group()
            terminal.see("completed after")
            assert terminal.ended() == 0
        assert everytick(folder, "logs", "report", "--task", "send").stdout == "there were 42\n"

        assert everytick(folder, "pause", "hello", "--reason", "enough").returncode == 0
        with Terminal(folder, "list", NO_COLOR="1") as terminal:
            terminal.see(r"hello +paused")
            assert terminal.ended() == 0

        break_and_fix(folder, file, good, node)

        replayed = everytick(folder, "replay", "--job-occurrence", occurrence, "--reason", "once more", "--wait")
        assert replayed.returncode == 0, replayed.stderr
        history = json.loads(everytick(folder, "history", "report", "--json").stdout)
        assert {(each["cause"], each["replay_of"]) for each in history} == {("replay", occurrence), ("trigger", None)}

        node.signal(signal.SIGINT)
        node.see("SIGINT: stopping; once more leaves at once")
        assert node.ended() == 0
    assert "Traceback" not in node.text


def break_and_fix(folder: Path, file: Path, good: str, node: Terminal) -> None:
    """A broken file is shown everywhere and changes nothing; a fixed one is live at once."""
    file.write_text(good.replace("version: 1", "version: 1\nextra: \N{SNOWMAN}"))
    node.see(r"example\.yaml:\d+:1: the file: unknown key 'extra'")
    with Terminal(folder, "list") as terminal:
        terminal.see("broken file .*example.yaml; as they were before: hello, nightly, report")
        terminal.see("the file: unknown key 'extra'")
        assert terminal.ended() == 0
    listed = json.loads(everytick(folder, "list", "--json").stdout)
    assert all("unknown key 'extra'" in each["definition_error"] for each in listed)
    assert everytick(folder, "trigger", "nightly", "--wait").returncode == 0
    assert "cannot read" in everytick(folder, "doctor").stdout

    file.write_text(good.replace("the occurrence of", "fixed, the occurrence of"))
    node.see(r"job nightly changed: tasks")
    node.see(r"example\.yaml: in order again")
    assert everytick(folder, "list").stderr == ""
    assert everytick(folder, "trigger", "nightly", "--wait").returncode == 0
    assert everytick(folder, "logs", "nightly").stdout.startswith("fixed, the occurrence of 20")


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]" for number in range(1, 30)
)
HOSTILE = {
    "bomb.yaml": BOMB,
    "deep.yaml": "[" * 500_000,
    "escape.yaml": 'version: 1\njobs: {"a\\e]0;owned\\a\\e[2J": {schedule: "@daily", command: x}}',
    "keys.yaml": "? a\n" * 100_000,
    "name.yaml": "version: 1\njobs: {../../etc/passwd: {schedule: '@daily', command: x}}",
    "raw.yaml": "version: 1\njobs: {\x1b[31mred: {}}",
    "tag.yaml": "version: 1\njobs: !!python/object/apply:os.system [touch owned]",
    "wide.yaml": "[" + "a," * 500_000,
}


def test_hostile_files_are_refused_at_once_and_reach_no_terminal_raw(tmp_path: Path) -> None:
    """Each within a second of the processor; a start of the command takes about half of one here."""
    (tmp_path / "jobs").mkdir()
    for name, text in HOSTILE.items():
        (tmp_path / "jobs" / name).write_text(text)
        process = subprocess.Popen(
            [COMMAND, "validate", f"jobs/{name}"],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.stdout.close()
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 65, name
        assert re.match(rf"jobs/{name}:\d+:\d+: ".encode(), said), said[:200]
        assert usage.ru_utime + usage.ru_stime < 5, f"{name} took {usage.ru_utime + usage.ru_stime:.1f} s"

    with Terminal(tmp_path, "validate", "jobs", TERM="dumb") as terminal:
        assert terminal.ended() == 65
    assert not {"\x1b", "\x07", "\x9b"} & set(terminal.raw)
    assert not (tmp_path / "owned").exists()


def test_a_node_goes_on_beside_hostile_files(tmp_path: Path) -> None:
    """They are told, without a raw escape, and what is good in the folder runs."""
    (tmp_path / "jobs").mkdir()
    good = 'version: 1\njobs: {pulse: {schedule: every 1s, command: "true"}}'
    (tmp_path / "jobs/good.yaml").write_text(good)
    with Terminal(tmp_path, "run", "--jobs", "jobs", NO_COLOR="1") as node:
        node.see(r"pulse \S+ completed")
        for name, text in HOSTILE.items():
            (tmp_path / "jobs" / name).write_text(text)
        for name in HOSTILE:
            node.see(rf"{re.escape(name)}:\d+:\d+: .*keeping the last valid version", within=WITHIN)
        listed = everytick(tmp_path, "list", "--jobs", "jobs")
        assert [row[0] for row in listed.rows] == ["pulse"]
        assert listed.stderr.count("broken file") == len(HOSTILE)
        assert "\x1b" not in listed.stderr
        node.signal(signal.SIGTERM)
        assert node.ended() == 0
    assert "\x1b" not in node.raw
    assert "Traceback" not in node.raw
