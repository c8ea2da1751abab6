"""prune: how old occurrences are forgotten."""

import json
import sqlite3
from collections.abc import Sequence

from everytick.domain.codes import FIRST_ENDED, STATUS_CODE, STATUSES
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.sqlite.queries import COLD, Q
from everytick.stores.sqlite.writer import Transaction

JOBS_AT_ONCE = 10_000
"""So many jobs are looked through at most when something is to be forgotten; the next call goes on behind them."""

# What retention counts as success; a span that was skipped on purpose is no failure.
_S = OccurrenceStatus
_ENDED = tuple(code for code in STATUSES if code >= FIRST_ENDED)
_WELL = frozenset(STATUS_CODE[status] for status in (_S.COMPLETED, _S.COMPLETED_WITH_ERRORS, _S.SKIPPED))
_LAST = 2**63 - 1


def forgettable(connection: sqlite3.Connection, now: int, limit: int, after: int) -> tuple[list[int], int]:
    """Return the handles of what retention no longer keeps of the jobs after this one, and where to go on.

    It looks through `JOBS_AT_ONCE` jobs, and in each only at what is old enough. The search
    holds up no write.
    """
    found: list[int] = []
    for job, keep_success, keep_failure, keep_last in connection.execute(
        Q.jobs_with_aged, (after, JOBS_AT_ONCE, now, now)
    ).fetchall():
        place = connection.execute(Q.last_kept, (job, keep_last - 1)).fetchone() if keep_last else (_LAST, b"")
        for status in _ENDED:
            kept = keep_success if status in _WELL else keep_failure
            if place is not None and kept is not None:
                asked = (job, status, now - kept, *place, max(limit - len(found), 0))
                found += [row[0] for row in connection.execute(Q.aged_of_job, asked)]
        if len(found) >= limit:
            return found, after
    last = connection.execute(Q.last_of_jobs, (after, JOBS_AT_ONCE - 1)).fetchone()
    return found, 0 if last is None else last[0]


def forget(transaction: Transaction, handles: Sequence[int]) -> int:
    """Forget these occurrences with their runs and attempts, and return how many there still were."""
    for query in (COLD.forget_attempts(handles=handles), COLD.forget_runs(handles=handles)):
        transaction.execute(query.statement.sql, query.arguments)
    asked = (json.dumps(handles),)
    transaction.execute(Q.forget_keys, asked)
    return transaction.execute(Q.forget_occurrences, asked).rowcount
