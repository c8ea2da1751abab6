"""What a plan gives to the dispatcher: occurrences that may start, and nothing that a guard holds back."""

from typing import Any

import pytest

from everytick import cron
from everytick.deciding.plan import plan
from everytick.domain.ids import trigger_id
from everytick.domain.snapshots import Adjustment, AdjustmentKind, Ended, JobSnapshot, PausedSpan
from tests.unit.deciding.planning import active, at, created, job, snapshot_of

BY_HAND = trigger_id(job().id, "by hand")


def guarded(known: dict[str, Any] | None = None, when: str = "0 * * * *", **policies: Any) -> JobSnapshot:
    """A job whose instant of 10:00 is due, with something that holds it back."""
    return snapshot_of(job(when, **policies), at("09:30"), **known or {})


GUARDS = {
    "runs": guarded({"active": (active("a", at("09:00")),)}),
    "waits for a node": guarded({"active": (active("a", at("09:00"), "pending"),)}),
    "waits for a retry": guarded({"active": (active("a", at("09:00"), "awaiting_retry"),)}),
    "was successful": guarded(
        {"last_success": Ended(at("09:00"), at("09:40"), at("09:41"), BY_HAND)}, skip_if_successful=True
    ),
    "is paused": guarded({"pauses": (PausedSpan(at("09:40")),)}),
    "is disabled": guarded(enabled=False),
    "is removed": guarded({"retire_at": at("09:40")}),
    "has not begun": guarded(when=str(cron("0 * * * *", start=at("11:00")))),
    "is over": guarded(when=str(cron("0 * * * *", end=at("09:45")))),
    "was skipped by hand": guarded({"adjustments": (Adjustment(at("10:00"), AdjustmentKind.SKIP),)}),
    "was moved by hand": guarded({"adjustments": (Adjustment(at("10:00"), AdjustmentKind.MOVE, at("10:30")),)}),
    "was decided": snapshot_of(job(), at("10:00")),
}


def test_an_instant_that_nothing_holds_back_is_to_be_dispatched() -> None:
    """S4-002: as the control of the guards below."""
    assert created(plan(guarded(), at("10:00:01"))) == [(at("10:00"), "pending")]


@pytest.mark.parametrize("guard", GUARDS)
def test_what_a_guard_holds_back_is_not_among_what_is_to_be_dispatched(guard: str) -> None:
    """S4-002, S4-015: a plan is the whole answer; a dispatcher needs nothing more."""
    decided = plan(GUARDS[guard], at("10:00:01"))

    assert decided.creations == ()
    assert decided.releases == ()


def test_a_run_by_hand_does_not_stand_for_an_instant_of_the_schedule() -> None:
    """S4-021, S1-022: it began and ended after the instant, before that was decided, and both run."""
    by_hand = Ended(at("10:00:01"), at("10:00:01"), at("10:00:02"), BY_HAND)
    seen = snapshot_of(job(), at("09:30"), last_success=by_hand, last_end=by_hand)

    assert created(plan(seen, at("10:00:03"))) == [(at("10:00"), "pending")]
