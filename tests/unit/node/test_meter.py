"""What a node counts of its own work: exactly, by job, and without an answer that grows with the number of jobs."""

from datetime import timedelta
from typing import Any

import pytest

from everytick.domain.occurrence import Cause
from everytick.domain.statuses import OccurrenceStatus
from everytick.node import meter as meters
from everytick.node.meter import LENGTHS, OTHER, Histogram, JobCounts, Meter
from everytick.node.timed_store import timed
from everytick.schedules.interval import every
from tests.unit.node.worlds import NOON, World, living, pause

_S = OccurrenceStatus


async def well() -> int:
    return 1


async def boom() -> None:
    raise ValueError("boom")


def counted(meter: Meter, name: str) -> JobCounts:
    [found] = [counts for counts in meter.jobs if counts.name == name]
    return found


def test_ends_attempts_and_lengths_are_counted_by_job() -> None:
    """S0-106, S0-107: a good run of one task, a run of two tasks, one that fails after a retry."""

    async def story(world: World) -> None:
        often = await world.define("good", well, every("1m", start=NOON), recovery="execute_all")
        two = await world.define("two", {"a": well, "b": well})
        flaky = await world.define("flaky", boom, retry={"max": 1, "interval": "1s"})
        node = world.node()
        await node.start()
        await pause("2m30s")
        await world.ended(await world.trigger(two))
        await world.ended(await world.trigger(flaky))
        await node.stop()
        meter = node.listeners.meter
        good = counted(meter, "good")
        assert good.all_ends() == {(_S.COMPLETED, Cause.SCHEDULE): good.plain}
        assert good.all_attempts() == {("a", "success"): good.plain}
        assert good.plain == len(await world.history(often))
        lengths, delays, task_lengths = good.all_lengths(), good.all_delays(), good.all_task_lengths()["a"]
        assert sum(lengths.counts) == sum(delays.counts) == sum(task_lengths.counts) == good.plain
        assert counted(meter, "two").all_ends() == {(_S.COMPLETED, Cause.TRIGGER): 1}
        assert counted(meter, "two").all_attempts() == {("a", "success"): 1, ("b", "success"): 1}
        assert counted(meter, "flaky").all_ends() == {(_S.FAILED, Cause.TRIGGER): 1}
        assert counted(meter, "flaky").all_attempts() == {("a", "failed"): 2}
        assert sum(meter.all_claims().counts) == good.plain + 2

    living(story)


def test_what_recovery_did_and_left_out_is_counted() -> None:
    """S0-107, S1-027: late runs by strategy, and skipped instants by reason."""

    async def story(world: World) -> None:
        minutely = every("1m", start=NOON)
        for name, strategy in (("all", "execute_all"), ("last", "execute_last"), ("none", "mark_as_missed")):
            await world.define(name, well, minutely, recovery=strategy, grace="1s")
        await pause("10m30s")
        node = world.node()
        await node.start()
        await pause("5s")
        await node.stop()
        meter = node.listeners.meter
        assert counted(meter, "all").recovered == {"full_backfill": 10}
        assert counted(meter, "last").recovered == {"latest_only": 1}
        assert counted(meter, "last").skipped == {"not last": 9}
        assert counted(meter, "none").recovered == {"skip": 10}
        assert counted(meter, "none").skipped == {"missed": 10}

    living(story)


def test_jobs_beyond_the_limit_are_counted_together() -> None:
    """Bounded labels: a store of many thousand jobs must not make an answer of many megabytes."""

    async def story(world: World) -> None:
        jobs = [await world.define(f"job-{number}", {f"task-{number}": well}) for number in range(5)]
        node = world.node()
        node.listeners.meter.limit = 2
        await node.start()
        for job in jobs:
            await world.ended(await world.trigger(job))
        await node.stop()
        meter = node.listeners.meter
        assert [counts.name for counts in meter.jobs] == ["job-0", "job-1", OTHER]
        assert counted(meter, OTHER).all_ends() == {(_S.COMPLETED, Cause.TRIGGER): 3}
        assert counted(meter, OTHER).all_attempts() == {(OTHER, "success"): 3}
        labels = meter.labels((job.id, job.name) for job in jobs)
        assert list(labels.values()) == ["job-0", "job-1", OTHER, OTHER, OTHER]

    living(story)


def test_lengths_are_measured_only_while_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters stay exact; what costs more is left out of a node that is not scraped."""
    monkeypatch.setattr(meters, "_ASKED_SECONDS", 0.0)

    async def story(world: World) -> None:
        await world.define("good", well, every("1m", start=NOON))
        node = world.node()
        await node.start()
        await pause("2m30s")
        await node.stop()
        good = counted(node.listeners.meter, "good")
        assert good.plain >= 2
        assert sum(good.all_lengths().counts) == 0

    living(story)


def test_a_bucket_holds_what_is_no_longer_than_its_bound() -> None:
    """The bound itself belongs to the bucket, as Prometheus has it."""
    histogram = Histogram(LENGTHS)
    for length in (timedelta(0), LENGTHS[0], LENGTHS[0] + timedelta(microseconds=1), timedelta(days=9)):
        histogram.observe(length)
    assert histogram.counts == [2, 1] + [0] * (len(LENGTHS) - 2) + [1]


class Answers:
    """A store of two verbs."""

    name = "x"

    async def now(self) -> int:
        return 7

    async def get(self, _: object) -> None:
        raise OSError("away")

    async def bell(self, seconds: float) -> bool:
        return True


async def test_verbs_are_timed_and_failures_counted() -> None:
    """Store operation durations; a wait for the bell is no answer."""
    meter = Meter()
    answers: Any = Answers()
    store = timed(answers, meter)
    assert await store.now() == 7
    assert await store.bell(0.0)
    with pytest.raises(OSError, match="away"):
        await store.get([])
    assert {verb: sum(found.counts) for verb, found in meter.operations.items()} == {"now": 1}
    assert meter.failures == {"get": 1}
