"""`everytick run`: the node in the foreground, told to stop as people and service managers do."""

import json
import signal
import socket
from pathlib import Path

from tests.acceptance.cli.terminal import Terminal, everytick


def test_a_node_runs_in_colour_at_a_terminal_until_ctrl_c(folder: Path) -> None:
    with Terminal(folder, "run", "-a", "shop:tick") as terminal:
        terminal.see(r"application shop with 3 jobs on \S+\.db, 50 slots, queues default: Ctrl-C stops it")
        terminal.see(r"pulse \d{4}-\d\d-\d\dT[\d:]+Z completed")
        terminal.signal(signal.SIGINT)

        assert terminal.ended() == 0
        assert "SIGINT: stopping; once more leaves at once" in terminal.text


def test_it_serves_the_dashboard_beside_the_node_and_ends_open_streams_with_it(folder: Path) -> None:
    with Terminal(folder, "run", "-a", "shop:tick", "--web-port", "0") as terminal:
        port = int(terminal.see(r"dashboard and API: \w+://127\.0\.0\.1:(\d+)/").group(1))
        with socket.create_connection(("127.0.0.1", port), timeout=60) as reader:
            reader.sendall(b"GET /api/events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            told = reader.recv(4096)
            terminal.signal(signal.SIGTERM)
            with reader.makefile("rb") as rest:
                told += rest.read()

        assert terminal.ended() == 0
    assert told.startswith(b"HTTP/1.1 200 ")
    assert b"the service stops" in told


def test_to_other_hosts_it_serves_no_dashboard_without_a_user(folder: Path) -> None:
    """S1: the node runs, and says what to do for its pages."""
    with Terminal(folder, "run", "-a", "shop:tick", "--web-address", "0.0.0.0", "--web-port", "0") as terminal:
        terminal.see("no dashboard: 0.0.0.0 can be reached from other hosts, and the service has no users: add one")
        terminal.see(r"pulse \S+ completed")
        terminal.signal(signal.SIGTERM)

        assert terminal.ended() == 0
    assert "dashboard and API" not in terminal.text


def test_without_a_dashboard_it_listens_nowhere(folder: Path) -> None:
    with Terminal(folder, "run", "-a", "shop:tick", "--no-web") as terminal:
        terminal.see(r"pulse \S+ completed")
        terminal.signal(signal.SIGTERM)

        assert terminal.ended() == 0
    assert "dashboard" not in terminal.text


def test_a_file_that_is_deleted_under_it_ends_it_with_a_sentence(folder: Path) -> None:
    """F-11: 69, as for any store that cannot be reached; no empty file is made in its place."""
    with Terminal(folder, "run", "-a", "shop:tick") as terminal:
        terminal.see(r"pulse \S+ completed")
        [file] = folder.glob("*.db")
        file.unlink()
        assert terminal.ended() == 69
        assert f"{file.name} is gone: the file was deleted; nothing more is written" in terminal.text
        assert "Traceback" not in terminal.text
    assert not file.exists()


def test_a_folder_that_is_not_there_ends_it_at_once(folder: Path) -> None:
    """A wrong address is no outage, and is not waited for."""
    (folder / "lost.py").write_text(
        "from everytick import Everytick\ntick = Everytick('sqlite:///nowhere/at/all.db')\n"
    )

    done = everytick(folder, "run", "-a", "lost")

    assert done.returncode == 69
    assert "No such file or directory: make the folder, or name another file" in done.stderr
    assert "Traceback" not in done.stderr


def test_options_win_over_the_environment_and_that_over_the_code(folder: Path) -> None:
    with Terminal(folder, "run", "--queue", "mail,default", EVERYTICK_APP="shop", EVERYTICK_SLOTS="3") as terminal:
        terminal.see("3 slots, queues mail, default")
        terminal.see(r"pulse \S+ completed")
        terminal.signal(signal.SIGTERM)

        assert terminal.ended() == 0


def test_once_runs_what_is_due_and_leaves_with_json_lines(folder: Path) -> None:
    done = everytick(folder, "-a", "shop:tick", "run", "--once", "--log-format", "json")

    lines = [json.loads(line) for line in done.stderr.splitlines()]
    ended = [line for line in lines if line["event"].endswith("completed")]
    assert done.returncode == 0
    assert {"ts", "level", "event", "logger", "job", "occurrence"} <= set(ended[0])
    assert ended[0]["job"] == "pulse"


def test_once_says_by_its_exit_code_that_something_failed(folder: Path) -> None:
    (folder / "bad.py").write_text(
        "from everytick import Everytick, every\n"
        "tick = Everytick('sqlite:///bad.db')\n"
        "@tick.job(every('P1Y'), on_create='immediately')\n"
        "def bad():\n    raise ValueError('no \\x1b[31mgood')\n"
    )

    done = everytick(folder, "run", "--once", "-a", "bad")

    assert done.returncode == 1
    assert "bad" in done.stderr
    assert "no \\x1b[31mgood" in done.stderr
    assert "\x1b" not in done.stderr


def test_drain_lets_what_runs_finish(folder: Path) -> None:
    (folder / "slow.py").write_text(
        "import time\n"
        "from everytick import Everytick, every\n"
        "tick = Everytick('sqlite:///slow.db')\n"
        "@tick.job(every('P1Y'), on_create='immediately')\n"
        "def slow():\n    time.sleep(1)\n"
    )
    with Terminal(folder, "run", "-a", "slow", "--drain", "--log-level", "debug", NO_COLOR="1") as terminal:
        terminal.see(r"slow .* attempt 1 started")
        terminal.signal(signal.SIGTERM)

        assert terminal.ended() == 0
        assert "slow" in terminal.see(r"slow \S+ completed").group()
        assert "\x1b" not in terminal.raw


def test_a_closed_terminal_stops_it_cleanly_however_often_it_says_so(folder: Path) -> None:
    """A19: the kernel and the shell both send SIGHUP; the second is no wish to leave at once."""
    (folder / "slow.py").write_text(
        "import pathlib, time\n"
        "from everytick import Everytick, every\n"
        "tick = Everytick('sqlite:///slow.db')\n"
        "@tick.job(every('P1Y'), on_create='immediately')\n"
        "def slow():\n    while not pathlib.Path('go').exists():\n        time.sleep(0.01)\n"
    )
    with Terminal(folder, "run", "-a", "slow", "--drain", "--log-level", "debug", NO_COLOR="1") as terminal:
        terminal.see(r"slow .* attempt 1 started")
        terminal.signal(signal.SIGHUP)
        terminal.see("SIGHUP: stopping; SIGTERM leaves at once")
        terminal.signal(signal.SIGHUP)
        (folder / "go").touch()

        assert terminal.ended() == 0
    [[_, state, *_]] = everytick(folder, "nodes", "-a", "slow").rows
    assert state == "stopped"
    [[_, _, status, *_]] = everytick(folder, "history", "-a", "slow").rows
    assert status == "completed"


def test_a_closed_terminal_stops_a_run_once_cleanly_too(folder: Path) -> None:
    """A19."""
    (folder / "slow.py").write_text(
        "import time\n"
        "from everytick import Context, Everytick, every\n"
        "tick = Everytick('sqlite:///slow.db')\n"
        "@tick.job(every('P1Y'), on_create='immediately')\n"
        "def slow(ctx: Context):\n    while not ctx.canceled:\n        time.sleep(0.01)\n"
    )
    with Terminal(folder, "run", "--once", "-a", "slow", "--log-level", "debug", NO_COLOR="1") as terminal:
        terminal.see(r"slow .* attempt 1 started")
        terminal.signal(signal.SIGHUP)

        assert terminal.ended() == 130
    [[_, state, *_]] = everytick(folder, "nodes", "-a", "slow").rows
    assert state == "stopped"


def test_a_second_ctrl_c_leaves_at_once(folder: Path) -> None:
    (folder / "stubborn.py").write_text(
        "import time\n"
        "from everytick import Everytick, every\n"
        "tick = Everytick('sqlite:///stubborn.db')\n"
        "@tick.job(every('P1Y'), on_create='immediately')\n"
        "def stubborn():\n    time.sleep(600)\n"
    )
    with Terminal(folder, "run", "-a", "stubborn", "--log-level", "debug", "--grace-period", "10m") as terminal:
        terminal.see(r"stubborn .* attempt 1 started")
        terminal.signal(signal.SIGINT)
        terminal.see("SIGINT: stopping; once more leaves at once")
        terminal.signal(signal.SIGINT)

        assert terminal.ended() == 130
