"""Leftovers of earlier instances in the store, settled so that each task runs at most once for all of them.

A task may have been left running, waiting for its turn, or waiting for a retry, and its
minute may have come while no instance ran. One of these becomes the run that makes up for the
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

_CANCELS_AT_ONCE = 500
"""Most cancels that are sent to the store at the same time."""

_LAST_PAGE = 20
"""Most ended occurrences that are read in one call to find the last attempt."""


@value
class Leftovers:
    """The occurrences to cancel, end and restart. Others stay as they are."""

    cancel: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


async def active_of(store: AnyStore, job_ids: Collection[str]) -> dict[str, list[Occurrence]]:
    """Return the active occurrences of these jobs, newest first."""
    by_job: dict[str, list[Occurrence]] = {}
    cursor = None
    while True:
        page = await store.history(HistoryFilter(statuses=ACTIVE, limit=1000, cursor=cursor))
        for occurrence in page.occurrences:
            if occurrence.job_id in job_ids:
                by_job.setdefault(occurrence.job_id, []).append(occurrence)
        cursor = page.cursor
        if cursor is None:
            return by_job


def is_running(occurrence: Occurrence) -> bool:
    """Whether a callback of it was started and has not ended. After a crash its instance is dead."""
    return occurrence.status is OccurrenceStatus.RUNNING


def is_running_in(occurrence: Occurrence, instances: Collection[str]) -> bool:
    """Whether a callback of it runs in one of these living instances: then it is no orphan (C-43)."""
    return is_running(occurrence) and occurrence.owner in instances


def is_retrying(occurrence: Occurrence) -> bool:
    """Whether it waits for a retry."""
    return occurrence.status is OccurrenceStatus.AWAITING_RETRY


def leftovers(record: JobRecord, active: Sequence[Occurrence], now: datetime, *, has_run: bool) -> Leftovers:
    """Decide which active occurrences of one registered task are canceled, ended or restarted. Newest first."""
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
    """Whether a minute of the task has come that is not planned: the planner will plan it at once."""
    last = record.job.bound(None).last_at(now)
    return record.job.enabled and last is not None and last > record.watermark


def _came_before_it_went(record: JobRecord) -> bool:
    """Whether the task is disabled and has an unplanned minute from before: the planner will plan it."""
    went = record.job.updated_at
    last = None if record.job.enabled or went is None else record.job.bound(None).last_at(went)
    return last is not None and last > record.watermark


def may_be_owed(record: JobRecord, schedule: Schedule, now: datetime) -> bool:
    """Whether its last attempt must be read: the task was disabled, or its new expression matches this minute."""
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
    # The planner drops missed minutes of a task that never ran, except the present minute.
    is_planned = _is_due(record, now) and (attempted is not None or (missed is not None and now < missed + MINUTE))
    if is_planned or not all(map(is_retrying, active)):
        return None
    if current is not None and now < current + MINUTE and (attempted is None or attempted < current):
        return current
    was_away = not record.job.enabled
    return missed if was_away and attempted is not None and missed is not None and attempted < missed else None


async def settle(store: AnyStore, reaper: Reaper, of_tasks: Iterable[Leftovers], active: Iterable[Occurrence]) -> None:
    """Cancel, end and restart the active occurrences as decided. No living instance runs them.

    What is ended or restarted is taken over from the dead instance that held it, with all else it held.
    """
    decided = list(of_tasks)
    await cancel(store, [id_ for leftovers in decided for id_ in leftovers.cancel], SUPERSEDED)
    ends = {id_ for leftovers in decided for id_ in leftovers.end}
    restarts = {id_ for leftovers in decided for id_ in leftovers.restart}
    dead = {
        occurrence.owner for occurrence in active if occurrence.owner is not None and occurrence.id in ends | restarts
    }
    if dead:
        await reaper.take_over(dead, ends, SUPERSEDED)
    # The reaper of another node may have taken them over first, and would restart them.
    await cancel(store, sorted(ends), SUPERSEDED)


async def cancel(store: AnyStore, ids: Sequence[str], reason: str) -> None:
    """Cancel these occurrences, which no node runs."""
    for place in range(0, len(ids), _CANCELS_AT_ONCE):
        await asyncio.gather(*(store.request(id_, Cancel(reason)) for id_ in ids[place : place + _CANCELS_AT_ONCE]))


async def was_attempted(store: AnyStore, occurrence: Occurrence) -> bool:
    """Whether its callback was called. A claim that was given back before that does not count."""
    if occurrence.started_at is None or occurrence.status is OccurrenceStatus.RUNNING:
        return occurrence.started_at is not None
    return bool((await store.whole(occurrence.id)).attempts)


async def last_attempt_at(store: AnyStore, record: JobRecord) -> datetime | None:
    """Return when a callback of the task was last called, as far as the history goes."""
    cursor = None
    while True:
        # After a long callback come any number of minutes that did not run.
        page = await store.history(HistoryFilter(job_id=record.job.id, limit=_LAST_PAGE, cursor=cursor))
        for occurrence in page.occurrences:
            if await was_attempted(store, occurrence):
                return await _attempted_at(store, occurrence)
        cursor = page.cursor
        if cursor is None:
            return None


async def _attempted_at(store: AnyStore, occurrence: Occurrence) -> datetime | None:
    begun = [attempt.started_at for _, attempt in (await store.whole(occurrence.id)).attempts]
    # A running attempt may have no row yet.
    claimed = occurrence.started_at if is_running(occurrence) else None
    return max(filter(None, [claimed, *begun]), default=None)


async def awaits_retry(store: AnyStore, occurrence: Occurrence) -> bool:
    """Whether the occurrence waits for a retry, also if that is due and only waits for a claim."""
    if occurrence.status is OccurrenceStatus.AWAITING_RETRY:
        return True
    if occurrence.status is not OccurrenceStatus.PENDING or occurrence.started_at is None:
        return False
    attempts = (await store.whole(occurrence.id)).attempts
    return bool(attempts) and attempts[-1][1].status in (AttemptStatus.FAILED, AttemptStatus.TIMEOUT)
