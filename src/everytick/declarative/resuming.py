"""What an earlier instance left in the store, settled so that each task runs at most once for all of it.

A task may have been left running, waiting for its turn, or waiting for a retry, and its
minute may have come while nobody looked. One of these becomes the run that makes up for the
others (S2-011, S2-059): the minute that came last, else the newest that waits, else what was
left running, which is restarted.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

from everytick.domain.facts import Cancel
from everytick.domain.occurrence import Occurrence
from everytick.domain.schedule import Schedule
from everytick.domain.statuses import ACTIVE, AttemptStatus, OccurrenceStatus
from everytick.domain.values import value
from everytick.node.reaper import Reaper
from everytick.stores.addresses import AnyStore
from everytick.stores.base import HistoryFilter, JobRecord

MINUTE = timedelta(minutes=1)
SUPERSEDED = "a later run of this task stands for it"

_AT_ONCE = 500
_LOOKED_AT = 20


@value
class Leftovers:
    """What is to become of the occurrences that were found: those not named here stay as they are."""

    cancel: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


async def active_of(store: AnyStore, job_ids: Collection[str]) -> dict[str, list[Occurrence]]:
    """Return what is not over of these jobs, newest first."""
    found: dict[str, list[Occurrence]] = {}
    cursor = None
    while True:
        page = await store.history(HistoryFilter(statuses=ACTIVE, limit=1000, cursor=cursor))
        for occurrence in page.occurrences:
            if occurrence.job_id in job_ids:
                found.setdefault(occurrence.job_id, []).append(occurrence)
        cursor = page.cursor
        if cursor is None:
            return found


def is_running(occurrence: Occurrence) -> bool:
    """Whether a callback of it was started and has not ended: after a crash, by an instance that is gone."""
    return occurrence.status is OccurrenceStatus.RUNNING


def is_running_in(occurrence: Occurrence, instances: Collection[str]) -> bool:
    """Whether a callback of it runs in one of these, which live: it is no orphan (C-43)."""
    return is_running(occurrence) and occurrence.owner in instances


def is_retrying(occurrence: Occurrence) -> bool:
    """Whether it only waits for a retry."""
    return occurrence.status is OccurrenceStatus.AWAITING_RETRY


def leftovers(record: JobRecord, active: Sequence[Occurrence], now: datetime, *, has_run: bool) -> Leftovers:
    """Decide what becomes of everything that is not over of one registered task, newest first."""
    running = [occurrence.id for occurrence in active if is_running(occurrence)]
    waits = [
        occurrence for occurrence in active if occurrence.status in (OccurrenceStatus.PENDING, OccurrenceStatus.QUEUED)
    ]
    if not has_run:
        return Leftovers(cancel=tuple(wait.id for wait in waits if now >= wait.scheduled_for + MINUTE))
    if _is_due(record, now) or _came_before_it_went(record):
        return Leftovers(cancel=tuple(occurrence.id for occurrence in waits), end=tuple(running))
    if waits:
        return Leftovers(cancel=tuple(occurrence.id for occurrence in waits[1:]), end=tuple(running))
    return Leftovers(restart=tuple(running))


def _is_due(record: JobRecord, now: datetime) -> bool:
    """Whether a minute of the task came that nobody has decided about: the planner will, at once."""
    last = record.job.bound(None).last_at(now)
    return record.job.enabled and last is not None and last > record.watermark


def _came_before_it_went(record: JobRecord) -> bool:
    """Whether it is away, and a minute that came before nobody has decided about yet: the planner will, as before."""
    went = record.job.updated_at
    last = None if record.job.enabled or went is None else record.job.bound(None).last_at(went)
    return last is not None and last > record.watermark


def may_be_owed(record: JobRecord, schedule: Schedule, now: datetime) -> bool:
    """Whether a look at its last attempt is worth while: the task was away, or its new words match this minute."""
    current = schedule.last_at(now)
    return not record.job.enabled or (current is not None and now < current + MINUTE)


def owed(
    record: JobRecord, active: Sequence[Occurrence], schedule: Schedule, now: datetime, attempted: datetime | None
) -> datetime | None:
    """Return the minute that a task whose definition has just changed is to run for, if any (S2-019).

    The core lets a change fire nothing. The specification asks whether the expression matches
    the current minute and the task has not run in it (case A); and of a task that was not
    registered for a while, whether it missed a minute since it was last attempted (case B), by
    the words it had until now.
    """
    current, missed = schedule.last_at(now), record.job.bound(None).last_at(now)
    # What a task missed that never ran is dropped by the planner, unless it is the minute that is now.
    is_planned = _is_due(record, now) and (attempted is not None or (missed is not None and now < missed + MINUTE))
    if is_planned or not all(map(is_retrying, active)):
        return None
    if current is not None and now < current + MINUTE and (attempted is None or attempted < current):
        return current
    was_away = not record.job.enabled
    return missed if was_away and attempted is not None and missed is not None and attempted < missed else None


async def settle(store: AnyStore, reaper: Reaper, found: Iterable[Leftovers], active: Iterable[Occurrence]) -> None:
    """Do what was decided about what is active, which no living instance runs.

    What is ended or restarted is taken over from the dead instance that held it, with all else it held.
    """
    decided = list(found)
    await cancel(store, [id_ for leftovers in decided for id_ in leftovers.cancel], SUPERSEDED)
    ends = {id_ for leftovers in decided for id_ in leftovers.end}
    restarts = {id_ for leftovers in decided for id_ in leftovers.restart}
    dead = {
        occurrence.owner for occurrence in active if occurrence.owner is not None and occurrence.id in ends | restarts
    }
    if dead:
        await reaper.take_over(dead, ends, SUPERSEDED)
    # The reaper of another node may have been quicker, and would have them restarted.
    await cancel(store, sorted(ends), SUPERSEDED)


async def cancel(store: AnyStore, ids: Sequence[str], reason: str) -> None:
    """End these, which nobody runs."""
    for place in range(0, len(ids), _AT_ONCE):
        await asyncio.gather(*(store.request(id_, Cancel(reason)) for id_ in ids[place : place + _AT_ONCE]))


async def was_attempted(store: AnyStore, occurrence: Occurrence) -> bool:
    """Whether its callback was called; a claim that was given back before that does not count."""
    if occurrence.started_at is None or occurrence.status is OccurrenceStatus.RUNNING:
        return occurrence.started_at is not None
    return bool((await store.whole(occurrence.id)).attempts)


async def last_attempt_at(store: AnyStore, record: JobRecord) -> datetime | None:
    """Return when a callback of the task was last called, as far as retention keeps that."""
    cursor = None
    while True:
        # A callback that takes long has any number of minutes behind it that never ran.
        page = await store.history(HistoryFilter(job_id=record.job.id, limit=_LOOKED_AT, cursor=cursor))
        for occurrence in page.occurrences:
            if await was_attempted(store, occurrence):
                return await _attempted_at(store, occurrence)
        cursor = page.cursor
        if cursor is None:
            return None


async def _attempted_at(store: AnyStore, occurrence: Occurrence) -> datetime | None:
    begun = [attempt.started_at for _, attempt in (await store.whole(occurrence.id)).attempts]
    # The attempt that runs has no row yet.
    claimed = occurrence.started_at if is_running(occurrence) else None
    return max(filter(None, [claimed, *begun]), default=None)


async def awaits_retry(store: AnyStore, occurrence: Occurrence) -> bool:
    """Whether the occurrence waits for a retry, also where that is due and it only waits for somebody to claim it."""
    if occurrence.status is OccurrenceStatus.AWAITING_RETRY:
        return True
    if occurrence.status is not OccurrenceStatus.PENDING or occurrence.started_at is None:
        return False
    attempts = (await store.whole(occurrence.id)).attempts
    return bool(attempts) and attempts[-1][1].status in (AttemptStatus.FAILED, AttemptStatus.TIMEOUT)
