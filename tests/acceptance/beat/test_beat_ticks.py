"""One beat on a real Redis: what a tick puts into the queue, what it records and what it says."""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from everytick.beat import BeatService, EnqueuedJob, JsonLog, RedisQueue, Registry, Schedule, ScheduleState
from everytick.beat.problems import InvalidTimezone
from everytick.beat.records import UnreadableRecord
from everytick.beat.registry import RegisteredSchedule
from everytick.errors import InvalidSetting, StoreUnavailable
from tests.acceptance.beat.beats import (
    BEGIN,
    MINUTE,
    SECOND,
    Clock,
    Heard,
    Place,
    listening,
    minutely,
    registry_of,
    said,
    until,
)

STATE, LOCK, INDEX = "bananas:schedules:{}", "bananas:schedule_lock:{}", "bananas:schedule_index"
REPORT = Schedule(
    id="weekly_report",
    cron="0 9 * * 1",
    job="generate_weekly_report",
    payload={"format": "pdf"},
    priority="high",
    timezone="America/New_York",
    description="Weekly analytics",
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


class Bench:
    """A beat in its place."""

    def __init__(self, place: Place, *schedules: Schedule, **settings: Any) -> None:
        self.place, self.clock, self.queue = place, place.clock, Heard()
        self.registry = registry_of(*schedules)
        self.beat = self.another(**settings)

    def another(self, registry: Registry | None = None, **settings: Any) -> BeatService:
        """Return one more beat on the same clock and queue."""
        return self.place.beat(registry or self.registry, self.queue, **settings)

    async def tick(self, after: timedelta = 0 * SECOND) -> int:
        """Move the clock, and tick."""
        self.clock.now += after
        return await self.beat.tick()


async def test_a_schedule_runs_from_its_registration_to_the_queue(place: Place, client: Redis) -> None:
    """S3-001, S3-002, S3-014, S3-020, S3-033: end to end; the job carries what it is due for."""
    queue = RedisQueue(place.address)
    async with BeatService(registry_of(REPORT), queue, place.address, clock=Clock(at("2026-01-05T14:00:01Z"))) as beat:
        assert await beat.tick() == 1

    [text] = await client.lrange("bananas:queue:high", 0, -1)
    job = json.loads(text)
    assert job == {
        "id": job["id"],
        "name": "generate_weekly_report",
        "payload": {"format": "pdf"},
        "priority": "high",
        "metadata": {
            "schedule_id": "weekly_report",
            "scheduled_at": "2026-01-05T14:00:00Z",
            "trigger_type": "cron",
        },
        "enqueued_at": "2026-01-05T14:00:01Z",
    }
    assert queue.lists == ["bananas:queue:high", "bananas:queue:normal", "bananas:queue:low"]
    assert await client.get(LOCK.format("weekly_report")) is None, "released"
    await queue.close()


async def test_the_record_of_a_schedule_has_the_keys_and_fields_of_the_contract(place: Place, client: Redis) -> None:
    """S3-003, S3-024: a hash, with times of RFC 3339; what is not there yet is left out."""
    bench = Bench(place, minutely())
    await bench.tick()

    found = await client.hgetall(STATE.format("pulse"))
    assert {key: found[key] for key in ("last_run", "next_run", "run_count", "last_success", "last_job_id")} == {
        "last_run": "2026-01-01T12:00:00Z",
        "next_run": "2026-01-01T12:01:00Z",
        "run_count": "1",
        "last_success": "2026-01-01T12:00:30Z",
        "last_job_id": bench.queue.jobs[0].id,
    }
    assert "last_error" not in found
    assert await bench.beat.state("pulse") == ScheduleState(
        "pulse",
        last_run=at("2026-01-01T12:00:00Z"),
        next_run=at("2026-01-01T12:01:00Z"),
        run_count=1,
        last_success=BEGIN,
        last_job_id=bench.queue.jobs[0].id,
        decided_through=BEGIN,
    )


async def test_no_record_means_never_run(place: Place, client: Redis) -> None:
    """S3-025, S3-013: and such a schedule is due at once, once; the default state is empty."""
    bench = Bench(place, REPORT)
    assert await bench.beat.state("weekly_report") == ScheduleState("weekly_report")

    assert [await bench.tick(), await bench.tick(SECOND), await bench.tick(MINUTE)] == [1, 0, 0]
    assert bench.queue.instants == [at("2025-12-29T14:00:00Z")], "for its last time before now"


async def test_a_new_schedule_waits_for_its_next_time_if_the_beat_is_told_so(place: Place, client: Redis) -> None:
    """C-08."""
    bench = Bench(place, minutely(), on_create="next")

    assert [await bench.tick(), await bench.tick(29 * SECOND), await bench.tick(SECOND)] == [0, 0, 1]
    assert bench.queue.instants == [at("2026-01-01T12:01:00Z")]


async def test_several_missed_times_give_one_run(place: Place, client: Redis) -> None:
    """S3-012: the last of them."""
    bench = Bench(place, minutely())
    await bench.tick()

    assert [await bench.tick(5 * MINUTE), await bench.tick(), await bench.tick(MINUTE)] == [1, 0, 1]
    assert bench.queue.instants[1:] == [at("2026-01-01T12:05:00Z"), at("2026-01-01T12:06:00Z")]
    assert (await bench.beat.state("pulse")).run_count == 3


async def test_schedules_of_a_program_in_another_language_go_on(place: Place, client: Redis) -> None:
    """S3-024: a record with a last run and without ours; its zero time is no time."""
    await client.hset(STATE.format("pulse"), mapping={"last_run": "2026-01-01T12:59:00+01:00", "run_count": "240"})
    await client.hset(STATE.format("new"), mapping={"last_run": "0001-01-01T00:00:00Z"})
    bench = Bench(place, minutely(), minutely("new"))

    assert await bench.tick() == 2
    assert {job.schedule_id: job.scheduled_at for job in bench.queue.jobs} == {
        "pulse": at("2026-01-01T12:00:00Z"),
        "new": at("2026-01-01T12:00:00Z"),
    }
    assert (await bench.beat.state("pulse")).run_count == 241


async def test_a_disabled_schedule_never_fires(place: Place, client: Redis) -> None:
    """S3-005: neither when it is new nor when it was enabled before; and enabling it fires nothing by itself."""
    bench = Bench(place, minutely(), minutely("off", enabled=False))
    assert await bench.tick() == 1
    await bench.tick(MINUTE)
    bench.beat, before = bench.another(registry_of(minutely(enabled=False))), bench.beat

    assert [await bench.tick(MINUTE), await bench.tick(MINUTE)] == [0, 0]
    assert await client.zscore(INDEX, "pulse") is None
    assert await before.tick() == 0, "a beat of before leaves it alone"

    bench.beat = bench.another()
    assert [await bench.tick(SECOND), await bench.tick(MINUTE)] == [0, 1]
    assert {job.schedule_id for job in bench.queue.jobs} == {"pulse"}


async def test_a_changed_rule_holds_from_the_start_that_brings_it(place: Place, client: Redis) -> None:
    """C-23: what the old rule missed is run, the new one names nothing of the past, and an older beat stands aside."""
    bench = Bench(place, minutely())
    await bench.tick()
    bench.clock.now = at("2026-01-01T15:30:10Z")
    older = bench.beat
    bench.beat = bench.another(registry_of(minutely(cron="20 * * * *")))

    assert await bench.tick() == 1
    assert bench.queue.instants[1:] == [at("2026-01-01T15:30:00Z")], "by the old rule, and not 15:20"
    bench.clock.now = at("2026-01-01T16:20:00Z")
    with listening() as records:
        assert [await older.tick(), await older.tick()] == [0, 0]
    assert [line for line in said(records, "schedule_id") if line[0] == "WARNING"] == [
        (
            "WARNING",
            "Schedule was changed by a beat that started later; this one leaves it alone until it is restarted",
            "pulse",
        )
    ]
    assert await bench.tick() == 1
    assert bench.queue.instants[2:] == [at("2026-01-01T16:20:00Z")]


async def test_a_schedule_that_is_registered_later_is_seen_at_the_next_tick(place: Place, client: Redis) -> None:
    """S3-011: each tick looks at every enabled schedule."""
    bench = Bench(place, minutely())
    await bench.tick()
    bench.registry.register(minutely("later"))

    assert await bench.tick() == 1
    assert bench.queue.jobs[-1].schedule_id == "later"


async def test_the_due_check_is_repeated_under_the_lock(place: Place, client: Redis) -> None:
    """S3-019: a beat that saw the schedule due before another one fired it decides from the new record."""
    bench = Bench(place, minutely())
    await bench.tick()
    bench.clock.now += MINUTE
    second = bench.another()
    await second.tick()
    # As a beat sees it that looked before the other committed: the index says that the schedule is due.
    await client.zadd(INDEX, {"pulse": 0})

    assert await bench.beat.tick() == 0
    assert len(bench.queue.jobs) == 2
    assert await client.zscore(INDEX, "pulse"), "and the index is right again"


async def test_a_schedule_that_another_beat_has_locked_is_skipped_silently(place: Place, client: Redis) -> None:
    """S3-017: a line for debugging, and a count; it is tried again at the next tick."""
    bench = Bench(place, minutely())
    await client.set(LOCK.format("pulse"), "another")

    with listening() as records:
        assert await bench.tick() == 0
        await client.delete(LOCK.format("pulse"))
        assert await bench.tick() == 1

    assert said(records, "schedule_id")[0] == ("DEBUG", "Schedule already locked by another instance", "pulse")
    assert 'scheduler_lock_failures_total{schedule_id="pulse"} 1' in bench.beat.metrics()
    assert await client.get(LOCK.format("pulse")) is None


async def test_a_redis_that_refuses_locks_is_logged_and_tried_again(place: Place, client: Redis) -> None:
    """S3-018: this tick is skipped."""
    bench = Bench(place, minutely())
    await bench.tick()
    await client.config_set("maxmemory", 1)

    with listening() as records:
        assert await bench.tick(MINUTE) == 0
        await client.config_set("maxmemory", 0)
        assert await bench.tick() == 1

    [line] = [line for line in said(records, "schedule_id", "error") if line[0] == "ERROR"]
    assert line[:3] == ("ERROR", "Failed to acquire schedule lock", "pulse")
    assert line[3].startswith("failed to acquire lock: ")
    assert bench.queue.instants[1:] == [at("2026-01-01T12:01:00Z")]


async def test_an_enqueue_that_fails_is_kept_and_tried_again_at_the_next_tick(place: Place, client: Redis) -> None:
    """S3-021, S3-003: the last error stays to be read; the time is not passed over, and the lock is free."""
    bench = Bench(place, minutely())
    await bench.tick()
    bench.queue.error = ConnectionError("queue is full, password=hunter2")

    with listening() as records:
        assert [await bench.tick(MINUTE), await bench.tick(SECOND)] == [0, 0]

    assert (
        said(records, "schedule_id", "job_name", "error")
        == [("ERROR", "Failed to enqueue scheduled job", "pulse", "job-pulse", "queue is full, password=***")] * 2
    )
    state = await bench.beat.state("pulse")
    assert (state.last_error, state.run_count) == ("queue is full, password=***", 1)
    assert state.last_run == at("2026-01-01T12:00:00Z"), "as if it had not been tried"
    assert await client.get(LOCK.format("pulse")) is None

    bench.queue.error = None
    assert await bench.tick(SECOND) == 1
    assert bench.queue.instants[1:] == [at("2026-01-01T12:01:00Z")]
    after = await bench.beat.state("pulse")
    assert (after.run_count, after.last_error) == (2, "queue is full, password=***")
    assert 'scheduler_runs_total{schedule_id="pulse",status="failure"} 2' in bench.beat.metrics()


async def test_a_queue_that_does_not_answer_counts_as_failed(place: Place, client: Redis) -> None:
    """S3-021: within half the life of the lock."""

    class Silent(Heard):
        async def enqueue(self, job: EnqueuedJob) -> None:
            await asyncio.Event().wait()

    beat = place.beat(registry_of(minutely()), Silent(), lock_ttl="100ms")

    async with asyncio.timeout(60):
        assert await beat.tick() == 0
    assert (await beat.state("pulse")).last_error == "the queue did not answer in time"


async def test_a_failure_that_comes_too_late_is_not_recorded(place: Place, client: Redis) -> None:
    """S3-021: another beat has run the schedule meanwhile, and its record stays as it is."""
    other = place.beat(registry_of(minutely()))

    class Overtaken(Heard):
        async def enqueue(self, job: EnqueuedJob) -> None:
            await client.delete(LOCK.format("pulse"))  # as its expiry does
            assert await other.tick() == 1
            raise ConnectionError("away")

    assert await place.beat(registry_of(minutely()), Overtaken()).tick() == 0
    state = await other.state("pulse")
    assert (state.run_count, state.last_error) == (1, "")


async def test_a_failure_that_redis_does_not_take_is_logged(place: Place, client: Redis) -> None:
    """S3-021: full memory, in the moment in which the queue fails."""

    class Full(Heard):
        async def enqueue(self, job: EnqueuedJob) -> None:
            await client.set(LOCK.format("pulse"), "another")
            await client.config_set("maxmemory", 1)
            raise ConnectionError("away")

    with listening() as records:
        await place.beat(registry_of(minutely()), Full()).tick()

    assert [line[:3] for line in said(records, "schedule_id")] == [
        ("ERROR", "Failed to enqueue scheduled job", "pulse"),
        ("ERROR", "Failed to record scheduled jobs", "pulse"),
    ]


async def test_locks_that_grow_old_while_a_queue_is_slow_are_extended_or_given_up(place: Place, client: Redis) -> None:
    """S3-016: one whose lock another beat has by then is left to it."""

    class Slow(Heard):
        """Takes 0.6 of the life of a lock for two jobs."""

        left = 0

        async def enqueue(self, job: EnqueuedJob) -> None:
            await super().enqueue(job)
            if job.schedule_id == "a":
                await client.set(LOCK.format("d"), "another")
            wait = {"a": 600, "b": 400}.get(job.schedule_id)
            if wait:
                await until(lambda: self._is_old(job.schedule_id, wait))
            if job.schedule_id == "c":
                self.left = await client.pttl(LOCK.format("c"))

        async def _is_old(self, id: str, left: int) -> bool:
            return bool(await client.pttl(LOCK.format(id)) < left)

    queue = Slow()
    beat = place.beat(registry_of(*(minutely(id) for id in "abcd")), queue, lock_ttl="1s")
    await beat.tick()

    assert [job.schedule_id for job in queue.jobs] == ["a", "b", "c"]
    assert queue.left > 500
    assert await client.get(LOCK.format("d")) == "another"
    assert (await beat.state("d")).run_count == 0


async def test_a_queue_that_answers_for_some_jobs_only_has_failed(place: Place, client: Redis) -> None:
    """S3-021: it is not known for which."""

    class Forgetful(Heard):
        async def enqueue_batch(self, jobs: Sequence[EnqueuedJob]) -> Sequence[BaseException | None]:
            return []

    beat = place.beat(registry_of(minutely()), Forgetful())

    assert await beat.tick() == 0
    assert (await beat.state("pulse")).last_error == "the queue answered for 0 of 1 jobs"


async def test_one_schedule_that_fails_does_not_hold_the_others(place: Place, client: Redis) -> None:
    """S3-021, S3-023: of a record of another type, an unknown zone and a good schedule, the good one runs."""

    class Vanished:
        """A rule whose zone this host no longer has."""

        def next_after(self, instant: datetime) -> datetime | None:
            raise InvalidTimezone("Atlantis/Lost", "it is not a known time zone")

        last_at = next_after

    class Lost(Registry):
        def entry(self, id: str) -> RegisteredSchedule | None:
            found = super().entry(id)
            rule: Any = Vanished()
            return replace(found, job=replace(found.job, schedule=rule)) if found and id == "lost" else found

    registry = Lost()
    for id in ("good", "lost", "strange"):
        registry.register(minutely(id))
    await client.set(STATE.format("strange"), "text")
    beat, queue = place.beat(registry), place.queue

    with listening() as records:
        assert await beat.tick() == 1

    assert [job.schedule_id for job in queue.jobs] == ["good"]
    assert sorted(said(records, "schedule_id", "error")) == [
        (
            "ERROR", "Failed to calculate next run", "lost",
            "invalid timezone Atlantis/Lost: it is not a known time zone",
        ),
        (
            "ERROR", "Failed to get schedule state", "strange",
            "WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        ("INFO", "Scheduled job enqueued", "good", None),
    ]  # fmt: skip
    assert [await client.get(LOCK.format(id)) for id in ("good", "lost", "strange")] == [None] * 3


@pytest.mark.parametrize(
    ("field", "written"),
    [("last_run", "yesterday"), ("decided_through", "2026-01-01T12:00:00"), ("run_count", "many")],
)
async def test_a_record_that_cannot_be_read_is_logged_and_left_alone(
    place: Place, client: Redis, field: str, written: str
) -> None:
    """S3-027: with what is wrong in it."""
    await client.hset(STATE.format("pulse"), field, written)
    bench = Bench(place, minutely())

    with listening() as records:
        assert await bench.tick() == 0

    [line] = said(records, "schedule_id", "error")
    assert line[:3] == ("ERROR", "Failed to get schedule state", "pulse")
    assert line[3].startswith(f"{field} is {written!r}, which ")
    assert await client.hgetall(STATE.format("pulse")) == {field: written}
    with pytest.raises(UnreadableRecord, match=f"{field} is "):
        await bench.beat.state("pulse")


async def test_a_question_that_redis_does_not_answer_is_an_error_of_ours() -> None:
    async with BeatService(Registry(), Heard(), "redis://127.0.0.1:1") as beat:
        assert await beat.tick() == 0
        with pytest.raises(StoreUnavailable, match="Redis"):
            await beat.state("pulse")


async def test_runs_are_counted_in_redis_over_all_beats(place: Place, client: Redis) -> None:
    """S3-026: one for each execution, by whichever beat, also after a restart."""
    bench = Bench(place, minutely())
    for _ in range(3):
        await bench.tick(MINUTE)
        bench.beat = bench.another()

    assert (await bench.beat.state("pulse")).run_count == len(bench.queue.jobs) == 3


async def test_the_sentences_and_fields_of_the_log_are_those_of_the_contract(place: Place, client: Redis) -> None:
    """S3-027, S3-030: from the start to the stop, as JSON lines with level, msg and component."""
    place.clock.now, queue = at("2025-11-10T15:00:00.5Z"), place.queue
    beat = place.beat(registry_of(minutely("cleanup_hourly", cron="0 * * * *")), interval="1s")
    with listening() as records:
        running = asyncio.create_task(beat.run())
        await queue.reach(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    lines = [json.loads(JsonLog().format(record)) for record in records]
    assert [{key: line[key] for key in line if key != "time"} for line in lines] == [
        {"level": "INFO", "msg": "Cron scheduler started", "component": "scheduler", "interval": "1s"},
        {
            "level": "INFO",
            "msg": "Scheduled job enqueued",
            "component": "scheduler",
            "schedule_id": "cleanup_hourly",
            "job_name": "job-cleanup_hourly",
            "job_id": queue.jobs[0].id,
            "priority": "normal",
            "next_run": "2025-11-10T16:00:00Z",
        },
        {"level": "INFO", "msg": "Cron scheduler stopping", "component": "scheduler"},
    ]
    assert (await beat.state("cleanup_hourly")).run_count == 1, "the tick was finished before the end"


async def test_a_beat_ends_when_it_is_told_to(place: Place, client: Redis) -> None:
    """S3-011, S3-030: it need not wait for its interval."""
    beat = place.beat(registry_of(minutely()), clock=None, interval="1h")
    running = asyncio.create_task(beat.run())
    await place.queue.reach(1)
    beat.stop()
    async with asyncio.timeout(60):
        await running
    assert (await beat.state("pulse")).run_count == 1


async def test_a_beat_ticks_once_in_its_interval_by_the_clock_of_redis(place: Place, client: Redis) -> None:
    """S3-011: one second unless it is told otherwise."""
    assert place.beat(Registry()).interval == SECOND
    beat = place.beat(registry_of(minutely()), clock=None, interval="10ms")
    running = asyncio.create_task(beat.run())

    async def has_looked_ten_times() -> bool:
        called: dict[str, Any] = await client.info("commandstats")
        return bool(called.get("cmdstat_evalsha", {"calls": 0})["calls"] >= begun + 10)

    begun = (await client.info("commandstats")).get("cmdstat_evalsha", {"calls": 0})["calls"]
    await until(has_looked_ten_times)
    beat.stop()
    await running

    seconds, _ = await client.time()
    assert abs(seconds - place.queue.jobs[0].enqueued_at.timestamp()) < 60


async def test_the_metrics_have_the_names_and_labels_of_the_contract(place: Place, client: Redis) -> None:
    """S3-028."""
    bench = Bench(place, minutely("cleanup"))
    await bench.tick()
    bench.queue.error = ValueError("no")
    await bench.tick(MINUTE)
    text = bench.beat.metrics()

    for line in (
        'scheduler_runs_total{schedule_id="cleanup",status="success"} 1',
        'scheduler_runs_total{schedule_id="cleanup",status="failure"} 1',
        'scheduler_run_duration_seconds_count{schedule_id="cleanup"} 2',
        'scheduler_last_run_timestamp{schedule_id="cleanup"} 1767268800',
        'scheduler_next_run_timestamp{schedule_id="cleanup"} 1767268860',
        'scheduler_lock_failures_total{schedule_id="cleanup"} 0',
        "# TYPE scheduler_runs_total counter",
        "# TYPE scheduler_run_duration_seconds histogram",
        "# TYPE scheduler_last_run_timestamp gauge",
        "# TYPE scheduler_next_run_timestamp gauge",
        "# TYPE scheduler_lock_failures_total counter",
    ):
        assert line in text.splitlines()


async def test_the_metrics_are_bounded(place: Place, client: Redis) -> None:
    bench = Bench(place, *(minutely(f"schedule-{number}") for number in range(300)))
    assert await bench.tick() == 300

    runs = [line for line in bench.beat.metrics().splitlines() if line.startswith("scheduler_runs_total{")]
    assert len(runs) == 201
    assert 'scheduler_runs_total{schedule_id="_other",status="success"} 100' in runs


async def test_two_applications_share_a_redis_without_a_word(place: Place, client: Redis) -> None:
    """Each beat sees to its own schedules; a schedule without a beat leaves the index, and comes back with its beat."""
    ours, theirs = Bench(place, minutely("ours")), Bench(place, minutely("theirs"))
    assert [await ours.tick(), await theirs.tick()] == [1, 1]

    assert await ours.tick(10 * MINUTE) == 1
    assert await client.zscore(INDEX, "theirs") is not None
    assert await ours.tick(MINUTE) == 1
    assert await client.zscore(INDEX, "theirs") is None

    theirs.beat = theirs.another()
    assert await theirs.tick(9 * MINUTE) == 1
    assert {job.schedule_id for job in ours.queue.jobs} == {"ours"}
    assert theirs.queue.instants == [at("2026-01-01T12:00:00Z"), at("2026-01-01T12:20:00Z")]


async def test_the_prefix_of_the_keys_can_be_chosen(place: Place, client: Redis) -> None:
    """S3-015, S3-024: beats of two prefixes know nothing of each other; braces put all keys of one into a slot."""
    one, other = Bench(place, minutely()), Bench(place, minutely(), prefix="{shop}")

    assert [await one.tick(), await other.tick()] == [1, 1]
    assert await client.hget("{shop}:schedules:pulse", "run_count") == "1"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"interval": "0s"}, "interval=.*must be 1ms or longer"),
        ({"interval": 1}, "interval=1 "),
        ({"lock_ttl": "soon"}, "lock_ttl=soon "),
        ({"prefix": ""}, "prefix=.*must be text"),
        ({"on_create": "yesterday"}, "on_create=.*must be immediately or next"),
        ({"redis": "http://example.org"}, "redis=.*must be an address like redis://localhost:6379/0"),
    ],
)
async def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidSetting, match=reason):
        BeatService(Registry(), Heard(), **{"redis": "redis://localhost", **settings})


async def test_a_client_of_the_users_own_is_used_and_left_open(place: Place, client: Redis) -> None:
    """One that decodes answers, and one that does not."""
    bytes_client = Redis.from_url(place.address)
    for number, own in enumerate((client, bytes_client)):
        queue = RedisQueue(own, prefix=f"own{number}")
        async with BeatService(registry_of(minutely()), queue, own, prefix=f"own{number}") as beat:
            assert await beat.tick() == 1
        await queue.close()
        assert await own.ping()
        assert await client.llen(f"own{number}:queue:normal") == 1
    await bytes_client.aclose()


def test_log_lines_go_to_one_logger_without_a_handler_of_ours() -> None:
    assert logging.getLogger("everytick.beat").handlers == []
