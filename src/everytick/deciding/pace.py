"""How fast a backfill goes: its rate, halved while failures or the store's latency rise, and doubled again after that.

No minute sees more starts than the pace: what began within the last minute and what has not begun yet are
both counted before another one is made. Everything made before may begin in the same minute as the new one.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from everytick.domain.backfills import WINDOW, OpenBackfill
from everytick.domain.snapshots import JobSnapshot

SLOW = timedelta(milliseconds=500)
"""A store that answers a planner later than this is busy: it usually takes a few milliseconds."""

FAILED_SHARE = 4
"""The pace is halved if at least one end in this many is a failure."""

_SECOND = timedelta(seconds=1)
_GATHERED = timedelta(seconds=10)
"""A planner that comes late may create at once what this time would have allowed."""


def with_latency(snapshot: JobSnapshot, seconds: float) -> JobSnapshot:
    """Return the snapshot with how long the store took to answer the planner, which only an open backfill asks for."""
    if snapshot.backfill is None:
        return snapshot
    return replace(snapshot, backfill=replace(snapshot.backfill, latency=timedelta(seconds=seconds)))


def paced(backfill: OpenBackfill, now: datetime) -> tuple[int, datetime]:
    """Return the pace from now on, and when it was judged. It is judged by a whole minute, and is at least 1."""
    pace, since = backfill.pace, min(backfill.paced_at, now)
    if now - since < WINDOW:
        return pace, since
    if _is_troubled(backfill):
        return max(pace // 2, 1), now
    if backfill.recent.ended:
        return min(pace * 2, backfill.order.rate), now
    return pace, since


def allowance(backfill: OpenBackfill, pace: int, now: datetime) -> int:
    """Return how many more may be made now."""
    recent = backfill.recent
    room = pace - recent.started - recent.unstarted
    if room <= 0 or now < next_at(backfill, pace, now):
        return 0
    gathered = _SECOND if backfill.filled_at is None else min(now - backfill.filled_at, _GATHERED)
    return min(room, max(1, int(pace * gathered / WINDOW)))


def next_at(backfill: OpenBackfill, pace: int, now: datetime) -> datetime:
    """Return when the next one may be made, as far as only time decides."""
    last = backfill.filled_at
    # After a clock was set back, the last one lies ahead.
    return now if last is None else min(last, now) + WINDOW / pace


def looked_again(pace: int) -> timedelta:
    """Return after how long a backfill may create more: a second, or the time that the pace asks for."""
    return max(_SECOND, WINDOW / pace)


def _is_troubled(backfill: OpenBackfill) -> bool:
    recent = backfill.recent
    is_slow = backfill.latency is not None and backfill.latency > SLOW
    return is_slow or (recent.failed > 0 and recent.failed * FAILED_SHARE >= recent.ended)
