"""settle_clock: corrects times that were written while the store's clock was ahead."""

from datetime import datetime

from everytick.stores.base import FARTHEST_AHEAD, STEP
from everytick.stores.sql.commands import Ask, Rows, Verb
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.verbs.locked_job import foretell, revise


def settle_clock(q: ColdQueries) -> Verb[list[tuple[str, datetime]]]:
    """Bring retries, edits and waiting occurrences back, and wake jobs; return the jobs whose watermark lies ahead."""
    now: datetime = yield Ask.NOW
    step_at = now + STEP
    # Runs first: their retries are found by the write time of their occurrence, which the next statement corrects.
    yield q.bring_runs_back(now=now, step_at=step_at)
    yield q.bring_retries_back(now=now, step_at=step_at)
    told: Rows = yield q.told_ahead(step_at=step_at)
    for row in told:
        yield q.rewind_pauses(job_key=row["job_key"], now=now)
        yield q.bring_told_back(job_key=row["job_key"], now=now)
        yield from revise(q, row["job_key"], now)
    yield from foretell(q, [row["job_id"] for row in told])
    yield q.bring_waiting_back(now=now, step_at=step_at)
    yield q.bring_promises_back(now=now, step_at=step_at)
    [found] = yield q.was_ahead(step_at=step_at)
    if found["was_ahead"]:
        yield q.wake_jobs_ahead(now=now)
        yield Ask.RING
    ahead: Rows = yield q.jobs_ahead(ahead_at=now + FARTHEST_AHEAD)
    return [(row["name"], row["watermark"]) for row in ahead]
