"""note, reports and reported: rows of running attempts, and ends whose report is due."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from everytick.domain.notes import Note
from everytick.domain.steps import OccurrenceEnd
from everytick.stores.base import Claim, Commit, NodeScope
from everytick.stores.sql.commands import Claims, Found, Rows, Verb, Versions
from everytick.stores.sql.queries import ColdQueries

if TYPE_CHECKING:
    from everytick.stores.sql.statements import Row


def note(q: ColdQueries, notes: Sequence[tuple[Claim, Note]]) -> Verb[list[Commit]]:
    """Make or change the rows of attempts, each under its claim's fence and token, by one statement."""
    newest: dict[tuple[int, int, str, int], tuple[Claim, Note]] = {}
    for claim, told in notes:
        _, known = newest.get(_key(claim, told), (claim, told))
        merged = replace(
            known,
            progress=told.progress or known.progress,
            log=told.log or known.log,
            handed_to=told.handed_to or known.handed_to,
        )
        newest[_key(claim, told)] = claim, merged
    found: Rows = yield q.note(notes=[_noted(*newest[key]) for key in sorted(newest)])
    written = {(row["handle"], row["claim_token"], row["task"], row["number"]) for row in found}
    return [Commit.COMMITTED if _key(*note) in written else Commit.STALE for note in notes]


def _key(claim: Claim, told: Note) -> tuple[int, int, str, int]:
    """Return the attempt and claim of a note. A token belongs to one claim, and so to one fence."""
    return claim.handle, claim.key.token, told.task, told.number


def _noted(claim: Claim, told: Note) -> dict[str, Any]:
    progress, log = told.progress, told.log
    return {
        "handle": claim.handle,
        "fence": claim.fence,
        "claim_token": claim.key.token,
        "task": told.task,
        "number": told.number,
        "started_at": told.started_at,
        "progress_done": None if progress is None else float(progress.done),
        "progress_total": None if progress is None or progress.total is None else float(progress.total),
        "progress_text": None if progress is None else progress.text,
        "log_node": None if log is None else log.node,
        "log_path": None if log is None else log.path,
        "handed_to": told.handed_to,
    }


def reports(q: ColdQueries, scope: NodeScope, limit: int) -> Verb[list[OccurrenceEnd]]:
    """Return ended occurrences of the scope whose report was not delivered yet, oldest end first.

    One whose definition cannot be read here takes no place of another one.
    """
    unreadable: list[int] = []
    while True:
        found: list[Row] = []
        for needs in scope.met:
            asked = {"needs": needs, "job_ids": scope.unknown, "handles": unreadable, "limit": max(limit, 0)}
            found += yield q.owed_reports(**asked)
        found = sorted(found, key=itemgetter("ended_at", "occurrence_id"))[: max(limit, 0)]
        versions: Found = yield Versions(tuple({(row["job_key"], row["version"]) for row in found}))
        more = [row["handle"] for row in found if (row["job_key"], row["version"]) not in versions.read]
        if not more:
            break
        unreadable += more
    claims: list[Claim] = yield Claims(tuple(row["handle"] for row in found))
    return [OccurrenceEnd(claim.header, claim.life) for claim in claims]


def reported(q: ColdQueries, occurrence_ids: Collection[str]) -> Verb[None]:
    """Note that these reports were delivered."""
    yield q.reported(occurrence_ids=occurrence_ids)
