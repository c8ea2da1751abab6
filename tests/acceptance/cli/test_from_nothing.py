"""From an empty folder to a running node and its output, as the first page says."""

import json
import os
import signal
from pathlib import Path

from tests.acceptance.cli.terminal import Terminal, everytick


def test_a_newcomer_comes_from_nothing_to_output(tmp_path: Path) -> None:
    assert everytick(tmp_path, "init", "shop").returncode == 0
    folder = tmp_path / "shop"

    with Terminal(folder, "run") as node:
        node.see("application jobs with 3 jobs")
        node.see(r"hello \S+ completed")
        trigger = everytick(folder, "trigger", "report", "--wait")
        paused = everytick(folder, "pause", "hello", "--reason", "enough")
        output = everytick(folder, "logs", "report", "--task", "send")
        followed = everytick(folder, "logs", trigger.stdout.strip(), "-f")
        jobs = json.loads(everytick(folder, "list", "--json").stdout)
        node.signal(signal.SIGTERM)
        assert node.ended() == 0

    assert trigger.returncode == 0
    assert paused.returncode == 0
    assert output.stdout == followed.stdout == "there were 42\n"
    assert {job["name"]: job["status"] for job in jobs} == {
        "hello": "paused",
        "nightly": "enabled",
        "report": "enabled",
    }


def test_what_a_task_wrote_reaches_no_terminal_raw(folder: Path) -> None:
    with Terminal(folder, "run", "-a", "shop") as node:
        node.see(r"pulse \S+ completed")
        everytick(folder, "trigger", "broken", "--wait", "-a", "shop")
        with Terminal(folder, "logs", "broken", "-a", "shop", NO_COLOR="1") as terminal:
            terminal.see(r"about to \\x1b\[31mfail")
            assert terminal.ended() == 0

    assert "\x1b" not in terminal.raw


def test_output_can_be_followed_while_it_is_written(folder: Path) -> None:
    (folder / "talk.py").write_text(
        "import pathlib, time\n"
        "from everytick import Everytick, every\n"
        "tick = Everytick('sqlite:///talk.db')\n"
        "@tick.job(every('P1Y'), on_create='immediately')\n"
        "def talk():\n"
        "    print('one', flush=True)\n"
        "    while not pathlib.Path('go').exists():\n"
        "        time.sleep(0.05)\n"
        "    print('two', flush=True)\n"
    )
    with Terminal(folder, "run", "-a", "talk", "--log-level", "debug") as node:
        node.see("attempt 1 started")
        with Terminal(folder, "logs", "talk", "-f", "-a", "talk") as terminal:
            terminal.see("one")
            assert "two" not in terminal.text
            (folder / "go").touch()
            terminal.see("two")
            assert terminal.ended() == 0


def test_the_shell_completes_verbs(folder: Path) -> None:
    done = everytick(
        folder, _EVERYTICK_COMPLETE="bash_complete", COMP_WORDS="everytick his", COMP_CWORD="1", PATH=os.environ["PATH"]
    )

    assert done.stdout.strip() == "plain,history"


def test_the_shell_completes_the_names_of_jobs_and_is_never_disturbed(folder: Path) -> None:
    everytick(folder, "run", "--once", "-a", "shop")

    def completed(words: str, **more: str) -> tuple[str, str]:
        count = str(len(words.split()))
        done = everytick(folder, _EVERYTICK_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count, **more)
        return done.stdout, done.stderr

    assert completed("everytick pause", EVERYTICK_APP="shop") == ("plain,broken\nplain,nightly\nplain,pulse\n", "")
    assert completed("everytick --store sqlite:///jobs.db show") == ("plain,broken\nplain,nightly\nplain,pulse\n", "")
    assert completed("everytick pause", EVERYTICK_APP="gone") == ("\n", "")
