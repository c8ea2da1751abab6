"""The active occurrences of a batch's jobs, busy or waiting, as many as a snapshot shows, with exact counts."""

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from everytick.domain.codes import CAUSE_CODE, CAUSES, STATUS_CODE, STATUSES
from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import BUSY_LIMIT, PLAN_LIMIT, Active
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.sql.rows import LineHead
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.rows import Columns, Moments, id_text

FEW_ACTIVE = 10_000
"""Most active occurrences of a batch that are read in one query. Beyond that, jobs with many are read by another."""

CROWD = 250
"""A job with more active occurrences has a crowd: the store cuts and counts it, which takes longer for each of them."""

_WAITS = STATUS_CODE[OccurrenceStatus.QUEUED]
_SCHEDULE = CAUSE_CODE[Cause.SCHEDULE]


class _ActiveRow(NamedTuple):
    """One row of `active_of_jobs`; `crowds_of_jobs` adds how many there are, and whether this one is hidden."""

    job_key: int
    id: bytes
    line_at: int
    scheduled_for: int
    status: int
    cause: int
    superseded_by_next: int
    awaited: int
    late: int
    total: int = 0
    hidden: int = 0


def lines(connection: sqlite3.Connection, jobs: str, clock: int, paused: Collection[int]) -> Mapping[int, LineHead]:
    """Return the active occurrences by job. Waiting instants of a paused job are counted and not shown."""
    found = connection.execute(Q.active_of_jobs, (jobs, FEW_ACTIVE + 1)).fetchall()
    made: dict[int, LineHead] = {}
    if len(found) > FEW_ACTIVE:
        counts: dict[int, int] = dict(connection.execute(Q.active_counts, (jobs,)).fetchall())
        crowded = json.dumps([job for job, count in counts.items() if count > CROWD])
        made |= _crowds(connection.execute(Q.crowds_of_jobs, (clock, crowded)).fetchall())
        others = json.dumps([job for job, count in counts.items() if count <= CROWD])
        found = connection.execute(Q.active_of_jobs, (others, len(counts) * CROWD)).fetchall()
    moments = Moments()
    for job, (busy, waiting) in _sorted(found).items():
        shown = [row for row in waiting if row.cause != _SCHEDULE] if job in paused else waiting
        made[job] = LineHead(
            _seen(busy[:BUSY_LIMIT], moments),
            len(busy),
            _seen(_in_view(shown), moments),
            len(waiting),
            all(row.awaited for row in busy),
        )
    return made


def _in_view(waiting: list[_ActiveRow]) -> list[_ActiveRow]:
    """Return the oldest waiting occurrences, the newest one of the schedule, and the newest one."""
    first, behind = waiting[:PLAN_LIMIT], waiting[PLAN_LIMIT:]
    own = [row for row in behind[:-1] if row.cause == _SCHEDULE] if behind and behind[-1].cause != _SCHEDULE else []
    return first + own[-1:] + behind[-1:]


def _crowds(found: Sequence[Columns]) -> Mapping[int, LineHead]:
    """Return the same from rows that the query has cut. Each has the count, and whether it is hidden."""
    moments = Moments()
    return {
        job: LineHead(
            _seen(busy, moments),
            busy[0].total if busy else 0,
            _seen([row for row in waiting if not row.hidden], moments),
            waiting[0].total if waiting else 0,
            all(row.awaited for row in busy),
        )
        for job, (busy, waiting) in _sorted(found).items()
    }


def _sorted(found: Sequence[Columns]) -> dict[int, tuple[list[_ActiveRow], list[_ActiveRow]]]:
    by_job: dict[int, tuple[list[_ActiveRow], list[_ActiveRow]]] = {}
    for columns in found:
        row = _ActiveRow(*columns)
        pair = by_job.get(row.job_key)
        if pair is None:
            pair = by_job[row.job_key] = ([], [])
        pair[row.status == _WAITS].append(row)
    return by_job


def _seen(chosen: Sequence[_ActiveRow], at: Moments) -> tuple[Active, ...]:
    return tuple(
        Active(id_text(id_), at[line_at], at[for_], STATUSES[status], CAUSES[cause], superseded == 1, late == 1)
        for _, id_, line_at, for_, status, cause, superseded, _, late, *_ in chosen
    )
