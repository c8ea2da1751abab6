"""Runs that were asked for at a time: when a plan wakes for them, and what becomes of a late one (A9)."""

from typing import Any

import pytest

from everytick.deciding.plan import plan
from tests.unit.deciding.planning import active, at, created, job, snapshot_of, trigger

WINDOW = {"strategy": "bounded_window", "max_duration": "30m"}


@pytest.mark.parametrize(
    ("recovery", "status", "why"),
    [
        ("execute_last", "pending", "asked for"),
        ("execute_all", "pending", "asked for"),
        ("compressed", "pending", "asked for"),
        ("mark_as_missed", "missed", "missed"),
        (WINDOW, "skipped", "window"),
        ({"strategy": "bounded_window", "max_occurrences": 1}, "pending", "asked for"),
    ],
)
def test_a_late_one_runs_unless_recovery_lets_nothing_late_run(recovery: Any, status: str, why: str) -> None:
    """A9: no node ran at 10:10 and one comes at 11:40."""
    asked = trigger(due_at=at("10:10"))
    seen = snapshot_of(job(when="0 0 1 1 *", recovery=recovery), at("09:40"), requests=(asked,))

    [only] = plan(seen, at("11:40")).creations

    assert (str(only.status), str(only.why)) == (status, why)
    assert (only.scheduled_for, only.line_at, only.late) == (at("10:10"), at("10:10"), False)


@pytest.mark.parametrize("recovery", ["mark_as_missed", WINDOW])
def test_within_its_grace_it_is_on_time(recovery: Any) -> None:
    """A9: as an instant of a schedule is."""
    seen = snapshot_of(
        job(when="0 0 1 1 *", grace="5m", recovery=recovery), at("09:40"), requests=(trigger(due_at=at("10:10")),)
    )

    assert created(plan(seen, at("10:14"))) == [(at("10:10"), "pending")]


def test_each_is_a_run_of_its_own() -> None:
    """A9: what execute_last says of the instants of a schedule, it does not say of requests."""
    asked = tuple(trigger(f"k{minute}", due_at=at(f"10:{minute}")) for minute in (10, 20, 30))
    seen = snapshot_of(job(when="0 0 1 1 *", overlap="allow"), at("09:40"), requests=asked)

    assert created(plan(seen, at("11:40"))) == [(at(f"10:{minute}"), "pending") for minute in (10, 20, 30)]


def test_it_waits_in_line_behind_what_runs() -> None:
    """A9: overlap holds for it as for any request, from its time on."""
    runs = active("runs", at("09:00"))
    seen = snapshot_of(job(overlap="skip"), at("09:10"), active=(runs,), requests=(trigger(due_at=at("09:44")),))

    assert created(plan(seen, at("09:45"))) == [(at("09:44"), "queued")]


def test_the_job_wakes_for_one_that_is_to_come_before_the_schedule() -> None:
    """A9: the node sleeps until then and not longer."""
    seen = snapshot_of(job(), at("09:10"), next_request_at=at("09:50"))

    decided = plan(seen, at("09:45"))

    assert (decided.creations, decided.wake_at, decided.next_run) == ((), at("09:50"), at("10:00"))


def test_a_job_that_is_to_retire_keeps_it_until_then() -> None:
    """A9: a file that is gone for some minutes loses no run that was asked for."""
    asked = (trigger(due_at=at("09:44")),)

    waits = plan(snapshot_of(job(), at("09:10"), requests=asked, retire_at=at("09:50")), at("09:45"))
    refused = plan(snapshot_of(job(), at("09:10"), requests=asked, retire_at=at("09:50")), at("09:50"))

    assert (waits.creations, waits.answers, waits.wake_at) == ((), (), at("09:50"))
    assert created(refused) == [(at("09:44"), "skipped")]
    assert (len(refused.answers), refused.wake_at) == (1, None)
