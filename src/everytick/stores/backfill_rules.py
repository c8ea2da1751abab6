"""Rules that every store follows when people plan a backfill or say what becomes of it."""

from datetime import datetime

from everytick.domain.backfills import LEADS_TO, OPEN_LIMIT, BackfillStatus, OpenBackfill
from everytick.domain.durations import MICROSECOND
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import Conflict, shown
from everytick.stores.base import Receipt

EXISTING_LIMIT = 1_000
"""Most occurrences of the time to fill that a snapshot names. The next snapshot goes on behind them."""

FAILED = frozenset({OccurrenceStatus.FAILED, OccurrenceStatus.FAILED_STALE, OccurrenceStatus.COMPLETED_WITH_ERRORS})
"""The ends that count as failures of a backfill."""

_S = BackfillStatus
_DONE = {_S.RUNNING: "approved or resumed", _S.PAUSED: "paused", _S.CANCELED: "canceled"}


def looked_at(rate: int) -> int:
    """Return how many of the newest occurrences of a backfill are looked at, to see how many of them began lately.

    They begin in the order in which they were made, more or less: those that began in the last minute and those that
    have not begun are among the newest.
    """
    return 4 * rate + 100


def steered(id_: str, status: BackfillStatus, to: BackfillStatus) -> Receipt:
    """Return whether a backfill of this status changes. Raise Conflict if it cannot."""
    if status is to:
        return Receipt(id_, changed=False)
    if status not in LEADS_TO[to]:
        seen = "over" if status in (_S.FILLED, _S.COMPLETED, _S.CANCELED) else str(status)
        raise Conflict(f"backfill {shown(id_)} is {seen}: it cannot be {_DONE[to]}")
    return Receipt(id_, changed=True)


def refuse_crowd(name: str, open_: int) -> None:
    """Raise Conflict if as many backfills of the job are open as may be."""
    if open_ >= OPEN_LIMIT:
        text = f"job '{shown(name)}' has {open_} backfills that are not filled yet: wait for one of them, or cancel one"
        raise Conflict(text)


def known_stretch(backfill: OpenBackfill, last: datetime | None) -> tuple[datetime | None, datetime | None]:
    """Return the stretch of time for which the occurrences read are all there are; `last` is the last one read.

    None stands for an end that is that of the backfill.
    """
    if last is None:
        return None, None
    # Of many with one time some may be unknown. Those are not made twice: the store knows their ids.
    return (last - MICROSECOND, None) if backfill.order.newest_first else (None, last)


def stopped_because(by: str) -> str:
    """Return the reason of an occurrence that ends with its backfill."""
    return f"backfill canceled by {by}" if by else "backfill canceled"
