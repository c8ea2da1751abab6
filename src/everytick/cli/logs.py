"""`everytick logs`: the output of tasks, from the files that nodes of this host keep."""

from __future__ import annotations

import sys
from codecs import IncrementalDecoder, getincrementaldecoder
from typing import TYPE_CHECKING, BinaryIO

import click

from everytick.cli.completing import job_argument
from everytick.cli.exits import Refused
from everytick.cli.history import last_of_each
from everytick.cli.ids import occurrence_or_job
from everytick.cli.output import is_terminal, safe, say
from everytick.cli.session import look, store_of_app
from everytick.cli.state import Verb
from everytick.errors import shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from pathlib import Path

    from everytick.app import Everytick
    from everytick.domain.occurrence import Attempt
    from everytick.stores.base import Whole

_LOOK_SECONDS = 0.2
"""How often --follow reads the files."""

_CHUNK_BYTES = 1 << 16
_SEARCHED = 100
"""Most occurrences of a job that are searched for one that began."""


@click.command(
    "logs",
    cls=Verb,
    help="Show the output of an occurrence, or of a job's latest.\n\n"
    "Each attempt's output is a file in the log folder of the node that ran it. Example: everytick logs nightly -f",
)
@job_argument("job_or_occurrence")
@click.option("-f", "--follow", is_flag=True, help="Go on until the occurrence has ended.")
@click.option("--task", metavar="NAME", help="Only of this task.")
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="Only of this attempt.")
def logs_verb(job_or_occurrence: str, follow: bool, task: str | None, attempt: int | None) -> int:
    """Show the output of an occurrence, or of a job's latest."""

    async def shown_all(app: Everytick) -> int:
        from everytick.cli.stores import log_folder

        id_ = await _occurrence(app, job_or_occurrence)
        reader = LogReader(log_folder(app, await store_of_app(app)), task, attempt)
        return await reader.read(app, id_, follow)

    if not look(shown_all):
        say("no output was kept: the tasks wrote none, or it is not on this host")
    return Exit.DONE


async def _occurrence(app: Everytick, text: str) -> str:
    """The id itself, or that of the job's newest occurrence that has started."""
    id_ = await occurrence_or_job(app, text)
    if id_ is not None:
        return id_
    page = await app.history(text, limit=_SEARCHED)
    started = next((occurrence.id for occurrence in page if occurrence.started_at is not None), None)
    if started is None:
        raise Refused(
            f"no occurrence of '{shown(text)}' has started yet: everytick next {shown(text)} says when", Exit.NOT_FOUND
        )
    return started


class LogReader:
    """Copies the output of attempts to stdout, each byte once."""

    def __init__(self, folder: Path | None, task: str | None, attempt: int | None) -> None:
        self._folder, self._task, self._attempt = folder, task, attempt
        self._files: dict[str, BinaryIO] = {}
        self._decoders: dict[BinaryIO, IncrementalDecoder] = {}
        self._told: set[str] = set()
        self._latest = ""

    async def read(self, app: Everytick, id_: str, follow: bool) -> int:
        """Show all files and return how many there were. With `follow`, go on until the occurrence has ended."""
        import asyncio

        from everytick.domain.statuses import ENDED

        try:
            while True:
                whole = await app.occurrence(id_)
                has_ended = whole.occurrence.status in ENDED
                if follow and has_ended:
                    # The place of an output may be noted a little after the end.
                    await asyncio.sleep(_LOOK_SECONDS)
                    whole = await app.occurrence(id_)
                self._copy(whole)
                if has_ended or not follow:
                    self._tell_failures(whole)
                    return len(self._files)
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            for file in self._files.values():
                file.close()

    def _copy(self, whole: Whole) -> None:
        for task, attempt in whole.attempts:
            if self._is_shown(task, attempt):
                file = self._file(task, attempt)
                if file is not None:
                    self._pass_on(file, f"{task}, attempt {attempt.number}")

    def _tell_failures(self, whole: Whole) -> None:
        """Write the error of the last attempt of each shown task to stderr, after the output of the tasks."""
        for task, attempt in last_of_each(
            [task_attempt for task_attempt in whole.attempts if self._is_shown(*task_attempt)]
        ):
            if attempt.error is not None:
                sys.stdout.flush()
                say(f"==> {task}, attempt {attempt.number} {attempt.status} <==\n{attempt.error}")

    def _is_shown(self, task: str, attempt: Attempt) -> bool:
        return self._task in (None, task) and self._attempt in (None, attempt.number)

    def _file(self, task: str, attempt: Attempt) -> BinaryIO | None:
        if attempt.log is None:
            return None
        path = attempt.log.path
        if path not in self._files:
            found = None if self._folder is None else inside(self._folder, path)
            if found is None or not found.is_file():
                self._tell_elsewhere(task, attempt)
                return None
            self._files[path] = found.open("rb")
        return self._files[path]

    def _tell_elsewhere(self, task: str, attempt: Attempt) -> None:
        assert attempt.log is not None, "only what is noted can be elsewhere"
        if attempt.log.path not in self._told:
            self._told.add(attempt.log.path)
            node, path = shown(attempt.log.node), shown(attempt.log.path, 300)
            say(f"{task}, attempt {attempt.number}: its output is {path} in the log folder of node {node}, not here")

    def _pass_on(self, file: BinaryIO, heading: str) -> None:
        while chunk := file.read(_CHUNK_BYTES):
            if heading != self._latest:
                self._latest = heading
                sys.stdout.flush()
                say(f"==> {heading} <==")
            if not is_terminal():
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()
            else:
                decoder = self._decoders.setdefault(file, getincrementaldecoder("utf-8")("replace"))
                click.echo(readable(decoder.decode(chunk)), nl=False)


def inside(folder: Path, path: str) -> Path | None:
    """Return the file in the folder, None for a path that leads out of it."""
    found = (folder / path).resolve()
    return found if found.is_relative_to(folder.resolve()) else None


def readable(text: str) -> str:
    """Return output as a terminal may show it: lines and tabs stay, every other control character is spelled out."""
    return safe(text.replace("\r\n", "\n").replace("\r", "\n").expandtabs())
