"""The host's clock against the store's: nothing depends on it, and people are told."""

from datetime import UTC, datetime, timedelta

import pytest

from everytick.node.clock import NodeClock, Offset
from everytick.schedules.interval import every
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import NOON, World, pause

HERE = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(("off", "words"), [(3, "3.0 seconds ahead of"), (-5000, "5000.0 seconds behind")])
def test_a_clock_that_is_off_is_told_once(caplog: pytest.LogCaptureFixture, off: int, words: str) -> None:
    """C-05: measured continuously, warned about above a second, and again when it is set."""
    offset = Offset(lambda: HERE)
    for _ in range(3):
        offset.compare(HERE - timedelta(seconds=off))
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert words in said[0]
    offset.compare(HERE)
    assert "agrees" in caplog.records[-1].getMessage()


def test_one_answer_that_looks_old_is_no_alarm(caplog: pytest.LogCaptureFixture) -> None:
    """B14: while a task blocks the loop the store's answer waits; the clock is right all the same."""
    offset = Offset(lambda: HERE)

    offset.compare(HERE - timedelta(seconds=6))
    offset.compare(HERE)

    assert caplog.records == []


def test_a_second_is_no_matter(caplog: pytest.LogCaptureFixture) -> None:
    """C-05: clocks that are right differ a little."""
    Offset(lambda: HERE).compare(HERE + timedelta(seconds=0.9))
    assert caplog.records == []


@pytest.mark.parametrize("years", [-10, -1, 1, 10])
def test_a_host_clock_that_is_set_changes_nothing_that_fires(live: Live, years: int) -> None:
    """S0-072, S1-030, B1–B4, C-05: the node sleeps by a monotonic clock, and the store's clock decides."""

    async def story(world: World) -> None:
        begun: list[datetime] = []

        async def body() -> None:
            begun.append(world.now())

        await world.define("tick", body, every("10s", start=NOON))
        shown = timedelta(0)
        node = world.node(host=lambda: world.now() + shown)
        await node.start()
        await pause("25s")
        shown = timedelta(days=365 * years)
        await pause("30s")
        await node.stop()
        assert [round((at - NOON).total_seconds()) for at in begun] == [10, 20, 30, 40, 50]

    live(story)


def test_an_answer_about_the_past_does_not_hold_the_clock_up() -> None:
    """A claim that is adopted tells when it was made, seconds ago: the node's clock goes on all the same."""
    passed = 0.0
    clock = NodeClock(lambda: passed)
    clock.learn(HERE)
    passed = 10.0
    clock.learn(HERE - timedelta(seconds=8))
    passed = 12.0
    assert clock.now() == HERE + timedelta(seconds=12)


def test_nodes_whose_hosts_disagree_about_the_time_run_each_instant_once_and_on_time(live: Live) -> None:
    """S0-072, S1-008: one host is an hour ahead, one an hour behind; the store's clock decides for both."""

    async def story(world: World) -> None:
        begun: list[int] = []

        async def body() -> None:
            begun.append(round((world.now() - NOON).total_seconds()))

        job = await world.define("tick", body, every("10s", start=NOON))
        hour = timedelta(hours=1)
        nodes = [world.node(host=lambda: world.now() + hour), world.node(host=lambda: world.now() - hour)]
        for node in nodes:
            await node.start()
        await pause("55s")
        for node in nodes:
            await node.stop()
        assert begun == [10, 20, 30, 40, 50]
        found = await world.history(job)
        assert [(each.started_at or NOON) - each.scheduled_for < timedelta(seconds=1) for each in found] == [True] * 5

    live(story)
