"""Handing jobs over to the queue: within the life of their locks, each error kept beside its job."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING

from everytick.beat.queues import BatchQueue, EnqueuedJob
from everytick.beat.redis_client import Unanswered
from everytick.domain import texts
from everytick.domain.redaction import redacted
from everytick.domain.values import value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from everytick.beat.logs import BeatLog
    from everytick.beat.meter import BeatMeter
    from everytick.beat.queues import JobQueue
    from everytick.beat.registry import Registry
    from everytick.beat.store import BeatCommit


@value
class HandedJob:
    """A decision whose job, if it has one, was handed over; `error` says why that failed.

    `is_left` says that the job was not handed over: its lock had ended before, and another beat may have it.
    """

    commit: BeatCommit
    job: EnqueuedJob | None = None
    error: str = ""
    length: timedelta = timedelta(0)
    is_left: bool = False

    @property
    def is_done(self) -> bool:
        """Whether it may be recorded as decided."""
        return not self.error and not self.is_left


class Handing:
    """Hands jobs to one queue. A queue has half the life of a lock to answer, so that the lock outlives it."""

    def __init__(self, queue: JobQueue, log: BeatLog, meter: BeatMeter, lock_ttl: timedelta) -> None:
        self._queue, self._log, self._meter = queue, log, meter
        self._answer_seconds = lock_ttl.total_seconds() / 2

    async def hand_over(self, registry: Registry, commits: Sequence[BeatCommit], now: datetime) -> list[HandedJob]:
        """Hand over every job of these decisions, and tell what became of each."""
        jobs = [(commit, _job(registry, commit, now)) for commit in commits]
        handed = [HandedJob(commit) for commit, job in jobs if job is None]
        due = [(commit, job) for commit, job in jobs if job is not None]
        if not due:
            return handed
        if isinstance(self._queue, BatchQueue):
            handed += await self._together(self._queue, due)
        else:
            handed += await self._one_by_one(due)
        for job_handed in handed:
            if job_handed.error:
                self._tell(job_handed)
        return handed

    async def _together(self, queue: BatchQueue, due: Sequence[tuple[BeatCommit, EnqueuedJob]]) -> list[HandedJob]:
        begun = monotonic()
        errors: Sequence[BaseException | None]
        try:
            async with asyncio.timeout(self._answer_seconds):
                errors = await queue.enqueue_batch([job for _, job in due])
            if len(errors) != len(due):
                raise ValueError(f"the queue answered for {len(errors)} of {len(due)} jobs")
        except Exception as error:  # noqa: BLE001, a queue may raise anything, and the next tick tries again
            errors = [error] * len(due)
        length = timedelta(seconds=monotonic() - begun)
        return [
            HandedJob(commit, job, "" if error is None else _said(error), length)
            for (commit, job), error in zip(due, errors, strict=True)
        ]

    async def _one_by_one(self, due: Sequence[tuple[BeatCommit, EnqueuedJob]]) -> list[HandedJob]:
        """Hand over each job when its turn comes. Locks that have grown old meanwhile are extended first."""
        held_at, handed = monotonic(), []
        for commit, job in due:
            if monotonic() - held_at > self._answer_seconds and not await _is_extended(commit):
                handed.append(HandedJob(commit, job, is_left=True))
            else:
                handed.append(await self._hand_one(commit, job))
        return handed

    async def _hand_one(self, commit: BeatCommit, job: EnqueuedJob) -> HandedJob:
        begun, error = monotonic(), ""
        try:
            async with asyncio.timeout(self._answer_seconds):
                await self._queue.enqueue(job)
        except Exception as raised:  # noqa: BLE001, a queue may raise anything, and the next tick tries again
            error = _said(raised)
        return HandedJob(commit, job, error, timedelta(seconds=monotonic() - begun))

    def _tell(self, handed: HandedJob) -> None:
        job = handed.job
        assert job is not None, "only a job can fail to be put into the queue"
        self._meter.failed(job.schedule_id, handed.length)
        self._log.error(texts.NOT_ENQUEUED, schedule_id=job.schedule_id, job_name=job.name, error=handed.error)


async def _is_extended(commit: BeatCommit) -> bool:
    """Keep the lock for another life; tell whether it was still ours."""
    try:
        return await commit.held.lock.extend()
    except Unanswered:
        return False


def _job(registry: Registry, commit: BeatCommit, now: datetime) -> EnqueuedJob | None:
    run, entry = commit.decision.run, registry.entry(commit.held.id)
    if run is None or entry is None:
        return None
    schedule = entry.schedule
    return EnqueuedJob(run.job_id, schedule.job, entry.payload, entry.priority, schedule.id, run.scheduled_at, now)


def _said(error: BaseException) -> str:
    """Return the error as it may be kept and logged: without what looks like a secret."""
    if isinstance(error, TimeoutError) and not str(error):
        return "the queue did not answer in time"
    return redacted(str(error) or type(error).__name__)
