"""What a node tells of what it decided: events for listeners, lines for logs; one per span, with its count."""

import logging
from datetime import timedelta

import pytest

from everytick.domain.job import Job
from everytick.node.events import Event, Happening
from everytick.runners.base import Body
from everytick.schedules.interval import every
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import NOON, World, pause


def test_a_retry_is_told_also_where_its_wait_is_parked(live: Live) -> None:
    """F18: a wait of more than 5 s gives the slot back, and most waits are longer."""

    async def story(world: World) -> None:
        async def body() -> None:
            raise RuntimeError("boom")

        job = await world.define("tries", body, retry={"max": 2, "interval": "1m"})
        node = world.node()
        told: list[Event] = []
        node.listeners.listen(told.append)
        await node.start()
        await world.ended(await world.trigger(job))
        await node.stop()
        planned = [each for each in told if each.kind is Happening.RETRY_PLANNED]
        assert [(each.task, each.attempt) for each in planned] == [("a", 2), ("a", 3)]
        assert all(each.text.startswith("at ") for each in planned)

    live(story)


@pytest.mark.parametrize(
    ("recovery", "level", "why"),
    [("mark_as_missed", logging.WARNING, "missed"), ("execute_last", logging.INFO, "skipped: not last")],
)
def test_what_an_outage_cost_is_one_event_and_one_line(
    live: Live, caplog: pytest.LogCaptureFixture, recovery: str, level: int, why: str
) -> None:
    """F18, S0-094: with the count, the first and the last instant, and the next run."""
    caplog.set_level(logging.INFO, "everytick.planner")

    async def story(world: World) -> None:
        async def body() -> None:
            return None

        await world.define("often", body, every("5m", start=NOON), recovery=recovery)
        first = world.node()
        await first.start()
        await pause("6m")
        await first.stop()
        await pause("16m30s")
        again = world.node()
        told: list[Event] = []
        again.listeners.listen(told.append)
        caplog.clear()
        await again.start()
        await pause("1m")
        await again.stop()
        [skipped] = [each for each in told if each.kind is Happening.SKIPPED]
        count = 3 if recovery == "mark_as_missed" else 2
        last = NOON + (1 + count) * timedelta(minutes=5)
        assert (skipped.count, skipped.first, skipped.scheduled_for) == (count, NOON + timedelta(minutes=10), last)

    live(story)
    [line] = [each for each in caplog.records if "did not run" in each.getMessage()]
    assert line.levelno == level
    assert f"({why}) and will not be made up for; the next run is at" in line.getMessage()


def test_a_dispatch_that_fails_is_logged_with_its_text(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    """S4-043, S4-048: people search logs for it."""

    async def story(world: World) -> None:
        async def body() -> None:
            return None

        job = await world.define("broken", body)
        node = world.node()

        made, asked = node.scope._catalogue.bodies, []

        def fails(job: Job) -> tuple[Body, ...] | None:
            """As a module that could be found when the node looked, and is broken when it is wanted."""
            asked.append(job.name)
            if len(asked) == 1:
                return made(job)
            raise RuntimeError("no such module")

        node.scope._catalogue.bodies = fails  # type: ignore[method-assign]
        await node.start()
        await world.trigger(job)
        await pause("2s")
        await node.stop()

    live(story)
    assert any("Failed to dispatch run: what job 'broken' calls" in each.getMessage() for each in caplog.records)
