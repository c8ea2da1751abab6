"""Real node processes for tests: started, spoken to by signals, and heard line by line.

A test never sleeps: it waits for a line that some process says, with a deadline, and looks
at the store's rows afterwards.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import Empty, Queue
from typing import Self

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = "tests.acceptance.node.programs"
WITHIN = 60.0
"""Seconds that any wait may take, also on a machine with much else to do."""


class Node:
    """One process that runs a program; its standard output goes to the fleet, its errors to a file."""

    def __init__(
        self, fleet: "Fleet", name: str, command: list[str], folder: Path, cwd: Path, environment: Mapping[str, str]
    ) -> None:
        self.name, self._errors = name, folder / f"{name}.stderr"
        settings = {**os.environ, "LOGS": str(folder / "logs"), **environment}
        with self._errors.open("wb") as sink:
            self.process = subprocess.Popen(
                command, cwd=cwd, env=settings, stdout=subprocess.PIPE, stderr=sink, text=True, start_new_session=True
            )
        self._reader = threading.Thread(target=fleet.listen, args=(self,), daemon=True)
        self._reader.start()

    def kill(self) -> None:
        """It is gone, without a chance to say anything."""
        self.process.kill()
        self.process.wait(WITHIN)

    def tell_to_stop(self, number: int = signal.SIGTERM) -> None:
        """Send the signal and return at once."""
        self.process.send_signal(number)

    def ended(self, within: float = WITHIN) -> int:
        """Return its exit code once it has ended by itself and everything it said was heard."""
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {within} s; {self.complaints()}") from None
        self._reader.join(within)
        return code

    def errors(self) -> str:
        """Return all that it wrote to its standard error."""
        return self._errors.read_text(errors="replace")

    def complaints(self) -> str:
        """Return the end of what it wrote to its standard error, for a message."""
        return f"{self.name} wrote to its standard error:\n{self.errors()[-4000:]}"


def freeze(node: Node) -> None:
    """The node stands still until it gets SIGCONT."""
    node.process.send_signal(signal.SIGSTOP)
    os.waitpid(node.process.pid, os.WUNTRACED)


class Fleet:
    """The node processes of one test and everything they have said, in the order in which it was heard."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._heard: Queue[tuple[Node, str | None]] = Queue()
        self._silent: set[Node] = set()
        self.nodes: list[Node] = []
        self.lines: list[tuple[str, str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            if node.process.poll() is None:
                # The whole group: a program may have started processes of its own.
                os.killpg(node.process.pid, signal.SIGKILL)
                node.process.wait(WITHIN)
            if node.process.stdout is not None:
                node.process.stdout.close()

    def start(self, program: str, *arguments: object) -> Node:
        """Start a node of this program; it need not be ready when this returns."""
        command = [sys.executable, "-m", f"{PROGRAMS}.{program}", *map(str, arguments)]
        return self.run(command)

    def run(self, command: list[str], cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> Node:
        """Start a process of the fleet."""
        name = f"node-{len(self.nodes) + 1}"
        node = Node(self, name, command, self._folder, cwd, environment or {})
        self.nodes.append(node)
        return node

    def listen(self, node: Node) -> None:
        """Hear everything a node says, until it ends."""
        assert node.process.stdout is not None
        try:
            for line in node.process.stdout:
                self._heard.put((node, line.rstrip("\n")))
        except ValueError:
            return  # the test is over and has closed the pipe
        self._heard.put((node, None))

    def hear(self, said: str | Callable[[str], bool], by: Node | None = None, within: float = WITHIN) -> str:
        """Return the next line that begins with this, or of which this is true; each line counts once."""
        wanted = said if callable(said) else lambda line: line.startswith(said)
        what = repr(said) if isinstance(said, str) else "the line that was waited for"
        deadline = time.monotonic() + within
        while True:
            try:
                node, line = self._heard.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                raise AssertionError(f"nobody said {what} within {within} s; {self._all_told()}") from None
            if line is None:
                self._silent.add(node)
                if self._silent.issuperset(self.nodes if by is None else [by]):
                    raise AssertionError(f"everybody ended before saying {what}; {self._all_told()}")
                continue
            self.lines.append((node.name, line))
            if wanted(line) and by in (None, node):
                return line

    def hear_also(self, said: str, by: Node, within: float = WITHIN) -> None:
        """Return once the node has said this, now or while another line was waited for."""
        self.wait_until(lambda: any(n == by.name and line.startswith(said) for n, line in self.lines), said, within)

    def hear_error(self, said: str, by: Node, within: float = WITHIN) -> None:
        """Return once the node has written this to its standard error, a file that is looked at now and then."""
        self.wait_until(lambda: said in by.errors(), f"it said {said!r}", within)

    def wait_until(self, is_so: Callable[[], bool], what: str, within: float = WITHIN) -> None:
        """Return once this is true, which is looked at now and then."""
        deadline = time.monotonic() + within
        while not is_so():
            assert time.monotonic() < deadline, f"not so after {within} s: {what}; {self._all_told()}"
            self.hear_for(0.1)

    def hear_for(self, seconds: float) -> None:
        """Hear whatever is said in so many seconds, which may be nothing."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                node, line = self._heard.get(timeout=left)
            except Empty:
                return
            if line is not None:
                self.lines.append((node.name, line))

    def heard(self) -> list[str]:
        """Return every line so far, also those that no test waited for."""
        while True:
            try:
                node, line = self._heard.get_nowait()
            except Empty:
                return [line for _, line in self.lines]
            if line is not None:
                self.lines.append((node.name, line))

    def _all_told(self) -> str:
        complaints = "\n".join(node.complaints() for node in self.nodes)
        return f"heard: {self.lines}\n{complaints}"
