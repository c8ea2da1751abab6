"""Following an occurrence to its end: a line that moves on a terminal, an exit code for scripts."""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from everytick.cli.applications import how_to_run
from everytick.cli.exits import Refused
from everytick.cli.output import as_json_text, has_colour, is_terminal, length, safe, say
from everytick.errors import NotFound, shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from everytick.app import Everytick
    from everytick.domain.occurrence import Attempt
    from everytick.stores.base import Whole

_FIRST_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 0.02, 0.5
_CHECK_SECONDS = 5.0
"""Between two checks for a node that can run it; a node tells of what it cannot run with its next beat."""

_BAR_COLUMNS = 20


async def follow(app: Everytick, id_: str, within: timedelta | None, job: str | None = None) -> Whole:
    """Return the occurrence once it has ended. On a terminal, show its progress until then.

    `job` is the name of its job, if that is known: an occurrence that is not planned yet does not tell.
    """
    import asyncio

    from everytick.domain.statuses import ENDED

    line, pause, begun = TerminalLine(), _FIRST_LOOK_SECONDS, time.monotonic()
    told, checked = None, -_CHECK_SECONDS
    try:
        while True:
            whole = await _found(app, id_)
            if whole is not None and whole.occurrence.status in ENDED:
                return whole
            waited = timedelta(seconds=time.monotonic() - begun)
            is_over = within is not None and waited >= within
            if is_over or waited.total_seconds() - checked >= _CHECK_SECONDS:
                obstacle, checked = await _obstacle(app, whole, job, is_first=checked < 0), waited.total_seconds()
                if obstacle is not None and obstacle != told:
                    line.clear()
                    say(obstacle)
                told = obstacle
            if within is not None and is_over:
                state = "and goes on" if told is None else "and waits for a node"
                text = f"it has not ended within {length(within)} {state}: everytick show {id_} tells how"
                raise Refused(text, Exit.TIMED_OUT)
            line.show(words(whole, waited))
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK_SECONDS)
    except asyncio.CancelledError:
        say(f"no longer waiting; it goes on: everytick show {id_} tells how, everytick cancel {id_} ends it")
        raise
    finally:
        line.clear()


async def _found(app: Everytick, id_: str) -> Whole | None:
    """Return the occurrence, None while no plan has created it."""
    try:
        return await app.occurrence(id_)
    except NotFound:
        return None


async def _obstacle(app: Everytick, whole: Whole | None, job: str | None, *, is_first: bool) -> str | None:
    """Return why the occurrence cannot begin now: no node is alive, or none of them can run its job.

    A node tells a moment later that it meets what a new job needs, so the first check does not ask for that.
    """
    if whole is not None and whole.occurrence.status == "running":
        return None
    now = await app.now()
    alive = [node for node in await app.nodes() if node.is_alive(now, app.settings.node_timeout)]
    if not alive:
        return f"no node is alive: it waits until {how_to_run()} starts one"
    if is_first and not any(node.facts is not None and node.facts.unknown_targets for node in alive):
        return None
    id_ = None if whole is None else whole.occurrence.job_id
    records = [record for record in await app.jobs() if record.job.id == id_ or record.job.name == job]
    for name, why in (await app.reports(records)).unknown.items():
        return f"no living node can run {shown(name)}: {shown(why, 300)}"
    return None


def words(whole: Whole | None, waited: timedelta) -> str:
    """Return the progress in words: the status, and the notes of running attempts."""
    if whole is None or whole.occurrence.created_at is None:
        return f"asked for, not planned yet  {length(waited)}"
    parts: list[str] = [whole.occurrence.status]
    for task, attempt in whole.attempts:
        if attempt.status == "running":
            again = f" attempt {attempt.number}" if attempt.number > 1 else ""
            parts.append(f"{shown(task, 40)}{again}{_progress(attempt)}")
    return "  ".join([*parts, length(waited)])


def _progress(attempt: Attempt) -> str:
    progress = attempt.progress
    if progress is None:
        return ""
    text = f" {shown(progress.text, 40)}" if progress.text else ""
    if not progress.total:
        return f" {progress.done:g}{text}"
    part = min(max(progress.done / progress.total, 0.0), 1.0)
    bar = "#" * round(part * _BAR_COLUMNS)
    return f" [{bar:.<{_BAR_COLUMNS}}] {progress.done:g}/{progress.total:g}{text}"


class TerminalLine:
    """One line of a terminal that is rewritten. In a pipe, or on a terminal that cannot rewrite, it writes nothing."""

    def __init__(self) -> None:
        self._is_shown = False
        self._is_wanted = is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"

    def show(self, text: str) -> None:
        """Replace the line by this text."""
        if self._is_wanted:
            from shutil import get_terminal_size

            room = max(get_terminal_size().columns - 1, 10)
            click.echo(f"\r{safe(text)[:room]}\x1b[K", nl=False, err=True, color=True)
            self._is_shown = True

    def clear(self) -> None:
        """Leave the line as it was."""
        if self._is_shown:
            click.echo("\r\x1b[K", nl=False, err=True, color=True)
            self._is_shown = False


def tell_end(whole: Whole) -> Exit:
    """Write how it ended and its result, and return the exit code."""
    occurrence, took = whole.occurrence, ""
    if occurrence.started_at is not None and occurrence.ended_at is not None:
        took = f" after {length(occurrence.ended_at - occurrence.started_at)}"
    good = occurrence.status == "completed"
    why = occurrence.error or (None if good else occurrence.reason)
    returned = "" if whole.result is None else f"; it returned {shown(as_json_text(whole.result), 300)}"
    text = f"{occurrence.status}{took}" + (f": {why}" if why else "") + returned
    say(text, mark=("green" if good else "red") if has_colour(sys.stderr) else None)
    return Exit.DONE if good else Exit.FAILED
