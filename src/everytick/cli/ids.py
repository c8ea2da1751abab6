"""Ids of occurrences as people see and type them: eight characters on a terminal, and any longer beginning."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from everytick.cli.exits import Refused
from everytick.cli.output import is_terminal
from everytick.cli.session import store_of_app
from everytick.errors import NotFound, shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from everytick.app import Everytick
    from everytick.domain.occurrence import Occurrence

_SHORT_CHARACTERS = 8
"""How much of an id a table shows on a terminal."""

_SEARCHED_OF_A_JOB = 100
"""Most entries of each job that are searched for what did not run: the store has no rows of those."""

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
    found = await _beginning_with(app, beginning[1])
    if not found:
        sentence = f"no occurrence has an id that begins with {shown(text)}"
        raise Refused(f"{sentence}: everytick history --json lists whole ids", Exit.NOT_FOUND)
    if len(found) > 1:
        raise Refused(f"{shown(text)} begins the ids {' and '.join(sorted(found))}: type more of the one you mean")
    return found.pop()


def _whole(text: str) -> str | None:
    """Return the text as a whole id, with or without `occ_`. None if it is none."""
    return next((id_ for id_ in (text, f"occ_{text}") if _WHOLE.fullmatch(id_)), None)


async def _beginning_with(app: Everytick, beginning: str) -> set[str]:
    """Return the ids that begin so: of occurrences and requests by an index, then of instants that did not run."""
    from uuid import UUID

    from everytick.stores.base import IdRange

    digits = beginning.replace("-", "")
    first, last = (f"occ_{UUID(digits.ljust(32, fill))}" for fill in "0f")
    if found := await (await store_of_app(app)).existing(IdRange(first, last, limit=2)):
        return {*found}
    unrun: set[str] = set()
    for record in await app.jobs(removed=True):
        # Only the history of a job has the instants that did not run. A job may be purged meanwhile.
        with suppress(NotFound):
            page = await app.history(record.job.name, limit=_SEARCHED_OF_A_JOB)
            unrun |= {occurrence.id for occurrence in page if occurrence.id.startswith(f"occ_{beginning}")}
    return unrun


async def unrun_occurrence(app: Everytick, id_: str) -> Occurrence | None:
    """Return the entry of the history that has this id and did not run. The store holds no row of its own for it."""
    from datetime import timedelta

    from everytick.app.past_instants import instant_of

    found = await instant_of(await store_of_app(app), id_)
    if found is None:
        return None
    record, at = found
    page = await app.history(record.job.name, after=at - timedelta(microseconds=1), through=at)
    return next((occurrence for occurrence in page if occurrence.id == id_), None)
