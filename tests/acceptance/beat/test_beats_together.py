"""Several beats at once: each time is put into the queue once, whatever happens to the beats and to Redis."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from everytick.beat import EnqueuedJob, RedisQueue
from tests.acceptance.beat.beats import (
    BEGIN,
    MINUTE,
    SECOND,
    Fleet,
    Place,
    listening,
    minutely,
    registry_of,
    said,
    until,
)
from tests.servers.installations import redis_installations

PULSE = Path(__file__).parent / "programs/pulse.py"
QUEUE = "bananas:queue:normal"


def minutes(count: int, since: datetime = BEGIN) -> list[datetime]:
    """Return so many minutes, beginning with that of BEGIN."""
    return [since.replace(second=0) + number * MINUTE for number in range(count)]


async def times_of(client: Redis) -> list[datetime]:
    """Return the times of the jobs in the queue, in the order in which they came."""
    jobs = [json.loads(text) for text in reversed(await client.lrange(QUEUE, 0, -1))]
    return [datetime.fromisoformat(job["metadata"]["scheduled_at"]) for job in jobs]


# ------------------------------------------------------------------------------------------------------ many beats


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize(
    "times", [300, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(1_800)])], ids=["few", "many"]
)
async def test_beats_on_connections_of_their_own_enqueue_each_time_once(place: Place, count: int, times: int) -> None:
    """S3-001, S3-014, S3-026, S3-033: the queue keeps whatever it is given, so that it would show a double."""
    registry = registry_of(minutely())
    beats = [place.beat(registry) for _ in range(count)]

    async with Fleet(beats).running():
        for count in range(1, times + 1):
            await place.queue.reach(count)
            place.clock.now += MINUTE

    heard = place.queue.instants[:times]
    assert heard == minutes(times)
    assert len({job.id for job in place.queue.jobs}) == len(place.queue.jobs)
    assert (await beats[0].state("pulse")).run_count == len(place.queue.jobs)


async def test_locks_that_end_at_any_moment_make_no_difference(place: Place, client: Redis) -> None:
    """S3-019, C-09: all locks are taken away all the time; the commit and the queue decide."""
    registry, queue = registry_of(minutely()), RedisQueue(place.address)
    beats = [place.beat(registry, queue) for _ in range(5)]

    async def is_recorded() -> bool:
        await client.delete("bananas:schedule_lock:pulse")
        return int(await client.hget("bananas:schedules:pulse", "run_count") or 0) > passed

    async with Fleet(beats).running():
        passed = 0
        while passed < 100:
            await until(is_recorded)
            passed += 1
            place.clock.now += MINUTE

    assert (await times_of(client))[:100] == minutes(100)
    assert len(set(await times_of(client))) == await client.llen(QUEUE)
    assert (await beats[0].state("pulse")).run_count == await client.llen(QUEUE)
    await queue.close()


# -------------------------------------------------------------------------------------------------------- processes


class Processes:
    """Beats in processes of their own, on a clock that stands in Redis."""

    def __init__(self, address: str, client: Redis) -> None:
        self._address, self._client = address, client
        self.children: list[subprocess.Popen[bytes]] = []
        self._minutes = 0

    async def start(self, count: int, lock_ttl: str) -> None:
        """Start so many, and return when all of them tick."""
        await self._client.set("clock", BEGIN.isoformat())
        self.children = [self._started(lock_ttl) for _ in range(count)]
        for child in self.children:
            await self.ticks(child)

    def _started(self, lock_ttl: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([sys.executable, str(PULSE), self._address, lock_ttl])

    async def ticks(self, child: "subprocess.Popen[bytes]") -> None:
        """Return when this process has made two more ticks."""
        before = int(await self._client.get(f"ticks:{child.pid}") or 0)

        async def has_ticked() -> bool:
            return int(await self._client.get(f"ticks:{child.pid}") or 0) >= before + 2

        await until(has_ticked)

    async def pass_minutes(self, count: int) -> None:
        """Move the clock minute by minute, each time when the one before has its run."""
        for _ in range(count):
            await self.next_minute()
            await self.recorded()

    async def next_minute(self) -> None:
        self._minutes += 1
        await self._client.set("clock", (BEGIN + self._minutes * MINUTE).isoformat())

    async def recorded(self) -> None:
        """Return when a run is recorded for every minute."""

        async def is_recorded() -> bool:
            return int(await self._client.hget("bananas:schedules:pulse", "run_count") or 0) > self._minutes

        await until(is_recorded)

    async def frozen(self) -> "subprocess.Popen[bytes]":
        """Return the process that has stopped itself."""
        found: list[subprocess.Popen[bytes]] = []

        async def is_frozen() -> bool:
            found[:] = [child for child in self.children if state_of(child.pid) == "T"]
            return bool(found)

        await until(is_frozen)
        return found[0]

    def end(self) -> None:
        """Kill all of them."""
        for child in self.children:
            child.kill()
            child.wait()


def state_of(pid: int) -> str:
    """Return the letter that the kernel has for the state of a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture
async def processes(place: Place, client: Redis) -> AsyncIterator[Processes]:
    made = Processes(place.address, client)
    yield made
    made.end()


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_beat_that_is_paused_longer_than_its_lock_lives_doubles_nothing(
    processes: Processes, client: Redis, moment: str
) -> None:
    """S3-015, S3-016, S3-019, S3-033: it stops before or after it enqueues; others go on when the lock is over."""
    await processes.start(3, "200ms")
    await processes.pass_minutes(3)
    await client.set(f"freeze:{moment}", "1")
    await processes.next_minute()
    stopped = await processes.frozen()
    await processes.recorded()
    assert state_of(stopped.pid) == "T", "by another beat"
    await processes.pass_minutes(3)

    stopped.send_signal(signal.SIGCONT)
    await processes.ticks(stopped)
    await processes.pass_minutes(3)

    assert await times_of(client) == minutes(11)
    assert await client.hget("bananas:schedules:pulse", "run_count") == "11"


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_beat_that_is_killed_with_its_lock_leaves_the_rest_to_others(
    processes: Processes, client: Redis, moment: str
) -> None:
    """S3-014, S3-033: also if the job is in the queue and not recorded; the queue knows it by its time."""
    await processes.start(2, "200ms")
    await client.set(f"freeze:{moment}", "1")
    await processes.next_minute()
    stopped = await processes.frozen()
    stopped.kill()
    stopped.wait()
    await processes.recorded()
    await processes.pass_minutes(3)

    assert await times_of(client) == minutes(5)
    assert await client.hget("bananas:schedules:pulse", "run_count") == "5"


# --------------------------------------------------------------------------------------------- Redis loses its data


@pytest.mark.parametrize("seed", range(4))
async def test_a_redis_that_is_flushed_again_and_again_loses_and_doubles_nothing(
    place: Place, client: Redis, seed: int
) -> None:
    """S3-025: living beats tell it through when everything was decided; only the counts begin anew."""
    dice, registry = random.Random(seed), registry_of(minutely(), minutely("other", cron="*/2 * * * *"))
    beats = [place.beat(registry) for _ in range(3)]
    flushes = 0
    async with Fleet(beats).running() as fleet:
        await fleet.turn()
        end = BEGIN + 20 * MINUTE
        while place.clock.now < end or flushes < 10:
            place.clock.now += timedelta(seconds=dice.choice([1, 1, 2, 7]))
            if dice.random() < 0.1:
                await client.flushall()
                flushes += 1
            await fleet.turn()
        for _ in range(5):
            place.clock.now += SECOND
            await fleet.turn()

    assert place.queue.doubles == []
    through = place.clock.now
    for id, step in (("pulse", MINUTE), ("other", 2 * MINUTE)):
        heard = sorted(job.scheduled_at for job in place.queue.jobs if job.schedule_id == id)
        assert heard == [heard[0] + number * step for number in range(len(heard))], "none is missing"
        assert through - heard[-1] < step + 5 * SECOND


@pytest.mark.parametrize("first", ["the one that fired", "the one that did not"])
async def test_after_a_loss_the_last_look_of_all_beats_counts(place: Place, client: Redis, first: str) -> None:
    """S3-025: one beat fired what the other has not seen yet, and either may be the first to notice the loss."""
    one, other = place.beat(registry_of(minutely())), place.beat(registry_of(minutely()))
    await one.tick()
    await other.tick()
    place.clock.now += MINUTE
    await one.tick()
    await client.flushall()

    for beat in (one, other) if first == "the one that fired" else (other, one):
        assert await beat.tick() == 0
    place.clock.now += 3 * SECOND
    assert [await one.tick(), await other.tick()] == [0, 0]

    place.clock.now += MINUTE
    assert [await other.tick(), await one.tick()] == [1, 0]
    assert place.queue.instants == minutes(3)


async def test_what_could_not_be_enqueued_is_not_forgotten_with_the_data(place: Place, client: Redis) -> None:
    """S3-021: one beat remembers what it still owes."""
    beat = place.beat(registry_of(minutely()))
    await beat.tick()
    place.clock.now += MINUTE
    place.queue.error = ConnectionError("away")
    await beat.tick()
    await client.flushall()
    place.queue.error = None

    await beat.tick()
    place.clock.now += 3 * SECOND
    assert await beat.tick() == 1
    assert place.queue.instants == minutes(2)


async def test_a_redis_that_fails_while_it_is_told_is_told_again(place: Place, client: Redis) -> None:
    """S3-018: its memory is full in that moment."""
    beat = place.beat(registry_of(minutely()))
    await beat.tick()
    await client.flushall()
    await client.set("bananas:schedule_epoch", "of another beat")
    await client.config_set("maxmemory", 1)

    with listening() as records:
        assert await beat.tick() == 0
    assert said(records)[-1] == ("ERROR", "Failed to get schedule state")
    await client.config_set("maxmemory", 0)
    assert await beat.tick() == 0
    place.clock.now += MINUTE
    assert await beat.tick() == 1
    assert place.queue.instants == minutes(2)


async def test_a_loss_is_said_with_what_follows(place: Place, client: Redis) -> None:
    beat = place.beat(registry_of(minutely()))
    await beat.tick()
    await client.flushall()

    with listening() as records:
        await beat.tick()

    assert said(records) == [
        (
            "WARNING",
            "Redis has lost what was recorded of the schedules; they go on from the last tick, and counts begin anew",
        )
    ]
    assert (await beat.state("pulse")).next_run == minutes(2)[1]


# ------------------------------------------------------------------------------------------------ Redis goes away


class OwnRedis:
    """A Redis that can be killed and started again on the same port."""

    def __init__(self, folder: Path, *, keeps: bool) -> None:
        [installation, *_] = redis_installations()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        keeping = ["--appendonly", "yes", "--appendfsync", "always"] if keeps else ["--appendonly", "no"]
        program = installation.root / installation.programs / "redis-server"
        self._command = [
            str(program),
            "--bind",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--dir",
            str(folder),
            "--save",
            "",
        ]
        self._command += keeping
        self.address = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start it, and return when it answers."""
        self._launch()

        async def answers() -> bool:
            async with Redis.from_url(self.address) as client:
                try:
                    return bool(await client.ping())
                except (RedisError, OSError):
                    return False

        await until(answers)

    def _launch(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@contextmanager
def own_redis(folder: Path, *, keeps: bool) -> Iterator[OwnRedis]:
    """Give a Redis that is not running yet; it is not running afterwards."""
    made = OwnRedis(folder, keeps=keeps)
    try:
        yield made
    finally:
        made.kill()


@pytest.mark.parametrize("keeps", [True, False], ids=["keeps", "forgets"])
async def test_a_redis_that_is_killed_for_a_while_loses_what_the_page_says_and_doubles_nothing(
    tmp_path: Path, keeps: bool
) -> None:
    """S3-018, S3-012, S3-033: ticks fail with a word, and the times of the outage give one run."""
    with own_redis(tmp_path, keeps=keeps) as server:
        await server.start()
        async with AsyncExitStack() as closing:
            place = Place(server.address, closing)
            beats = [place.beat(registry_of(minutely())) for _ in range(2)]
            async with Fleet(beats).running() as fleet:
                for _ in range(5):
                    await fleet.turn()
                    place.clock.now += MINUTE
                server.kill()
                with listening() as records:
                    for _ in range(3):
                        place.clock.now += MINUTE
                        await fleet.turn()
                await server.start()
                for _ in range(5):
                    await fleet.turn()
                    place.clock.now += SECOND
                for _ in range(3):
                    await fleet.turn()
                    place.clock.now += MINUTE
                await fleet.turn()
            state = await beats[0].state("pulse")

    assert ("ERROR", "Failed to get schedule state") in said(records)
    assert place.queue.doubles == []
    passed = set(minutes(12)) - set(place.queue.instants)
    assert passed <= set(minutes(8)[5:]), "of the outage, whose last minute has the run"
    assert minutes(9)[8] in place.queue.instants
    assert state.run_count == len(place.queue.jobs) if keeps else state.run_count < len(place.queue.jobs)


# ------------------------------------------------------------------------------------------------- a foreign queue


async def test_a_queue_that_sees_a_job_again_knows_it_by_its_id(place: Place, client: Redis) -> None:
    """C-15: enqueued, then Redis refuses the record; the next tick enqueues the same job again."""
    beat = place.beat(registry_of(minutely()), lock_ttl="50ms")

    class Cutting:
        """Cuts the connection to the records right after the queue has the job."""

        async def enqueue(self, job: EnqueuedJob) -> None:
            await place.queue.enqueue(job)
            await client.client_kill_filter(_type="normal", skipme=True)

    with listening() as records:
        assert await place.beat(registry_of(minutely()), Cutting(), lock_ttl="50ms").tick() == 0

    assert [line[:2] for line in said(records)] == [("ERROR", "Failed to record scheduled jobs")]
    await until(beat.tick)
    assert Counter(job.id for job in place.queue.jobs) == {place.queue.jobs[0].id: 2}
    assert (await beat.state("pulse")).run_count == 1, "recorded once"
