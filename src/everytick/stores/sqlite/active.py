"""The active occurrences of a batch's jobs, busy or waiting, as many as a snapshot shows, with exact counts."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from everytick.domain.codes import CAUSES, STATUS_CODE, STATUSES
from everytick.domain.snapshots import Active
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.sql.rows import LineHead
from everytick.stores.sqlite.queries import Q, selected
from everytick.stores.sqlite.rows import Moments, id_text
from everytick.stores.sqlite.rows_read import ActiveRow

_WAITS = STATUS_CODE[OccurrenceStatus.QUEUED]


def lines(connection: sqlite3.Connection, job_keys: Sequence[int], now: datetime) -> Mapping[int, LineHead]:
    """Return the active occurrences by job. Waiting instants of a paused job are counted and not shown."""
    by_job: dict[int, tuple[list[ActiveRow], list[ActiveRow]]] = {}
    for row in map(ActiveRow._make, selected(connection, Q.active(job_keys=job_keys, now=now))):
        by_job.setdefault(row.job_key, ([], []))[row.status == _WAITS].append(row)
    moments = Moments()
    return {
        job: LineHead(
            _shown(busy, moments),
            busy[0].total if busy else 0,
            _shown([row for row in waiting if not row.hidden], moments),
            waiting[0].total if waiting else 0,
            busy[0].all_awaited == 1 if busy else True,
        )
        for job, (busy, waiting) in by_job.items()
    }


def _shown(active: Iterable[ActiveRow], at: Moments) -> tuple[Active, ...]:
    return tuple(
        Active(
            id_text(row.id),
            at[row.line_at],
            at[row.scheduled_for],
            STATUSES[row.status],
            CAUSES[row.cause],
            row.superseded_by_next == 1,
            row.late == 1,
        )
        for row in active
    )
