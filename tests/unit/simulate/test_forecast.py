"""What the coming days bring, seen from what a store holds now."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from everytick.domain.changes import Put
from everytick.domain.facts import Pause, PutBrake, SetLimit, Trigger
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.limits import Rate
from everytick.domain.policies import update_policy
from everytick.domain.snapshots import Missed
from everytick.schedules.codec import schedule
from everytick.simulate.durations import Origin
from everytick.simulate.forecast import foresee
from everytick.simulate.record import JobTally
from everytick.stores.base import HistoryFilter
from everytick.stores.memory import MemoryStore
from everytick.testing import ManualClock
from tests.stores.acting import put, put_all
from tests.unit.node.worlds import World, living, passing

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def store(clock: ManualClock) -> MemoryStore:
    return MemoryStore(clock)


def hourly(name: str = "hourly", rule: str = "0 * * * *; tz=UTC", **policies: object) -> Job:
    policies = {"task_timeout": None, **policies}
    return define_job(name, schedule(rule), policies=policies, tasks=[define_task(name, name)])


async def one(
    store: MemoryStore, length: timedelta = DAY, takes: timedelta = timedelta(0), **given: object
) -> JobTally:
    """What becomes of the only job of a store."""
    [record] = await store.list()
    found = await foresee(store, length, slots=9, given={record.job.name: takes}, **given)  # type: ignore[arg-type]
    [tally] = found.tallies
    return tally


async def test_nothing_is_changed_in_the_store(store: MemoryStore) -> None:
    await put(store, hourly())
    before = await store.list()

    await one(store)

    assert await store.list() == before
    assert (await store.history(HistoryFilter())).occurrences == ()


async def test_a_pause_is_seen(store: MemoryStore) -> None:
    stored = await put(store, hourly())
    await store.request(stored.job_id, Pause(until=NOON + 6 * HOUR, missed=Missed.SKIP))

    tally = await one(store)

    assert (tally.runs, dict(tally.not_run)) == (18, {("skipped", "paused"): 6})


async def test_what_people_have_asked_for_is_run_too(store: MemoryStore) -> None:
    stored = await put(store, hourly())
    await store.request(stored.job_id, Trigger("k"))

    assert (await one(store)).runs == 25


async def test_after_a_completion_the_next_run_follows_the_end(store: MemoryStore) -> None:
    await put(store, hourly(rule="after: 50m"))

    # 50 minutes after creation, and then every hour: ten minutes of work and 50 of rest.
    assert (await one(store, takes=timedelta(minutes=10))).runs == 24


async def test_a_run_over_its_time_is_cut_and_counted(store: MemoryStore) -> None:
    await put(store, hourly(execution_timeout="30m"))

    tally = await one(store, takes=90 * timedelta(minutes=1))

    assert (tally.runs, tally.timed_out, tally.overlaps) == (24, 24, 0)


@pytest.mark.parametrize(("on_orphan", "starts", "canceled"), [("fail", 20, 1), ("restart", 21, 0)])
async def test_an_outage_ends_what_runs_or_lets_it_begin_anew(
    store: MemoryStore, on_orphan: str, starts: int, canceled: int
) -> None:
    """From 15:10 to 20:40; the run of 20:00 is the one that recovery keeps of five."""
    await put(store, hourly(on_orphan=on_orphan, overlap="queue"))
    outage = (NOON + timedelta(hours=3, minutes=10), NOON + timedelta(hours=8, minutes=40))

    tally = await one(store, takes=timedelta(minutes=20), outages=[outage])

    assert (tally.created, tally.runs, tally.canceled) == (20, starts, canceled)
    assert dict(tally.not_run) == {("skipped", "not last"): 4}


async def test_time_is_laid_over_the_hours_it_touches(store: MemoryStore) -> None:
    await put(store, hourly(rule="30 6 * * mon; tz=UTC"))

    found = await foresee(store, 14 * DAY, slots=1, given={"hourly": timedelta(minutes=75)})

    busy = {(each.weekday, each.hour): each.running for each in found.load(ZoneInfo("UTC")) if each.running}
    assert busy == {(0, 6): 0.5, (0, 7): 0.75}
    # An hour and three quarters to the east of it the same lies elsewhere.
    busy = {(each.weekday, each.hour): each.running for each in found.load(ZoneInfo("Asia/Kathmandu")) if each.running}
    assert busy == {(0, 12): 0.75, (0, 13): 0.5}


async def test_jobs_that_share_instants_are_told_by_group(store: MemoryStore) -> None:
    await put_all(store, [hourly("a"), hourly("b"), hourly("c", "0 0 * * *; tz=UTC")])

    found = await foresee(store, DAY, slots=9)

    assert found.habits(5) == [(("a", "b", "c"), 1, NOON + 12 * HOUR), (("a", "b"), 23, NOON + HOUR)]
    assert found.collisions(1)[0].at == NOON + 12 * HOUR


async def test_slots_are_given_by_priority(store: MemoryStore) -> None:
    await put_all(store, [hourly("a"), hourly("b", priority=5)])

    found = await foresee(store, DAY, slots=1, given={"a": HOUR / 4, "b": HOUR / 4})

    assert [(each.name, each.late, each.worst) for each in found.tallies] == [("a", 23, HOUR / 4), ("b", 0, HOUR * 0)]
    assert (found.record.peak, found.record.longest_line) == (1, 1)


def test_lengths_are_the_middle_of_those_seen() -> None:
    async def story(world: World) -> None:
        lengths = iter([1, 100, 3])

        async def odd() -> None:
            await passing(next(lengths))

        job = await world.define("odd", odd)
        node = world.node()
        await node.start()
        for key in "abc":
            await world.ended(await world.trigger(job, key))
        await node.stop()

        found = await foresee(world.store, DAY, slots=1)

        seen = found.lengths[job.id]
        assert seen.origin is Origin.HISTORY
        assert seen.length == pytest.approx(timedelta(seconds=3), abs=timedelta(seconds=0.1))

    living(story)


async def test_virtual_time_is_told_now_and_then(store: MemoryStore) -> None:
    told: list[datetime] = []

    await foresee(store, 2 * DAY, slots=1, tell=told.append)

    assert told == [NOON + n * 6 * HOUR for n in range(9)]


async def test_runs_asked_for_later_come_at_their_time(store: MemoryStore) -> None:
    """A9: beside the schedule; one after the end of the forecast does not."""
    stored = await put(store, hourly(rule="on request"))
    for key, delay in (("a", HOUR), ("b", 2 * HOUR), ("c", 30 * HOUR)):
        await store.request(stored.job_id, Trigger(key, at=NOON + delay))

    tally = await one(store)

    assert (tally.created, tally.runs) == (2, 2)


async def test_what_depends_on_another_job_starts_at_its_end_or_is_skipped(store: MemoryStore) -> None:
    """S1-042: `extract` takes 20 minutes, and longer than its timeout where that is said."""
    late = hourly("late", "0 * * * *; tz=UTC", depends_on={"job": "extract", "within": "10m", "otherwise": "skip"})
    hopeless = hourly("hopeless", depends_on={"job": "never", "deadline": "30m"})
    never = hourly("never", execution_timeout="5m")
    await put_all(store, [hourly("extract"), hourly("load", depends_on="extract"), late, never, hopeless])

    given = {"extract": 20 * timedelta(minutes=1), "never": HOUR / 2}
    found = await foresee(
        store, DAY, slots=9, given={**dict.fromkeys(("load", "late", "hopeless"), HOUR / 60), **given}
    )

    tallies = {tally.name: tally for tally in found.tallies}
    assert (tallies["load"].runs, tallies["load"].worst) == (23, 20 * timedelta(minutes=1))
    assert (tallies["late"].runs, tallies["late"].not_run) == (0, {("skipped", "dependency"): 24})
    assert (tallies["hopeless"].runs, tallies["hopeless"].not_run) == (0, {("skipped", "dependency"): 23})


async def test_no_more_run_at_once_than_a_limit_lets(store: MemoryStore) -> None:
    """Three jobs of an hour each hour, of which two may run: one is late by an hour, and its next is skipped."""
    jobs = [hourly(name, tags=["crm"]) for name in ("one", "three", "two")]
    await put_all(store, jobs)
    free = await foresee(store, DAY, slots=9, given=dict.fromkeys(("one", "three", "two"), HOUR - DAY / 1440))
    assert (free.record.peak, sum(tally.late for tally in free.tallies)) == (3, 0)
    await store.request("tag:crm", SetLimit(2))
    held = await foresee(store, DAY, slots=9, given=dict.fromkeys(("one", "three", "two"), HOUR - DAY / 1440))
    assert held.record.peak == 2
    assert sum(tally.late for tally in held.tallies) > 20
    assert held.left_out == ()


async def test_nothing_starts_while_a_brake_holds_or_a_freeze_window_is_open(store: MemoryStore) -> None:
    await put(store, hourly())
    window = PutBrake(begins=schedule("30 17 * * *; tz=UTC"), ends=schedule("30 20 * * *; tz=UTC"))
    await store.request("job:hourly", window)
    found = await foresee(store, 2 * DAY, slots=9, given={"hourly": timedelta(0)})
    [tally] = found.tallies
    assert (tally.late, tally.worst, tally.overlaps) == (2, timedelta(hours=2, minutes=30), 4)
    assert found.left_out == ("the soft release of job hourly after a brake: hourly",)


@pytest.mark.parametrize(("share", "hours"), [(None, 8), (1.0, 8), (0.5, 10), (0.25, 14)])
async def test_late_runs_get_their_share_of_the_slots(store: MemoryStore, share: float | None, hours: int) -> None:
    """Four runs of an hour were missed. The fewer of four slots they get, the later they are together."""
    await put(store, hourly(recovery="execute_all", overlap="allow"))
    gone = (NOON + HOUR / 2, NOON + HOUR / 2 + 4 * HOUR)
    takes = {"hourly": HOUR - DAY / 1440}
    found = await foresee(store, 12 * HOUR, slots=4, given=takes, outages=[gone], late_share=share)
    [tally] = found.tallies
    assert round(tally.lateness / HOUR) == hours


async def test_what_is_not_simulated_is_named_with_its_jobs(store: MemoryStore) -> None:
    await put_all(store, [hourly("one", tags=["crm"]), hourly("two")])
    await store.request("tag:crm", SetLimit(None, Rate(60, timedelta(minutes=1))))
    await store.apply([Put(hourly("two", priority=3), None, update_policy("rollout 10%"))], "ann")
    found = await foresee(store, DAY, slots=4)
    assert found.left_out == (
        "the rate 60/1m of tag crm: one",
        "the outcomes of a rollout, which stays in its stage: two",
    )
    assert {tally.runs for tally in found.tallies} == {24}
