"""A beat and a worker on one Redis: a job every minute, taken from a Redis list.

    python examples/beat.py redis://localhost

Start it twice: each minute is still worked on once. Ctrl-C stops it. Needs: pip install '.[redis]'
"""

import asyncio
import json
import sys
from contextlib import suppress

from redis.asyncio import Redis

from everytick.beat import BeatService, RedisQueue, Registry, Schedule

registry = Registry()
registry.must_register("tidy", Schedule(cron="* * * * *", job="tidy_up", payload={"max_age_days": 30}))
registry.must_register(
    "report", Schedule(cron="0 9 * * 1", job="send_report", priority="high", timezone="Europe/Berlin")
)


async def work(client: Redis, lists: list[str]) -> None:
    """Take jobs, the urgent ones first, and do what they name."""
    while True:
        taken = await client.brpop(lists, timeout=0)
        if taken is not None:
            job = json.loads(taken[1])
            print(job["name"], job["payload"], "for", job["metadata"]["scheduled_at"], flush=True)


async def main(address: str) -> None:
    """Run a beat and a worker beside each other."""
    queue, client = RedisQueue(address), Redis.from_url(address, socket_timeout=None)
    async with BeatService(registry, queue, address) as beat, asyncio.TaskGroup() as group:
        group.create_task(beat.run())
        group.create_task(work(client, queue.lists))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "redis://localhost"))
