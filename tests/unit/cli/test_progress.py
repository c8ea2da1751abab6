"""Progress: a line on a terminal once work takes more than a second, and nothing anywhere else."""

import os
import pty
import select
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

import pytest

from everytick.cli.progress import ProgressDisplay
from everytick.cli.waiting import TerminalLine

WITHIN = 60.0


@pytest.fixture(autouse=True)
def _own_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test says of its terminal is forgotten afterwards."""
    monkeypatch.setenv("TERM", "xterm")


@contextmanager
def a_terminal(kind: str = "xterm") -> Iterator[int]:
    """A pseudo-terminal in the place of stderr; its other end."""
    master, inner = pty.openpty()
    os.environ["TERM"] = kind
    with os.fdopen(inner, "w") as stream, redirect_stderr(stream):
        yield master
    os.close(master)


def seen(master: int, said: str) -> str:
    """Return what was written, once it says this."""
    text = ""
    while said not in text:
        ready, _, _ = select.select([master], [], [], WITHIN)
        assert ready, f"nobody wrote {said!r}; seen: {text!r}"
        text += os.read(master, 65536).decode()
    return text


def test_a_bar_is_drawn_and_taken_away_again() -> None:
    with a_terminal() as terminal:
        with ProgressDisplay("reading files", 300) as progress:
            progress.step(150)
            seen(terminal, "reading files [##########..........] 150/300  1.")
        assert seen(terminal, "\r\x1b[K").endswith("\r\x1b[K")


def test_where_the_whole_is_not_known_it_counts() -> None:
    with a_terminal() as terminal, ProgressDisplay("occurrences forgotten:", look=lambda: 12_345):
        seen(terminal, "occurrences forgotten: 12,345  1.")


def test_short_work_draws_nothing() -> None:
    with a_terminal() as terminal:
        with ProgressDisplay("storing"):
            pass
        assert select.select([terminal], [], [], 0)[0] == []


def test_a_terminal_that_cannot_take_a_line_back_gets_none() -> None:
    with a_terminal("dumb") as terminal:
        line = TerminalLine()
        line.show("half way")
        line.clear()
        assert select.select([terminal], [], [], 0)[0] == []


def test_without_a_terminal_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay("storing") as progress:
        assert progress._thread.ident is None

    assert capsys.readouterr() == ("", "")
    assert progress.words().startswith("storing ")
