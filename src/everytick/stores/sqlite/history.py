"""prune: how old occurrences are forgotten."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.stores.sql.verbs import rollups
from everytick.stores.sqlite.queries import COLD, Q, fetch
from everytick.stores.sqlite.runner import SyncRunner

JOBS_AT_ONCE = 10_000
"""Most jobs that one call of prune reads. The next call goes on behind them."""

# Statuses that retention counts as success: skipped on purpose is no failure.
_S = OccurrenceStatus
_KEPT_AS_SUCCESSES = frozenset({_S.COMPLETED, _S.COMPLETED_WITH_ERRORS, _S.SKIPPED})


def forgettable(connection: sqlite3.Connection, now: datetime, limit: int, after: int) -> tuple[list[int], int]:
    """Return the handles of occurrences that retention no longer keeps, of the jobs after this one, and where to go on.

    It looks through `JOBS_AT_ONCE` jobs, and in each only at what is old enough. The search
    holds up no write.
    """
    handles: list[int] = []
    for job in fetch(connection, Q.jobs_with_aged(after_key=after, limit=JOBS_AT_ONCE, now=now)):
        oldest_kept = _oldest_kept(connection, job["job_key"], job["keep_last"])
        for status in sorted(ENDED):
            kept = job["keep_success"] if status in _KEPT_AS_SUCCESSES else job["keep_failure"]
            if oldest_kept is not None and kept is not None:
                asked = {"job_key": job["job_key"], "status": status, "now": now, "kept": kept, **oldest_kept}
                aged = fetch(connection, Q.aged(**asked, limit=max(limit - len(handles), 0)))
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


def forget(runner: SyncRunner, handles: Sequence[int]) -> int:
    """Delete these occurrences with their runs and attempts, once they are counted. Return how many existed."""
    transaction = runner.transaction
    gone = [row["handle"] for row in fetch(transaction.connection, Q.forgettable_of(handles=handles))]
    runner.run(partial(rollups.count_deleted, COLD, gone))
    for statement in (COLD.forget_attempts, COLD.forget_runs, Q.forget_keys):
        transaction.run(statement(handles=gone))
    return transaction.run(Q.forget_occurrences(handles=gone))
