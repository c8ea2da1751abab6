"""Health: what a node says of its store, to readiness and to its log."""

import logging
from typing import Any

import pytest

from everytick.errors import Contended, StoreBroken, StoreUnavailable
from everytick.node.health import Health
from everytick.node.inbox import BeatWanted, StoreAnswers, StoreAway
from tests.unit.node.parts import inbox

AWAY = StoreUnavailable("the store", "away")
BROKEN = StoreBroken("the store", "no such table: job_state")


class Reading:
    """A clock that a test moves."""

    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_a_store_that_is_back_is_well_with_its_first_beat() -> None:
    now, told = Reading(), list[Any]()
    health = Health(inbox(told.append), now, silence_seconds=20.0)
    now.seconds += 1
    now.seconds += 1
    health.failed(AWAY)
    now.seconds += 10
    health.answered()
    assert (health.is_ready, health.failing_for) == (False, 10.0)
    health.has_beaten()
    health.answered()
    assert (health.is_ready, health.failing_for) == (True, 0.0)
    assert told == [StoreAway(str(AWAY)), BeatWanted(), StoreAnswers()]


def test_a_store_is_away_from_a_failure_until_it_is_heard_again() -> None:
    """C-28: what was handed over to it is not asked about meanwhile, so that no local step waits for an answer."""
    now = Reading()
    health = Health(inbox(), now, silence_seconds=20.0)
    seen = [health.is_away]
    now.seconds += 1
    health.failed(AWAY)
    seen.append(health.is_away)
    now.seconds += 1
    health.answered()
    seen.append(health.is_away)
    assert seen == [False, True, False]
    assert not health.is_ready, "it has taken no beat yet"


def test_an_answer_without_a_beat_asks_for_one() -> None:
    now, told = Reading(), list[Any]()
    health = Health(inbox(told.append), now, silence_seconds=20.0)
    health.answered()
    assert told == []
    now.seconds += 1
    health.failed(AWAY)
    now.seconds += 1
    health.answered()
    assert told == [StoreAway(str(AWAY)), BeatWanted()]


def test_a_full_disk_that_takes_beats_is_told_once_and_is_well_once_nothing_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """F-11: whatever still fits, a store is not well that fails every few seconds."""
    now = Reading()
    health = Health(inbox(), now, silence_seconds=20.0)
    with caplog.at_level(logging.WARNING):
        for _ in range(100):
            health.failed(StoreUnavailable("store.db", "disk full"))
            now.seconds += 2
            health.has_beaten()
            health.answered()
            now.seconds += 3
        was_ready = health.is_ready
        assert len(caplog.records) <= 3
        for _ in range(4):
            now.seconds += 5
            health.has_beaten()
            health.answered()
    assert (was_ready, health.is_ready) == (False, True)
    assert "the store answers again" in caplog.records[-1].getMessage()


def test_a_broken_store_is_not_ready_while_some_of_its_tables_still_answer(caplog: pytest.LogCaptureFixture) -> None:
    """W5, C-46: beats and claims go through, and plans do not; one line says so, and how often it is tried."""
    now, told = Reading(), list[Any]()
    health = Health(inbox(told.append), now, silence_seconds=20.0)
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            health.failed(BROKEN)
            now.seconds += 1
            health.has_beaten()
            health.answered()
            assert (health.is_ready, health.is_back) == (False, False)
            now.seconds += 4
        [said] = [record.getMessage() for record in caplog.records]
        assert said == (
            "the store answers with errors: no such table: job_state; this does not pass by itself: mend it; "
            "nothing that needs the store fires until it is mended, which is looked for every 5 seconds"
        )
        for _ in range(4):
            now.seconds += 5
            health.has_beaten()
            health.answered()
    changes = [event for event in told if not isinstance(event, BeatWanted)]
    assert (health.is_ready, changes) == (True, [StoreAway(str(BROKEN)), StoreAnswers()])


def test_a_session_in_the_way_is_an_outage_only_while_beats_fail_too() -> None:
    """A lock on one row says nothing about the store; a bare write that fails does."""
    health = Health(inbox(), Reading(), silence_seconds=20.0)
    health.failed(Contended("the store", "canceling statement due to lock timeout"))
    assert health.is_ready
    health.beat_failed("canceling statement due to statement timeout")
    health.failed(Contended("the store", "canceling statement due to statement timeout"))
    assert not health.is_ready
