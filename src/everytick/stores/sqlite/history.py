"""prune: how old occurrences are forgotten."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.stores.sqlite.queries import COLD, Q, fetch
from everytick.stores.sqlite.writer import Transaction

JOBS_AT_ONCE = 10_000
"""Most jobs that one call of prune reads. The next call goes on behind them."""

# Statuses that retention counts as success: skipped on purpose is no failure.
_S = OccurrenceStatus
_WELL = frozenset({_S.COMPLETED, _S.COMPLETED_WITH_ERRORS, _S.SKIPPED})


def forgettable(connection: sqlite3.Connection, now: datetime, limit: int, after: int) -> tuple[list[int], int]:
    """Return the handles of occurrences that retention no longer keeps, of the jobs after this one, and where to go on.

    It looks through `JOBS_AT_ONCE` jobs, and in each only at what is old enough. The search
    holds up no write.
    """
    handles: list[int] = []
    for job in fetch(connection, Q.jobs_with_aged(after_key=after, limit=JOBS_AT_ONCE, now=now)):
        oldest_kept = _oldest_kept(connection, job["job_key"], job["keep_last"])
        for status in sorted(ENDED):
            kept = job["keep_success"] if status in _WELL else job["keep_failure"]
            if oldest_kept is not None and kept is not None:
                asked = {"job_key": job["job_key"], "status": status, "now": now, "kept": kept, **oldest_kept}
                aged = fetch(connection, Q.aged_of_job(**asked, limit=max(limit - len(handles), 0)))
                handles += [row["handle"] for row in aged]
        if len(handles) >= limit:
            return handles, after
    last = fetch(connection, Q.last_of_jobs(after_key=after, offset=JOBS_AT_ONCE - 1))
    return handles, last[0]["job_key"] if last else 0


def _oldest_kept(connection: sqlite3.Connection, job_key: int, keep_last: int) -> dict[str, Any] | None:
    """Return the place of the oldest that a job keeps whatever its age; None if it has no more than it keeps so."""
    if not keep_last:
        return {"keeps_none": True, "scheduled_for": None, "occurrence_id": None}
    for row in fetch(connection, Q.last_kept(job_key=job_key, offset=keep_last - 1)):
        return {"keeps_none": False, **row}
    return None


def forget(transaction: Transaction, handles: Sequence[int]) -> int:
    """Delete these occurrences with their runs and attempts. Return how many existed."""
    for statement in (COLD.forget_attempts, COLD.forget_runs, Q.forget_keys):
        transaction.run(statement(handles=handles))
    return transaction.run(Q.forget_occurrences(handles=handles))
