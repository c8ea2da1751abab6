"""The beat: looks at the clock of Redis once in an interval, and puts what is due into a queue.

Each tick reads what is due and takes the locks, decides by `decide`, hands the jobs to the queue, and commits what it
decided if the record is still the one it decided from. What goes wrong is logged and left to the next tick.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING

from everytick.beat.decision import RULE_ERRORS, decide, is_ours
from everytick.beat.enrolling import Enrolling
from everytick.beat.handing import Handing
from everytick.beat.logs import BeatLog
from everytick.beat.meter import BeatMeter
from everytick.beat.records import DEFAULT_PREFIX, BeatKeys, rfc3339
from everytick.beat.redis_client import Unanswered, connected
from everytick.beat.store import BeatCommit, BeatStore, HeldSchedule, chunks
from everytick.domain import texts
from everytick.domain.durations import duration, format_duration
from everytick.domain.policies import FirstSight
from everytick.errors import EverytickError, InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime

    from everytick.beat.definition import ScheduleState
    from everytick.beat.handing import HandedJob
    from everytick.beat.queues import JobQueue
    from everytick.beat.redis_client import BeatRedis
    from everytick.beat.registry import Registry
    from everytick.beat.store import TickLook

_SHORTEST = timedelta(milliseconds=1)
"""Redis counts the lives of locks in milliseconds."""

_FIRST_SIGHTS = (FirstSight.IMMEDIATELY, FirstSight.NEXT)


class BeatService:
    """A beat of a registry. Any number of them may run on one Redis: each time is put into the queue once.

    `redis` is an address, or a client of redis-py's asyncio. `on_create` says what happens to a schedule that has
    never run: `immediately` lets it run for its last time before now, `next` lets it wait for its next one. `clock`
    takes the place of the server's clock in tests.
    """

    def __init__(
        self,
        registry: Registry,
        queue: JobQueue,
        redis: BeatRedis,
        *,
        interval: str | timedelta = "1s",
        lock_ttl: str | timedelta = "60s",
        prefix: str = DEFAULT_PREFIX,
        on_create: str = FirstSight.IMMEDIATELY,
        clock: Callable[[], Awaitable[datetime]] | None = None,
    ) -> None:
        self._registry, self._clock = registry, clock
        self.interval, self.lock_ttl = _length("interval", interval), _length("lock_ttl", lock_ttl)
        if on_create not in _FIRST_SIGHTS:
            raise InvalidSetting("on_create", on_create, f"must be {' or '.join(_FIRST_SIGHTS)}")
        if not prefix or not isinstance(prefix, str):
            raise InvalidSetting("prefix", prefix, "must be text to begin the names of keys with, like bananas")
        self._first = FirstSight(on_create)
        self._client, self._is_ours = connected(redis)
        self._store = BeatStore(self._client, BeatKeys(prefix), self.lock_ttl)
        self._log, self._meter = BeatLog(), BeatMeter()
        self._enrolling = Enrolling(registry, self._store, self._log, self.interval)
        self._handing = Handing(queue, self._log, self._meter, self.lock_ttl)
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Tick until `stop` is called or the task is canceled. The tick that is under way is finished first."""
        self._log.info(texts.STARTED, interval=format_duration(self.interval))
        try:
            while not self._stopping.is_set():
                begun = monotonic()
                await _finished(self.tick())
                left = self.interval.total_seconds() - (monotonic() - begun)
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(left, 0)):
                        await self._stopping.wait()
        finally:
            self._log.info(texts.STOPPING)

    def stop(self) -> None:
        """Let `run` end after the tick that is under way."""
        self._stopping.set()

    async def close(self) -> None:
        """Close the connections, unless the client was given."""
        if self._is_ours:
            await self._client.aclose()

    async def __aenter__(self) -> BeatService:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def state(self, id: str) -> ScheduleState:
        """Return what Redis holds of a schedule. Nothing is known of one that never ran.

        Raise StoreUnavailable if Redis does not answer, and UnreadableRecord if another program wrote what is there.
        """
        return await self._store.state(id)

    def metrics(self) -> str:
        """Return what this beat has counted, in Prometheus' text format."""
        return self._meter.text()

    async def tick(self) -> int:
        """Put what is due into the queue; return how many jobs that were. What goes wrong is logged, not raised."""
        try:
            look = await self._look()
        except Unanswered as error:
            self._log.error(texts.NO_STATE, error=_said(error))
            return 0
        sent = 0
        open_: dict[str, datetime | None] = {}
        for ids in chunks([id for id in look.due if self._registry.entry(id) is not None]):
            sent += await self._fire(ids, look.now, open_)
        self._enrolling.looked(look.now, open_)
        return sent

    async def _look(self) -> TickLook:
        """Ask what is due. If Redis lacks schedules that this beat knows, tell it of them, and ask again."""
        now = None if self._clock is None else await self._clock()
        look = await self._store.look(now)
        if await self._enrolling.tell(look):
            look = await self._store.look(now)
        return look

    async def _fire(self, ids: Sequence[str], now: datetime, open_: dict[str, datetime | None]) -> int:
        """Take the locks, decide again from what is recorded now, hand over and commit.

        Schedules that stay due are noted in `open_`, each with the time through which it was decided before.
        """
        held = await self._hold(ids, open_)
        commits = [commit for schedule in held if (commit := self._decided(schedule, now)) is not None]
        decided = {commit.held.id for commit in commits}
        handed = await self._handing.hand_over(self._registry, commits, now)
        failed, done = [job for job in handed if job.error], [job for job in handed if job.is_done]
        before = {commit.held.id: commit.record.recorded.decided_through for commit in commits}
        open_.update({job.commit.held.id: before[job.commit.held.id] for job in failed})
        try:
            await self._fail(failed)
            await self._store.release([schedule for schedule in held if schedule.id not in decided])
            return await self._commit(done)
        except Unanswered as error:
            open_.update(before)
            self._log.error(texts.NOT_RECORDED, schedule_ids=list(ids), error=_said(error))
            return 0

    async def _hold(self, ids: Sequence[str], open_: dict[str, datetime | None]) -> list[HeldSchedule]:
        """Return the schedules whose locks this beat has now."""
        held: list[HeldSchedule] = []
        for schedule in await self._store.hold(ids):
            if isinstance(schedule, HeldSchedule):
                held.append(schedule)
                continue
            self._meter.of(schedule.id).lock_failures += 1
            if schedule.problem:
                open_[schedule.id] = None
                error = texts.LOCK_FAILED.format(cause=schedule.problem)
                self._log.error(texts.NO_LOCK, schedule_id=schedule.id, error=error)
            else:
                self._log.debug(texts.LOCKED, schedule_id=schedule.id)
        return held

    def _decided(self, held: HeldSchedule, now: datetime) -> BeatCommit | None:
        """Return what to commit about a schedule, or None where this beat has nothing to say."""
        entry = self._registry.entry(held.id)
        if held.record is None:
            self._log.error(texts.NO_STATE, schedule_id=held.id, error=held.problem)
            return None
        if entry is None:
            return None
        if not is_ours(entry, held.record.recorded, self._enrolling.started_at):
            self._enrolling.left_to_newer(held.id)
            return None
        try:
            decision = decide(entry, held.record.recorded, now, self._first)
        except RULE_ERRORS as error:
            self._log.error(texts.NO_NEXT_RUN, schedule_id=held.id, error=_said(error))
            return None
        return BeatCommit(held, held.record, decision, entry.definition, now, now)

    async def _fail(self, failed: Sequence[HandedJob]) -> None:
        """Record what could not be put into the queue."""
        for job, refused in zip(
            failed, await self._store.fail([(job.commit.held, job.error) for job in failed]), strict=True
        ):
            if refused:
                self._log.error(texts.NOT_RECORDED, schedule_id=job.commit.held.id, error=refused)

    async def _commit(self, handed: Sequence[HandedJob]) -> int:
        """Record what was handed over. A record that has changed meanwhile is another beat's, and stays."""
        if not handed:
            return 0
        sent = 0
        for job, answer in zip(handed, await self._store.commit([job.commit for job in handed]), strict=True):
            id, decision = job.commit.held.id, job.commit.decision
            if isinstance(answer, str):
                self._log.error(texts.NOT_RECORDED, schedule_id=id, error=answer)
            elif not answer:
                self._meter.of(id).lock_failures += 1
                self._log.debug(texts.TAKEN_BY_ANOTHER, schedule_id=id)
            elif decision.run is None:
                self._meter.of(id).next_run = decision.look_at
            else:
                sent += 1
                self._meter.ran(id, decision.run.scheduled_at, decision.look_at, job.length)
                self._tell(job)
        return sent

    def _tell(self, handed: HandedJob) -> None:
        job = handed.job
        assert job is not None, "what was put into the queue is a job"
        self._log.info(
            texts.ENQUEUED,
            schedule_id=job.schedule_id,
            job_name=job.name,
            job_id=job.id,
            priority=str(job.priority),
            next_run=rfc3339(handed.commit.decision.look_at),
        )


async def _finished(work: Awaitable[int]) -> None:
    """Await work that is not broken off: a cancellation counts once it is done."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _length(setting: str, given: str | timedelta) -> timedelta:
    try:
        length = duration(given)
    except EverytickError as error:
        raise InvalidSetting(setting, given, str(error)) from error
    if length < _SHORTEST:
        raise InvalidSetting(setting, given, "must be 1ms or longer")
    return length


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__
