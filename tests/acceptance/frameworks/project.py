"""A user's program: files in a folder, processes that are started there, edits."""

from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from textwrap import dedent

from tests.acceptance.node.fleet import Fleet, Node

STARTED_WITHIN = 90.0
"""Seconds. Several processes import a web framework at the same time, which takes long on a busy machine."""

GUNICORN = ("-m", "gunicorn", "--no-control-socket")
"""Without the socket that all of a user's servers would share."""


class Project:
    """A folder with a program, and the processes that run it."""

    def __init__(self, folder: Path, fleet: Fleet, python: str) -> None:
        self.folder, self.fleet, self._python = folder, fleet, python

    def write(self, path: str, text: str) -> None:
        """Write a file of the program."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text).lstrip("\n"))

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text in a file, which a reloader sees by the time of the change."""
        file = self.folder / path
        text = file.read_text()
        assert old in text, f"{path} does not say {old!r}"
        file.write_text(text.replace(old, new))

    def python(self, *arguments: object, environment: Mapping[str, str] | None = None) -> Node:
        """Start Python in the folder."""
        return self.fleet.run([self._python, *map(str, arguments)], self.folder, environment)

    def address(self) -> str:
        """Return the address of a store beside the program."""
        return f"sqlite:///{self.folder / 'jobs.db'}"


def get(port: int, path: str) -> tuple[int, bytes] | None:
    """Return status and body of what a server of this host answers, or None if it does not answer yet."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=STARTED_WITHIN)) as line:
        try:
            line.request("GET", path)
            answer = line.getresponse()
            return answer.status, answer.read()
        except ConnectionError:
            return None
