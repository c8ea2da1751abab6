"""The installed command as a person uses it: in a pipe, or at a terminal that is answered line by line.

No test sleeps: it waits for what the command says, with a deadline.
"""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

COMMAND = Path(sys.executable).with_name("everytick")
WITHIN = 60.0
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def environment(**more: str) -> dict[str, str]:
    """The environment of a person who has set nothing of ours; UTC, so that times read alike everywhere."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("EVERYTICK_", "NO_COLOR"))}
    return {**plain, "TZ": "UTC", "COLUMNS": "200", "TERM": "xterm", "PYTHONDONTWRITEBYTECODE": "1", **more}


class Said(subprocess.CompletedProcess[str]):
    """What a call came to: exit code, results, words."""

    @property
    def rows(self) -> list[list[str]]:
        """The results, as the tab-separated lines they are."""
        return [line.split("\t") for line in self.stdout.splitlines()]


def everytick(folder: Path, *arguments: str, answer: str | None = None, **more: str) -> Said:
    """Run the command in a pipe and return what it said."""
    done = subprocess.run(
        [COMMAND, *arguments],
        cwd=folder,
        env=environment(**more),
        input=answer,
        stdin=subprocess.DEVNULL if answer is None else None,
        capture_output=True,
        text=True,
        timeout=WITHIN,
    )
    return Said(done.args, done.returncode, done.stdout, done.stderr)


def _obey_hangups() -> None:
    """Let SIGHUP reach the command as at a terminal, also if the tests were started by `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Terminal:
    """The command at a pseudo-terminal: what it writes is seen, what a person types is sent."""

    def __init__(self, folder: Path, *arguments: str, **more: str) -> None:
        self._master, inner = pty.openpty()
        self.raw = ""
        self.process = subprocess.Popen(
            [COMMAND, *arguments],
            cwd=folder,
            env=environment(**more),
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
            preexec_fn=_obey_hangups,
        )
        os.close(inner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(WITHIN)
        os.close(self._master)

    @property
    def text(self) -> str:
        """Everything that was seen so far, without colours."""
        return _ESCAPE.sub("", self.raw)

    def see(self, pattern: str, within: float = WITHIN) -> re.Match[str]:
        """Return where the pattern stands in what was written, once it does."""
        deadline = time.monotonic() + within
        while (found := re.search(pattern, self.text)) is None:
            if not self._read(deadline):
                raise AssertionError(f"nobody wrote {pattern!r} within {within} s; seen: {self.text!r}")
        return found

    def type(self, text: str) -> None:
        """Send what a person types; `\\x03` is Ctrl-C where the terminal is the command's own."""
        os.write(self._master, text.encode())

    def signal(self, number: int) -> None:
        """Send a signal, as Ctrl-C does."""
        self.process.send_signal(number)

    def ended(self, within: float = WITHIN) -> int:
        """Return the exit code once everything was written and the command has ended."""
        deadline = time.monotonic() + within
        while self._read(deadline):
            pass
        return self.process.wait(max(0.1, deadline - time.monotonic()))

    def _read(self, deadline: float) -> bool:
        """Take in what is there; False once nothing more will come, or not in time."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            chunk = os.read(self._master, 65536)
        except OSError:  # Linux says so when the other side has closed
            return False
        self.raw += chunk.decode(errors="replace")
        return bool(chunk)
