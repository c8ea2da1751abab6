"""However often we look, the same comes out."""

import copy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from everytick.deciding.plain_plans import plain_plan
from everytick.deciding.plan import plan, plan_in_full
from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import PLAN_LIMIT, AdjustmentKind, Ended, JobSnapshot
from tests.laws.worlds import (
    BEGIN,
    MINUTE,
    RULES,
    Fact,
    History,
    adjust,
    committed,
    edit,
    finish,
    histories,
    life,
    newborn,
    policies,
    request,
    reschedule,
    settled,
)

FIXED = tuple(rule for rule in RULES if "after" not in rule)
OPEN: dict[str, Any] = {"recovery": "execute_all", "overlap": "allow", "late_cap": 1_000_000}


# The restart of 00:50 comes while the watermark waits for an end: it stops no occurrence that the first look let in.
RESTARTED = life(
    "after: 10m",
    {"overlap": "skip", "restart_schedule": "*/50 * * * *"},
    [(None, 10 * MINUTE, True), (finish(0, well=False), 40 * MINUTE, True)],
    2,
)
# The instant that is due comes in, so that the one place in line is left for the backfill, in the first look too.
FILLED = life(
    "0 * * * *",
    {"max_queued": 1},
    [(None, 0 * MINUTE, True), (request(Cause.BACKFILL, 0, None, 1, again=False), 60 * MINUTE, True)],
    100,
)
# The instant on time is skipped, so that the one place in line is left for the backfill.
SKIPPED = life(
    "0 * * * *",
    {"max_queued": 1},
    [(None, 60 * MINUTE, True), (request(Cause.BACKFILL, 0, None, 90, again=False), 60 * MINUTE, True)],
    100,
)


def _written_before() -> st.SearchStrategy[list[Fact]]:
    """What people wrote before the first look, and what is known in advance."""
    return st.lists(
        st.one_of(
            st.builds(edit, st.sampled_from(FIXED), st.just(OPEN), st.integers(0, 300)),
            st.builds(adjust, st.sampled_from(AdjustmentKind), st.integers(0, 5), st.integers(-90, 200)),
            st.builds(reschedule, st.integers(1, 200)),
        ),
        max_size=4,
    )


def _ids(seen: JobSnapshot, moments: list[datetime], limit: int) -> list[str]:
    created = []
    for now in moments:
        for looked in settled(seen, now, limit):
            created += [each.id for each in looked.plan.creations]
            seen = committed(looked.snapshot, looked.plan)
    return created


@settings(max_examples=120)
@given(
    st.sampled_from(FIXED),
    _written_before(),
    st.lists(st.integers(0, 40_000), min_size=1, max_size=6),
    st.integers(3, 100),
)
def test_live_and_late_create_the_same_occurrences(
    rule: str, facts: list[Fact], seconds: list[int], limit: int
) -> None:
    """S1-010, S1-012, S4-001; split invariance: execute_all and allow, no cap, no pause; D1, D2, D3."""
    seen = newborn(rule, OPEN)
    for fact in facts:
        seen = fact(seen, BEGIN)
    moments = [BEGIN + timedelta(seconds=each) for each in sorted(seconds)]

    often, once = _ids(seen, moments, limit), _ids(seen, moments[-1:], PLAN_LIMIT)

    assert len(set(often)) == len(often)
    assert set(often) == set(once)


@settings(max_examples=120)
@given(histories())
@example(RESTARTED)
@example(FILLED)
@example(SKIPPED)
def test_looking_again_at_the_same_moment_decides_nothing_new(history: History) -> None:
    """S0-013; idempotence; S0-098: once a plan was not cut there is nothing left to decide."""
    assume(history)
    last = history[-1]
    asked: set[str] = set()
    for looked in settled(last.snapshot, last.now, last.limit):
        asked |= set(looked.plan.cancels)
        seen = committed(looked.snapshot, looked.plan)

    again = plan(seen, last.now, last.limit)

    assert again.filling is None or not again.filling.ids
    quiet = replace(again, cancels=(), cancels_because="", revision=looked.plan.revision, filling=None)
    if seen.backfill is not None:
        # Its pace may say another moment to look again: nothing was decided by that.
        quiet = replace(quiet, wake_at=looked.plan.wake_at)
    if again.lifts:
        # What waits on time lets late ones out of their lane again, in which they no longer are: that changes nothing.
        active = (*seen.busy, *seen.waiting)
        assert any(each.late or each.cause is Cause.BACKFILL for each in active)
        quiet = replace(quiet, lifts=looked.plan.lifts)
    if looked.plan.coming == () and again.coming is None:
        # It forgets what an earlier version has written down; the second look has nothing to forget.
        quiet = replace(quiet, coming=())
    nothing = replace(
        looked.plan,
        creations=(),
        releases=(),
        endings=(),
        cancels=(),
        cancels_because="",
        spans=(),
        answers=(),
        used=(),
        filling=None,
        stopped_at=None,
    )
    assert quiet == replace(nothing, rescheduled=False, narrowed=False)
    assert set(again.cancels) <= asked


@settings(max_examples=60)
@given(histories())
def test_equal_snapshots_give_equal_plans(history: History) -> None:
    """Determinism."""
    for looked in history:
        assert plan(copy.deepcopy(looked.snapshot), looked.now, looked.limit) == looked.plan


@settings(max_examples=60)
@given(histories())
def test_a_plan_leaves_its_snapshot_as_it_was(history: History) -> None:
    """Values are not frozen at run time: this law holds `plan` to it, in full and by the plain tick."""
    for looked in history:
        snapshot, before = looked.snapshot, copy.deepcopy(looked.snapshot)
        plan(snapshot, looked.now, looked.limit)
        plan_in_full(snapshot, looked.now, looked.limit)
        assert snapshot == before


@settings(max_examples=400)
@given(st.sampled_from(RULES), policies(), st.integers(0, 40_000), st.integers(0, 4_000), st.booleans())
def test_the_plain_plan_is_what_the_whole_decision_says(
    rule: str, given_policies: dict[str, Any], begun: int, waited: int, ended: bool
) -> None:
    """The shortcut decides nothing of its own."""
    watermark = BEGIN + timedelta(seconds=begun)
    now = watermark + timedelta(seconds=waited)
    end = Ended(watermark, watermark, watermark) if ended else None
    seen = replace(newborn(rule, given_policies), watermark=watermark, last_end=end, last_success=end)

    assert (plain_plan(seen, now) or plan_in_full(seen, now)) == plan_in_full(seen, now)


@settings(max_examples=60)
@given(histories())
def test_the_plain_plan_is_taken_for_nothing_else(history: History) -> None:
    for looked in history:
        assert plan_in_full(looked.snapshot, looked.now, looked.limit) == looked.plan


def test_the_plain_plan_is_taken() -> None:
    seen = newborn("0 * * * *", {})

    assert plain_plan(seen, BEGIN + 60 * MINUTE) == plan(seen, BEGIN + 60 * MINUTE) is not None


def test_the_world_in_these_laws_is_not_empty() -> None:
    """A law over histories in which nothing happens would hold for any code."""
    seen = newborn("0 * * * *", OPEN)

    assert len(_ids(seen, [BEGIN + 90 * MINUTE, BEGIN + 300 * MINUTE], PLAN_LIMIT)) == 5
