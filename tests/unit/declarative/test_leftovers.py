"""What an earlier instance left: of everything that could make up for it, one run does."""

from dataclasses import replace

import pytest

from everytick.declarative.jobs import unscheduled
from everytick.declarative.resuming import Leftovers, leftovers, owed
from tests.unit.declarative.kit import at, occurrence, ran, record, registration

HOURLY = registration()


def test_what_was_running_is_restarted_where_nothing_else_came() -> None:
    """S2-059: no minute was missed since."""
    stored = record(HOURLY, at("12:00:01"), ended=ran(at("11:00")))
    running = occurrence("x", at("12:00"), "running", owner="first")
    assert leftovers(stored, [running], at("12:30"), has_run=True) == Leftovers(restart=("x",))


def test_a_minute_that_came_meanwhile_takes_the_place_of_what_was_running() -> None:
    """S2-011: the planner makes one run of it, so what was left running must not be another."""
    stored = record(HOURLY, at("12:00:01"), ended=ran(at("11:00")))
    running = occurrence("x", at("12:00"), "running", owner="first")
    assert leftovers(stored, [running], at("13:30"), has_run=True) == Leftovers(end=("x",))


def test_a_minute_that_came_meanwhile_takes_the_place_of_all_that_waits() -> None:
    """S2-011: also for occurrences that other nodes of the store have planned in between."""
    stored = record(HOURLY, at("14:00:01"), ended=ran(at("11:00")))
    waits = [occurrence("z", at("14:00"), "queued"), occurrence("x", at("12:00"), "pending")]
    assert leftovers(stored, waits, at("15:10"), has_run=True) == Leftovers(cancel=("z", "x"))


def test_a_minute_from_before_a_task_went_takes_the_place_of_what_was_running() -> None:
    """S2-011: the planner still decides it by the words from before, once the task is back."""
    stored = record(HOURLY, at("12:00:01"), ended=ran(at("11:00")))
    running = occurrence("x", at("12:00"), "running", owner="first")
    for went, expected in (("13:10", Leftovers(end=("x",))), ("12:50", Leftovers(restart=("x",)))):
        away = replace(stored, job=replace(unscheduled(stored.job), updated_at=at(went)))
        assert leftovers(away, [running], at("13:30"), has_run=True) == expected


def test_of_those_that_wait_the_newest_runs() -> None:
    """S2-011."""
    stored = record(HOURLY, at("14:00:01"), ended=ran(at("11:00")))
    active = [
        occurrence("z", at("14:00"), "queued"),
        occurrence("y", at("13:00"), "pending"),
        occurrence("x", at("12:00"), "running", owner="first"),
    ]
    assert leftovers(stored, active, at("14:10"), has_run=True) == Leftovers(cancel=("y",), end=("x",))


def test_what_waits_for_a_retry_goes_on_waiting() -> None:
    """S2-013, S2-022."""
    stored = record(HOURLY, at("12:00:01"), ended=ran(at("11:00")))
    waits = occurrence("x", at("12:00"), "awaiting_retry", ready_at=at("12:20"))
    assert leftovers(stored, [waits], at("12:10"), has_run=True) == Leftovers()


@pytest.mark.parametrize(("now", "canceled"), [("12:00:59", ()), ("12:01:00", ("x",))])
def test_a_task_that_never_ran_begins_in_its_own_minute_only(now: str, canceled: tuple[str, ...]) -> None:
    """S2-012, S2-019: what was planned for it and never called is no make-up."""
    waits = occurrence("x", at("12:00"), "pending")
    assert leftovers(record(HOURLY, at("12:00:01")), [waits], at(now), has_run=False) == Leftovers(cancel=canceled)


RETRYING = occurrence("x", at("12:00"), "awaiting_retry", ready_at=at("12:50"))


@pytest.mark.parametrize(("attempted", "expected"), [(None, True), ("12:29:59", True), ("12:30:00", False)])
def test_a_changed_task_runs_in_a_minute_that_matches_now_and_in_which_it_has_not_run(
    attempted: str | None, expected: bool
) -> None:
    """S2-019, case A: whatever attempt that was, also a retry."""
    schedule = registration(expression="30 * * * *").schedule
    last = None if attempted is None else at(attempted)
    for active in ([], [RETRYING]):
        found = owed(record(HOURLY, at("12:00:01")), active, schedule, at("12:30:40"), last)
        assert found == (at("12:30") if expected else None)
    assert owed(record(HOURLY, at("12:00:01")), [], schedule, at("12:31"), last) is None


def test_a_task_that_was_away_makes_up_for_what_it_missed_once() -> None:
    """S2-013, S2-019, case B: by its last attempt, and not before its first."""
    stored = record(HOURLY, at("12:00:01"))
    away = replace(stored, job=unscheduled(stored.job))
    assert owed(away, [], HOURLY.schedule, at("13:20"), at("12:00")) == at("13:00")
    assert owed(away, [RETRYING], HOURLY.schedule, at("13:20"), at("12:00")) == at("13:00")
    assert owed(away, [], HOURLY.schedule, at("13:20"), at("13:00:30")) is None
    assert owed(away, [], HOURLY.schedule, at("13:20"), None) is None
    assert owed(away, [], registration(expression="10 0 * * *").schedule, at("13:20"), at("12:00")) == at("13:00")


def test_a_task_that_never_ran_runs_in_the_minute_of_its_new_words_whatever_it_missed() -> None:
    """S2-019: what it missed by its old words is dropped, and must not stand in the way of case A."""
    stored = record(HOURLY, at("12:30"))
    schedule = registration(expression="20 * * * *").schedule
    assert owed(stored, [], schedule, at("13:20:10"), None) == at("13:20")
    assert owed(stored, [], registration(expression="* * * * *").schedule, at("13:00:10"), None) is None


def test_nothing_is_owed_where_something_makes_up_for_it_anyway() -> None:
    """S2-011: what was left running or waiting, or the planner."""
    stored = record(HOURLY, at("12:00:01"))
    away = replace(stored, job=unscheduled(stored.job))
    for status in ("running", "pending", "queued"):
        assert owed(away, [occurrence("x", at("12:00"), status)], HOURLY.schedule, at("13:20"), at("12:00")) is None
    assert owed(stored, [], registration(expression="20 * * * *").schedule, at("13:20"), at("12:00")) is None
