"""What a node logs of its events: how loud, in which words, and how often."""

import logging
from collections.abc import Callable
from datetime import timedelta

import pytest

from everytick.domain.durations import instant
from everytick.errors import GiveUp
from everytick.node.event_log import log_event
from everytick.node.events import Event, Happening
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import World, passing, pause

AT = instant("2026-07-01T09:00:00Z")
Said = list[tuple[str, str]]


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], Said]:
    """What was logged of events, with its level."""

    def found() -> Said:
        return [(each.levelname, each.getMessage()) for each in caplog.records if each.name == "everytick.events"]

    return found


async def boom() -> None:
    raise ValueError("boom")


def test_a_failure_is_a_warning_while_it_is_tried_again_and_one_error_in_the_end(
    live: Live, said: Callable[[], Said], caplog: pytest.LogCaptureFixture
) -> None:
    """A1, M1: at the level that Python has without configuration; what ended well says nothing there."""
    caplog.set_level(logging.WARNING, "everytick.events")

    async def story(world: World) -> None:
        async def well() -> int:
            return 1

        good = await world.define("good", well)
        flaky = await world.define("flaky", boom, retry={"max": 2, "interval": "90s"})
        node = world.node()
        await node.start()
        await world.ended(await world.trigger(good))
        await world.ended(await world.trigger(flaky))
        await node.stop()

    live(story)

    (first, one), (second, two), (last, three) = said()
    assert [first, second, last] == ["WARNING", "WARNING", "ERROR"]
    assert "task a attempt 1 of 3 failed: ValueError: boom; it is tried again in 1m30s, at 2024-01-01T12:0" in one
    assert "task a attempt 2 of 3 failed: ValueError: boom; it is tried again in 1m30s, at " in two
    assert three.startswith("flaky 2024-01-01T12:00:00Z failed: ValueError: boom (3 attempts); it is not tried again")
    error = caplog.records[-1]
    assert error.exc_text is not None
    assert error.exc_text.startswith("Traceback (most recent call last):\n")
    assert error.exc_text.endswith("\nValueError: boom")
    assert "Traceback" in caplog.text


def test_a_task_that_gives_up_is_one_error_without_a_warning(
    live: Live, said: Callable[[], Said], caplog: pytest.LogCaptureFixture
) -> None:
    async def story(world: World) -> None:
        async def body() -> None:
            raise GiveUp("no such customer")

        job = await world.define("mail", body, retry={"max": 5, "interval": "1s"})
        node = world.node()
        await node.start()
        await world.ended(await world.trigger(job))
        await node.stop()

    live(story)
    [(level, text)] = said()
    assert (level, text) == (
        "ERROR",
        "mail 2024-01-01T12:00:00Z failed: no such customer; it is not tried again",
    )
    assert caplog.text.count("no such customer") == 1, "an error of one line has no traceback below it"


def test_a_task_that_fails_while_others_go_on_is_a_warning_and_the_occurrence_one_error(
    live: Live, said: Callable[[], Said], caplog: pytest.LogCaptureFixture
) -> None:
    """A1: minutes may pass between the two."""

    async def story(world: World) -> None:
        async def long() -> None:
            await passing(300)

        job = await world.define(
            "both", {"x": boom, "y": long}, mode="parallel", failure="continue", task_timeout="10m"
        )
        node = world.node()
        await node.start()
        await world.ended(await world.trigger(job), "10m")
        await node.stop()

    live(story)
    (warning, early), (error, late) = said()
    assert (warning, error) == ("WARNING", "ERROR")
    about, end = "both 2024-01-01T12:00:00Z", "ValueError: boom; it is not tried again"
    assert early == f"{about} task x attempt 1 of 1 failed: {end}"
    assert late == f"{about} completed_with_errors: 1 of 2 tasks failed: x: {end}"
    assert "Traceback" in caplog.text


def test_a_retry_without_limit_shows_its_traceback_at_once(
    live: Live, said: Callable[[], Said], caplog: pytest.LogCaptureFixture
) -> None:
    """M1: no ERROR would ever follow. So it is for the declarative scheduler, which retries without end."""

    async def story(world: World) -> None:
        job = await world.define("tries", boom, retry={"max": None, "interval": "1h"})
        node = world.node()
        await node.start()
        await world.trigger(job)
        await pause("1m")
        await node.stop()

    live(story)
    [(level, text)] = said()
    assert (level, " task a attempt 1 failed: ValueError: boom; it is tried again in 1h, at " in text) == (
        "WARNING",
        True,
    )
    assert "\nValueError: boom" in caplog.text


def test_what_is_lost_with_its_node_is_an_error_only_if_it_is_not_run_again(caplog: pytest.LogCaptureFixture) -> None:
    lost = Event(Happening.LOST, AT, "a", "occ_1", AT, status="failed_stale", text="node-1")
    again = Event(Happening.LOST, AT, "a", "occ_1", AT, status="pending", text="node-1")
    for event in (lost, again):
        log_event(event)
    (first, lost_text), (second, again_text) = [(each.levelname, each.getMessage()) for each in caplog.records]
    about = "a 2026-07-01T09:00:00Z was lost with its node node-1 and is now"
    assert (first, lost_text) == ("ERROR", f"{about} failed_stale; it is not tried again")
    assert (second, again_text) == ("WARNING", f"{about} pending; the next node with a free slot goes on with it")


def test_what_ends_well_is_told_to_those_who_asked_for_info(caplog: pytest.LogCaptureFixture) -> None:
    ended = Event(Happening.ENDED, AT, "a", "occ_1", AT, status="completed")
    started = Event(Happening.STARTED, AT, "a", "occ_1", AT, task="a", attempt=1)
    with caplog.at_level(logging.INFO, "everytick.events"):
        for event in (started, ended):
            log_event(event)
    [line] = caplog.records
    assert (line.levelname, line.getMessage()) == ("INFO", "a 2026-07-01T09:00:00Z completed")
    assert (line.job, line.occurrence) == ("a", "occ_1")  # type: ignore[attr-defined]


def test_a_wait_with_jitter_is_told_in_milliseconds(caplog: pytest.LogCaptureFixture) -> None:
    wait = timedelta(seconds=2, microseconds=123_456)
    log_event(
        Event(
            Happening.ATTEMPT_ENDED,
            AT,
            "a",
            "occ_1",
            AT,
            "a",
            1,
            "failed",
            "ValueError: boom",
            of=2,
            retry_at=AT + wait,
            wait=wait,
        )
    )
    assert "it is tried again in 2.123s, at 2026-07-01T09:00:02Z" in caplog.text


def test_a_brake_is_said_to_hold_no_longer_than_it_does(said: Callable[[], Said]) -> None:
    """It may begin later, and end by itself: no person has to release it."""
    log_event(Event(Happening.BRAKED, AT, text="tag crm: brake from 18:00 until 20:00"))

    assert said() == [
        ("WARNING", "node braked: tag crm: brake from 18:00 until 20:00; nothing of it starts while the brake holds")
    ]
