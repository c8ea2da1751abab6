"""`everytick logs`: the output of tasks, from the files that nodes of this host keep, or those of a service's host."""

from __future__ import annotations

import sys
from codecs import IncrementalDecoder, getincrementaldecoder
from typing import TYPE_CHECKING, TypeAlias

import click

from everytick.cli.applications import is_remote
from everytick.cli.asking import look
from everytick.cli.common_options import VerbCommand
from everytick.cli.completing import job_argument
from everytick.cli.exits import Refused
from everytick.cli.history import last_of_each
from everytick.cli.ids import occurrence_or_job
from everytick.cli.output import is_terminal, safe, say
from everytick.errors import shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from everytick.app import Everytick
    from everytick.domain.occurrence import Attempt
    from everytick.stores.base import Whole

_LOOK_SECONDS = 0.2
"""How often --follow looks for more output."""

AttemptPlace: TypeAlias = tuple[str, int]
"""A task and the number of its attempt."""

_SEARCHED = 100
"""Most occurrences of a job that are searched for one that began."""


@click.command(
    "logs",
    cls=VerbCommand,
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
        id_ = await _occurrence(app, job_or_occurrence)
        copied = await LogReader(app, task, attempt).read(id_, follow)
        if not copied and is_remote():
            # A service hides from viewers where output is; asked for the output, it says that they may not.
            await app.output(await app.occurrence(id_), most=1)
        return copied

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
    """Copies the output of attempts to stdout, each byte once, from files of this host or of a service's."""

    def __init__(self, app: Everytick, task: str | None, attempt: int | None) -> None:
        self._app, self._task, self._attempt = app, task, attempt
        self._copied: dict[AttemptPlace, int] = {}
        self._decoders: dict[AttemptPlace, IncrementalDecoder] = {}
        self._told: set[AttemptPlace] = set()
        self._latest = ""

    async def read(self, id_: str, follow: bool) -> int:
        """Show all outputs and return how many there were. With `follow`, go on until the occurrence has ended."""
        import asyncio

        from everytick.domain.statuses import ENDED

        while True:
            whole = await self._app.occurrence(id_)
            has_ended = whole.occurrence.status in ENDED
            if follow and has_ended:
                # The place of an output may be noted a little after the end.
                await asyncio.sleep(_LOOK_SECONDS)
                whole = await self._app.occurrence(id_)
            await self._copy(whole)
            if has_ended or not follow:
                self._tell_failures(whole)
                return len(self._copied)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _copy(self, whole: Whole) -> None:
        for task, attempt in whole.attempts:
            if self._is_shown(task, attempt) and attempt.log is not None:
                await self._copy_attempt(whole, task, attempt)

    async def _copy_attempt(self, whole: Whole, task: str, attempt: Attempt) -> None:
        """Write what has come since the last look."""
        place = (task, attempt.number)
        while (part := await self._app.output_from(whole, *place, self._copied.get(place, 0))) is not None:
            self._copied[place] = self._copied.get(place, 0) + len(part)
            if not part:
                return
            self._write(place, part)
        self._tell_elsewhere(place, attempt)

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

    def _tell_elsewhere(self, place: AttemptPlace, attempt: Attempt) -> None:
        assert attempt.log is not None, "only what is noted can be elsewhere"
        if place not in self._told:
            self._told.add(place)
            task, node, path = place[0], shown(attempt.log.node), shown(attempt.log.path, 300)
            say(f"{task}, attempt {attempt.number}: its output is {path} in the log folder of node {node}, not here")

    def _write(self, place: AttemptPlace, part: bytes) -> None:
        heading = f"{place[0]}, attempt {place[1]}"
        if heading != self._latest:
            self._latest = heading
            sys.stdout.flush()
            say(f"==> {heading} <==")
        if not is_terminal():
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
        else:
            decoder = self._decoders.setdefault(place, getincrementaldecoder("utf-8")("replace"))
            click.echo(readable(decoder.decode(part)), nl=False)


def readable(text: str) -> str:
    """Return output as a terminal may show it: lines and tabs stay, every other control character is spelled out."""
    return safe(text.replace("\r\n", "\n").replace("\r", "\n").expandtabs())
