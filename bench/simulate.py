"""How long the coming month takes: a hundred jobs through thirty days, decided by the real `plan`.

    python3 dev.py bench simulate

The mix is what a company has: some every few minutes, most by the hour or by night, in zones
that change their clocks, with every rule for overlaps. The limit is 5 seconds; what counts is the
time of this process on a processor in the quieter of two rounds, since the machine is shared.
"""

import asyncio
import sys
import timeit
from datetime import timedelta
from time import process_time

from everytick import schedule
from everytick.domain.changes import Put
from everytick.domain.ids import occurrence_id
from everytick.domain.job import Job, define_job, define_task
from everytick.schedules.combine import in_zone
from everytick.schedules.timezones import zone
from everytick.simulate.forecast import Forecast, foresee
from everytick.stores.memory import MemoryStore
from everytick.testing import ManualClock

LIMIT = 5.0
ROUNDS = 2
START = "2026-10-16T07:13:00Z"
RULES = (
    *[("*/5 * * * *", "skip", 40)] * 6,
    *[("H/15 * * * *", "queue", 90)] * 10,
    *[("7-59/20 8-18 * * mon-fri", "skip", 1500)] * 10,
    *[("H * * * *", "queue_latest", 300)] * 25,
    *[("30 2 * * *", "queue", 2400)] * 25,
    *[("0 3 * * 1-5", "allow", 600)] * 12,
    *[("every 2m", "skip", 5)] * 5,
    *[("every 10m", "cancel_running", 700)] * 3,
    *[("0 0 1,15 * *", "skip", 7200)] * 1,
    *[("after: 30m", "skip", 60)] * 3,
)


def jobs() -> list[Job]:
    return [_job(number, *rule) for number, rule in enumerate(RULES)]


def _job(number: int, rule: str, overlap: str, seconds: int) -> Job:
    name = f"job-{number}"
    policies: dict[str, object] = {
        "overlap": overlap,
        "timezone": ("Europe/Berlin", "UTC", "America/New_York")[number % 3],
    }
    policies |= {"task_timeout": None, "jitter": "5m" if rule == "30 2 * * *" else None}
    task = define_task(name, name, target='{"command": ["true"]}')
    return define_job(
        name, schedule(rule), policies=policies, tasks=[task], in_zone=lambda each, tz: in_zone(each, zone(tz))
    )


async def month() -> tuple[Forecast, float]:
    store = MemoryStore(ManualClock(START))
    await store.apply([Put(job) for job in jobs()])
    given = {f"job-{number}": timedelta(seconds=seconds) for number, (_, _, seconds) in enumerate(RULES)}
    begun = process_time()
    found = await foresee(store, timedelta(days=30), slots=20, given=given)
    return found, process_time() - begun


def main() -> int:
    found, seconds = min((asyncio.run(month()) for _ in range(ROUNDS)), key=lambda round_: round_[1])
    runs = sum(each.runs for each in found.tallies)
    ids = min(timeit.repeat(lambda: occurrence_id("job_x", found.start), number=2_000, repeat=20)) / 2_000
    print(f"one occurrence id {ids * 1e6:.2f} µs, at the quietest: how fast this machine is just now")
    print(f"{len(RULES)} jobs, 30 days: {runs:,} runs in {seconds:.2f} s, {seconds / runs * 1e6:.1f} µs a run")
    print(f"limit {LIMIT} s: {'kept' if seconds <= LIMIT else 'broken'}")
    return 0 if seconds <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
