"""What was written while the clock was ahead: how it goes on, and how one job is set right."""

from datetime import datetime

from everytick.stores.base import AHEAD, STEP
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.compiled import Definitions
from everytick.stores.sqlite.job_rows import foretell, wake
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.writer import Transaction


def settle_clock(transaction: Transaction, definitions: Definitions) -> list[tuple[str, datetime]]:
    """Bring retries, edits and what waits back, and wake jobs; return the jobs whose watermark lies ahead."""
    now = transaction.now
    step = now + rows.length(STEP)
    transaction.execute(Q.bring_runs_back, (now, step))
    transaction.execute(Q.bring_retries_back, (now, now, step))
    told = transaction.execute(Q.told_ahead, (step,) * 5).fetchall()
    for key, _ in told:
        transaction.execute(Q.rewind_pauses, (now, now, key, now, now))
        transaction.execute(Q.bring_told_back, (now, key))
        wake(transaction, key, revise=True)
    foretell(transaction, definitions, [id_ for _, id_ in told])
    transaction.execute(Q.bring_waiting_back, (now, step, now))
    if transaction.execute(Q.was_ahead, (step, step, step)).fetchone()[0]:
        transaction.execute(Q.wake_jobs_ahead, (now, now))
        transaction.rang = True
    found = transaction.execute(Q.jobs_ahead, (now + rows.length(AHEAD),)).fetchall()
    return [(name, rows.moment(watermark)) for name, watermark in found]


def rewind(transaction: Transaction, key: int) -> bool:
    """Set a watermark that lies ahead back to now; return whether it lay ahead."""
    now = transaction.now
    watermark, undone_after = transaction.execute(Q.decided_through, (now, key)).fetchone()
    if watermark <= now:
        return False
    transaction.execute(Q.undo_spans, (key, now))
    transaction.execute(Q.rewind_pauses, (now, now, key, now, now))
    transaction.execute(Q.rewind, (now if undone_after is None else min(now, undone_after), now, now, now, key))
    return True
