"""Ids of occurrences as people see and type them: eight characters on a terminal, and any longer beginning."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from everytick.cli.exits import Refused
from everytick.cli.output import is_terminal
from everytick.errors import shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from everytick.app import Everytick

_SHORT_CHARACTERS = 8
"""How much of an id a table shows on a terminal."""

_WHOLE = re.compile(r"occ_[0-9a-f-]{32,36}")
_BEGINNING = re.compile(r"(?:occ_)?([0-9a-f]{8}[0-9a-f-]{0,27})")


def short(id_: str) -> str:
    """Return the id as a table shows it: its first eight characters on a terminal, all of it in a pipe."""
    return id_.removeprefix("occ_").removeprefix("backfill_")[:_SHORT_CHARACTERS] if is_terminal() else id_


def with_short_ids(text: str) -> str:
    """Return the text with every id of an occurrence as a table shows it."""
    return _WHOLE.sub(lambda found: short(found[0]), text)


def may_be_occurrence(text: str) -> bool:
    """Tell whether the text can be an id or the beginning of one. A job may have such a name too."""
    return _whole(text) is not None or _BEGINNING.fullmatch(text) is not None


async def occurrence_or_job(app: Everytick, text: str) -> str | None:
    """Return the whole id of the occurrence that the text names, and None if it names a job or looks like no id."""
    if not may_be_occurrence(text):
        return None
    if _whole(text) is None:
        stored = {record.job.name for record in await app.jobs(removed=True)}
        if text in stored | {definition.name for definition in app.definitions}:
            return None
    return await whole_id(app, text)


async def whole_id(app: Everytick, text: str) -> str:
    """Return the id that the text is or begins. A beginning of two ids is refused, and the error names both.

    What no id begins with is refused; any other text is returned as it is.
    """
    known, beginning = _whole(text), _BEGINNING.fullmatch(text)
    if known is not None or beginning is None:
        return known or text
    found = await app.occurrences_beginning(beginning[1])
    if not found:
        sentence = f"no occurrence has an id that begins with {shown(text)}"
        raise Refused(f"{sentence}: everytick history --json lists whole ids", Exit.NOT_FOUND)
    if len(found) > 1:
        raise Refused(f"{shown(text)} begins the ids {' and '.join(sorted(found))}: type more of the one you mean")
    return found.pop()


def _whole(text: str) -> str | None:
    """Return the text as a whole id, with or without `occ_`. None if it is none."""
    return next((id_ for id_ in (text, f"occ_{text}") if _WHOLE.fullmatch(id_)), None)
