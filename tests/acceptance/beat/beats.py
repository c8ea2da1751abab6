"""What the tests of beats on Redis share: a clock to move, a queue that remembers, and beats that tick on and on."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from everytick.beat import BeatService, EnqueuedJob, JobQueue, Registry, Schedule

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
BEGIN = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
PATIENCE_SECONDS = 60


class Clock:
    """A time that stands until it is moved."""

    def __init__(self, now: datetime = BEGIN) -> None:
        self.now = now

    async def __call__(self) -> datetime:
        return self.now


class Heard:
    """A queue outside of Redis that keeps every job it is given, also one that comes twice. It can be made to fail."""

    def __init__(self) -> None:
        self.jobs: list[EnqueuedJob] = []
        self._came = asyncio.Event()
        self.error: Exception | None = None

    async def enqueue(self, job: EnqueuedJob) -> None:
        """Keep the job."""
        if self.error is not None:
            raise self.error
        self.jobs.append(job)
        self._came.set()

    async def reach(self, count: int) -> None:
        """Return once so many jobs have come."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.jobs) < count:
                self._came.clear()
                await self._came.wait()

    @property
    def instants(self) -> list[datetime]:
        """The times of the jobs, in the order in which they came."""
        return [job.scheduled_at for job in self.jobs]

    @property
    def doubles(self) -> list[tuple[str, datetime]]:
        """What came more than once."""
        counted = Counter((job.schedule_id, job.scheduled_at) for job in self.jobs)
        return [each for each, number in counted.items() if number > 1]


def registry_of(*schedules: Schedule) -> Registry:
    """Return a registry of these schedules."""
    registry = Registry()
    for schedule in schedules:
        registry.register(schedule)
    return registry


def minutely(id: str = "pulse", **changes: Any) -> Schedule:
    """Return a schedule that is due every minute."""
    return Schedule(**{"id": id, "cron": "* * * * *", "job": f"job-{id}", **changes})


class Place:
    """Where beats are: a Redis, a clock and a queue. All beats are closed with it."""

    def __init__(self, address: str, closing: AsyncExitStack) -> None:
        self.address, self.clock, self.queue = address, Clock(), Heard()
        self._closing = closing

    def beat(self, registry: Registry, queue: JobQueue | None = None, **settings: Any) -> BeatService:
        """Return a beat of a registry, on this clock unless the settings say otherwise."""
        given = {"clock": self.clock, **settings}
        beat = BeatService(registry, self.queue if queue is None else queue, self.address, **given)
        self._closing.push_async_callback(beat.close)
        return beat


async def until(question: Callable[[], Awaitable[Any]]) -> None:
    """Return once the answer is yes."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if await question():
                return
            await asyncio.sleep(0)


class Fleet:
    """Beats that tick again and again, each on a connection of its own."""

    def __init__(self, beats: Sequence[BeatService]) -> None:
        self.beats = beats
        self.ticks = [0] * len(beats)
        self._moved = asyncio.Event()
        self._is_over = False

    async def _tick_on(self, number: int) -> None:
        while not self._is_over:
            await self.beats[number].tick()
            self.ticks[number] += 1
            self._moved.set()
            await asyncio.sleep(0)

    async def turn(self) -> None:
        """Return once every beat has made two ticks: one of them has begun after this call."""
        wanted = [number + 2 for number in self.ticks]
        async with asyncio.timeout(PATIENCE_SECONDS):
            while any(made < least for made, least in zip(self.ticks, wanted, strict=True)):
                self._moved.clear()
                await self._moved.wait()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Fleet"]:
        """Let the beats tick inside `with`, and finish their ticks afterwards. One that ends early ends all."""
        async with asyncio.TaskGroup() as group:
            for number in range(len(self.beats)):
                group.create_task(self._tick_on(number))
            try:
                yield self
            finally:
                self._is_over = True


@contextmanager
def listening() -> Iterator[list[logging.LogRecord]]:
    """Give the records that beats log inside `with`."""
    found: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record)

    log, handler = logging.getLogger("everytick.beat"), Keep()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield found
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def said(records: Sequence[logging.LogRecord], *fields: str) -> list[tuple[Any, ...]]:
    """Return level, sentence and these fields of every record."""
    return [
        (record.levelname, record.getMessage(), *(getattr(record, field, None) for field in fields))
        for record in records
    ]
