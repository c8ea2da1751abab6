"""How long a diff takes: ten thousand jobs that all change, their runs of thirty days before and after.

    python3 dev.py bench diff

Half of them run by the night, the others by the hour, some in zones that change their clocks. Each moves by some
minutes, under the policy `graceful`, so that versions are still to come. The limit is 10 seconds; what counts is the
time of this process on a processor in the quieter of two rounds, since the machine is shared.
"""

import asyncio
import sys
from time import process_time

from everytick import schedule
from everytick.app.previews import preview
from everytick.domain.changes import Put
from everytick.domain.job import Job, define_job, define_task
from everytick.schedules.combine import in_zone
from everytick.schedules.timezones import zone
from everytick.sources.drafting import draft
from everytick.stores.memory import MemoryStore
from everytick.testing import ManualClock

LIMIT = 10.0
ROUNDS = 2
JOBS = 10_000
START = "2026-10-16T07:13:00Z"


def job(number: int, minute: int) -> Job:
    """Return one of the jobs, at this minute of its hours."""
    hours = "*" if number % 2 else str(number % 24)
    name, place = f"job-{number}", ("Europe/Berlin", "UTC", "America/New_York")[number % 3]
    return define_job(
        name,
        schedule(f"{minute} {hours} * * *"),
        policies={"timezone": place, "update_policy": "graceful"},
        tasks=[define_task(name, name, target='{"command": ["true"]}')],
        in_zone=lambda each, tz: in_zone(each, zone(tz)),
    )


async def compared() -> tuple[int, float]:
    """Return how many runs were compared, and how long that took."""
    store = MemoryStore(ManualClock(START))
    await store.apply([Put(job(number, 10)) for number in range(JOBS)])
    known = {record.job.name: record.job for record in await store.list()}
    drafts = [draft(job(number, 25), known[f"job-{number}"]) for number in range(JOBS)]
    began = process_time()
    found = await preview(store, drafts)
    took = process_time() - began
    return sum(len(each.added) + len(each.removed) + len(each.kept) for each in found.runs.values()), took


def main() -> int:
    """Measure, and return 1 if it took too long."""
    runs, seconds = min((asyncio.run(compared()) for _ in range(ROUNDS)), key=lambda round_: round_[1])
    print(f"{JOBS:,} jobs, {runs:,} runs of 30 days compared in {seconds:.1f} s (limit {LIMIT:.0f} s)")
    return 1 if seconds > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
