"""The claims of occurrences, as one connection reads them."""

import sqlite3
from collections.abc import Sequence

from everytick.domain.steps import RunState
from everytick.stores.base import Claim
from everytick.stores.sql.rows import run_state
from everytick.stores.sqlite.claims import HANDLE, JOB_KEY, VERSION, ReadableRows, held, with_steps
from everytick.stores.sqlite.definition_cache import FileDefinitions
from everytick.stores.sqlite.queries import COLD, Q, fetch, selected
from everytick.stores.sqlite.rows import Columns


def readable(connection: sqlite3.Connection, definitions: FileDefinitions, found: Sequence[Columns]) -> ReadableRows:
    """Return the rows whose definition can be read, each with that definition."""
    get = definitions.get
    return [(row, compiled) for row in found if (compiled := get(connection, row[JOB_KEY], row[VERSION])) is not None]


def claims(connection: sqlite3.Connection, definitions: FileDefinitions, handles: Sequence[int]) -> list[Claim]:
    """Return these occurrences as claims, in this order, without unreadable ones."""
    found = {row[HANDLE]: row for row in selected(connection, Q.claims_of(handles=handles))}
    legible = readable(connection, definitions, [found[handle] for handle in handles if handle in found])
    return held(legible, _runs(connection, with_steps(legible)))


def _runs(connection: sqlite3.Connection, begun: Sequence[int]) -> dict[int, dict[str, RunState]]:
    """Return where the tasks of these occurrences stand, by handle and name."""
    runs: dict[int, dict[str, RunState]] = {}
    if begun:
        for row in fetch(connection, COLD.runs_of(handles=begun)):
            runs.setdefault(row["handle"], {})[row["task"]] = run_state(row)
    return runs
