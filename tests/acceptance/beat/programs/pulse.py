"""One beat in a process of its own, on a clock that stands in Redis. It may stop itself in the middle of a tick.

    python pulse.py ADDRESS LOCK_TTL

A key `freeze:before` or `freeze:after` stops the process that takes it away, before or after it puts jobs into the
queue: as a debugger, a suspended machine or a long pause of the processor would.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from datetime import datetime

from redis.asyncio import Redis

from everytick.beat import BeatService, EnqueuedJob, RedisQueue, Registry, Schedule


class FreezingQueue(RedisQueue):
    """A queue of Redis lists whose process stops where it is told to."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.told = Redis.from_url(address, decode_responses=True)

    async def enqueue_batch(self, jobs: Sequence[EnqueuedJob]) -> Sequence[BaseException | None]:
        """Put the jobs into the queue."""
        await self._freeze("before")
        answers = await super().enqueue_batch(jobs)
        await self._freeze("after")
        return answers

    async def _freeze(self, moment: str) -> None:
        if await self.told.getdel(f"freeze:{moment}"):
            os.kill(os.getpid(), signal.SIGSTOP)


async def main(address: str, lock_ttl: str) -> None:
    """Tick until the process is killed, and count the ticks."""
    registry = Registry()
    registry.must_register("pulse", Schedule(cron="* * * * *", job="beat"))
    queue = FreezingQueue(address)

    async def clock() -> datetime:
        return datetime.fromisoformat(str(await queue.told.get("clock")))

    beat = BeatService(registry, queue, address, lock_ttl=lock_ttl, clock=clock)
    while True:
        await beat.tick()
        await queue.told.incr(f"ticks:{os.getpid()}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
