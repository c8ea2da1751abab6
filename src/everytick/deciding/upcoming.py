"""When a job runs next, as far as can be said now: its instants, with what people have said about them."""

from datetime import UTC, datetime

from everytick.deciding.candidates import TICK, in_force, next_instant
from everytick.deciding.unnamed import window_of
from everytick.domain.schedule import waits_for_end
from everytick.domain.snapshots import JobSnapshot, Pause

_NEVER = datetime.max.replace(tzinfo=UTC)
# So many instants that somebody skipped or moved are passed by in one answer.
_LOOKS = 10_000


def upcoming(snapshot: JobSnapshot, now: datetime, n: int) -> list[datetime]:
    """Return up to `n` times after now at which the job will run, if a node is there and nobody says otherwise.

    Pauses that skip, single instants that are skipped or moved, and a reschedule are seen;
    what overlap and recovery will say then is not known before.
    """
    if snapshot.retire_at is not None:
        return []
    found = {each for each in _by_hand(snapshot, now) if _pause_over(snapshot, each) is None}
    idle = not snapshot.busy_count and not snapshot.waiting_count
    away = {each.at for each in snapshot.adjustments if each.vacates}
    at, named = now, 0
    for _ in range(_LOOKS):
        instant = next_instant(snapshot, at, idle=idle)
        if instant is None or named >= n:
            break
        at, held = instant, _held_until(snapshot, instant)
        if held is None:
            if instant not in away:
                found.add(instant)
                named += 1
        elif held == _NEVER:
            break
        else:
            at = held
    return sorted(found)[:n]


def is_active(snapshot: JobSnapshot, now: datetime) -> bool:
    """Tell whether now lies inside the job's window, and something of its schedule is still to come."""
    if snapshot.retire_at is not None:
        return False
    job = in_force(snapshot.editions, now)
    starts = [each for each in (job.settings.start, window_of(job.schedule)[0]) if each is not None]
    if starts and now < max(starts):
        return False
    if _by_hand(snapshot, now) or snapshot.busy_count or snapshot.waiting_count:
        return True
    if waits_for_end(job.schedule):
        return job.settings.end is None or now <= job.settings.end
    return job.bound(None).next_after(now) is not None


def _by_hand(snapshot: JobSnapshot, now: datetime) -> list[datetime]:
    """The times after now that somebody set: targets of moves and of a reschedule."""
    found = [each.to for each in snapshot.adjustments if each.to is not None and each.vacates and not each.done]
    if snapshot.reschedule is not None:
        found.append(snapshot.reschedule.to)
    return [each for each in found if each > now]


def _held_until(snapshot: JobSnapshot, instant: datetime) -> datetime | None:
    """The end of what holds this instant back: a reschedule or a pause; None if nothing does."""
    moved = snapshot.reschedule
    if moved is not None and moved.made_at < instant < moved.to:
        return moved.to - TICK
    return _pause_over(snapshot, instant)


def _pause_over(snapshot: JobSnapshot, instant: datetime) -> datetime | None:
    pause = pause_at(snapshot, instant)
    if pause is None:
        return None
    return pause.until or _NEVER


def pause_at(snapshot: JobSnapshot, instant: datetime) -> Pause | None:
    """Return the pause that covers an instant: a pause is `(since, until]`."""
    for pause in snapshot.pauses:
        if pause.since < instant and (pause.until is None or instant <= pause.until):
            return pause
    return None
