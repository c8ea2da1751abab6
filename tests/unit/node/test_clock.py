"""The node's clock: never ahead of the store's, and with it wherever that is set to."""

from datetime import UTC, datetime, timedelta

import pytest

from everytick.domain.decisions import Plan
from everytick.domain.statuses import OccurrenceStatus
from everytick.node.clock import NodeClock
from everytick.schedules.interval import every
from tests.unit.node.conftest import Live
from tests.unit.node.refusing import RefusingStore
from tests.unit.node.worlds import NOON, World, living, passing, pause

HERE = datetime(2026, 11, 16, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Wall:
    """A store's clock, and a way to it that takes time; `passed` is what the monotonic clock shows."""

    def __init__(self) -> None:
        self.passed, self.offset = 0.0, timedelta(0)
        self.clock = NodeClock(lambda: self.passed)

    def ask(self, there: float = 0.0, back: float = 0.0) -> None:
        """Ask the store for the time; the question and the answer take so many seconds."""
        asked_at = self.passed
        self.passed += there
        told = HERE + timedelta(seconds=self.passed) + self.offset
        self.passed += back
        self.clock.learn(told, asked_at)

    @property
    def error(self) -> float:
        """How many seconds the clock is ahead of the store's."""
        return (self.clock.now() - HERE - timedelta(seconds=self.passed) - self.offset).total_seconds()


@pytest.mark.parametrize("step", [-300.0, -1.5, 1.5, 300.0, 3600.0])
def test_it_follows_a_store_whose_clock_is_set(step: float) -> None:
    """C-45: back as well as ahead, with the first answer that cannot be explained otherwise."""
    wall = Wall()
    wall.ask(0.1, 0.2)
    wall.passed += 10
    wall.offset = timedelta(seconds=step)
    wall.ask(0.05, 0.1)
    assert -0.21 < wall.error <= 0
    assert wall.clock.ahead == (timedelta(seconds=step + 0.1) if step > 0 else timedelta(0))


def test_an_answer_that_was_long_on_its_way_is_no_step() -> None:
    """A question that hung for a minute: neither has the store gone back, nor ahead with the next answer."""
    wall = Wall()
    wall.ask(0.01, 0.02)
    for there, back in ((0, 60), (60, 0), (30, 30), (0.01, 0.01)):
        wall.passed += 5
        wall.ask(there, back)
        assert -0.021 < wall.error <= 0
    assert wall.clock.ahead == timedelta(0)


def test_a_slow_first_answer_is_improved_by_the_next() -> None:
    wall = Wall()
    wall.ask(0, 30)
    assert wall.error == -30
    wall.ask(0.01, 0.01)
    assert wall.error == pytest.approx(-0.01)
    assert wall.clock.ahead == timedelta(0)


def test_clocks_that_drift_apart_do_not_step() -> None:
    """500 parts in a million are the most that NTP turns a clock by."""
    wall = Wall()
    for _ in range(2000):
        wall.passed += 5
        wall.offset += timedelta(seconds=5 * 0.0005)
        wall.ask(0.001, 0.001)
        assert -0.01 < wall.error <= 0.003
    assert wall.clock.ahead == timedelta(0)


# --------------------------------------------------------------------------------------------------- with real nodes


@pytest.mark.parametrize("ahead", [timedelta(0), HOUR])
def test_nothing_fails_unrun_while_the_stores_clock_is_set_back(live: Live, ahead: timedelta) -> None:
    """F-5: every occurrence of a job with an execution_timeout runs, however far back the clock was set."""

    async def story(world: World) -> None:
        ran: list[float] = []

        async def body() -> None:
            ran.append(world.loop.time())
            await passing(2)

        job = await world.define("short", body, execution_timeout="30s", overlap="allow")
        node = world.node()
        await node.start()
        if ahead:
            world.offset += ahead
            await pause("20s")
        world.offset -= ahead or timedelta(minutes=5)
        for seconds in (1, 20, 30):
            await passing(seconds)
            asked = await world.trigger(job, f"after {seconds}")
            ended = await world.ended(asked, "2m")
            assert (ended.status, ended.error) == (OccurrenceStatus.COMPLETED, None)
            assert ended.started_at is not None
            assert ended.ended_at is not None
            assert timedelta(0) <= ended.ended_at - ended.started_at < timedelta(seconds=10)
        assert len(ran) == 3
        await node.stop()

    live(story)


def test_a_deadline_under_way_is_counted_on_the_owners_own_clock(live: Live) -> None:
    """A step ahead, between two tasks and in the middle of one, takes no time from it; then its time is over."""

    async def story(world: World) -> None:
        async def quick() -> None:
            await passing(8)

        async def stuck() -> None:
            await passing(10_000)

        tasks = {"a": quick, "b": quick, "c": stuck}
        job = await world.define("steps", tasks, execution_timeout="40s", task_timeout="1h")
        nodes = [world.node(grace_period="2s"), world.node(grace_period="2s")]
        for node in nodes:
            await node.start()
        asked = await world.trigger(job)
        await pause("4s")
        began = world.loop.time() - 4
        world.offset += HOUR
        ended = await world.ended(asked, "2h")
        assert (ended.status, ended.error) == (OccurrenceStatus.FAILED, "Execution exceeded timeout")
        assert 38 <= world.loop.time() - began <= 46
        whole = await world.store.whole(asked)
        assert [str(run.status) for run in whole.runs] == ["success", "success", "timeout"]
        for node in nodes:
            await node.stop()

    live(story)


def test_a_timeout_of_a_task_is_counted_on_the_owners_own_clock(live: Live) -> None:
    """The clock is set between the start of the attempt and the winding of its timeout."""

    async def story(world: World) -> None:
        async def body() -> None:
            await passing(10)

        job = await world.define("task", body, task_timeout="30s")
        node = world.node()
        await node.start()
        for step in (HOUR, -HOUR):
            asked = await world.trigger(job, f"step {step}")
            await pause("100ms")
            world.offset += step
            ended = await world.ended(asked, "2h")
            assert ended.status is OccurrenceStatus.COMPLETED
        await node.stop()

    live(story)


class Refusing(RefusingStore):
    """A store that takes no occurrence of the job `bad` for a while."""

    refuses = False

    def look_at_plan(self, job: str, plan: Plan) -> None:
        if self.refuses and job == "bad" and plan.creations:
            raise ValueError("no such column")


def test_a_postponed_job_is_tried_again_though_the_clock_was_set_back() -> None:
    """It is tried again within a minute or two, not when the clock has caught up."""

    async def story(world: World) -> None:
        ran: list[float] = []

        async def body() -> None:
            ran.append(world.loop.time())

        job = await world.define("bad", body)
        await world.define("good", body, every("10s", start=NOON))
        store = world.store
        assert isinstance(store, Refusing)
        node = world.node()
        await node.start()
        store.refuses = True
        asked = await world.trigger(job)
        await pause("55s")
        world.offset -= HOUR
        store.refuses = False
        assert (await world.ended(asked, "5m")).status is OccurrenceStatus.COMPLETED
        await node.stop()

    living(story, Refusing)
