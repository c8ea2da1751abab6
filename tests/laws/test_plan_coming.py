"""The runs to come that a plan writes down are those that a question after its commit finds."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from everytick.deciding.plan import plan
from everytick.domain.policies import MOST_COMING
from everytick.domain.snapshots import Missed, PausedSpan
from everytick.domain.upcoming import coming, coming_runs, in_force, upcoming
from tests.laws.worlds import BEGIN, MINUTE, History, committed, histories, newborn


@settings(max_examples=150)
@given(histories())
def test_what_is_written_down_is_what_upcoming_says_after_the_commit(history: History) -> None:
    """B20: whatever people said, and however often the job was edited; a job without a horizon writes nothing.

    One whose horizon was taken away by a version that has come into force forgets what was written.
    """
    for looked in history:
        editions = looked.snapshot.editions
        horizon = in_force(editions, looked.now).settings.horizon
        if horizon is None:
            had_one = any(each.job.settings.horizon is not None for each in editions)
            assert looked.plan.coming == (() if had_one else None), looked
            continue
        assert looked.plan.coming is not None, looked
        after = committed(looked.snapshot, looked.plan)
        assert looked.plan.coming == coming(after, looked.now, horizon), looked
        most = horizon if isinstance(horizon, int) else MOST_COMING
        times = upcoming(after, looked.now, most)
        within = len(times) if isinstance(horizon, int) else sum(at - times[0] <= horizon for at in times)
        assert [run.at for run in looked.plan.coming] == times[:within], looked


@settings(max_examples=60)
@given(histories())
def test_a_horizon_decides_nothing(history: History) -> None:
    """`plan` neither counts nor releases what is written down: but for that, the plan is the same without it."""
    for looked in history:
        editions = tuple(
            replace(each, job=replace(each.job, settings=replace(each.job.settings, horizon=None)))
            for each in looked.snapshot.editions
        )
        without = plan(replace(looked.snapshot, editions=editions), looked.now, looked.limit)
        assert without == replace(looked.plan, coming=None), looked


@settings(max_examples=60)
@given(st.sampled_from(["0 * * * *", "*/7 * * * *", "every: 13m"]), st.integers(0, 300), st.integers(1, 600))
def test_of_a_pause_that_leaves_the_last_the_newest_instant_runs_alone(rule: str, begin: int, length: int) -> None:
    """A11: the others that it held are skipped, and those before and after it run."""
    seen = newborn(rule, {"recovery": "execute_all", "overlap": "allow"})
    since = BEGIN + begin * MINUTE
    until = since + length * MINUTE
    decided = plan(replace(seen, pauses=(PausedSpan(since, until, Missed.LAST),)), until + MINUTE, 10_000)
    instants = seen.editions[-1].job.bound(None).instants(BEGIN, until + MINUTE)
    held = [at for at in instants if since < at <= until]
    assert [each.scheduled_for for each in decided.creations] == [at for at in instants if at not in held[:-1]]
    assert sum(span.count or 0 for span in decided.spans) == len(held[:-1])


@settings(max_examples=60)
@given(histories())
def test_the_runs_to_come_are_marked_with_what_was_said_of_them(history: History) -> None:
    """B20: exactly those of which a person has spoken, and a skipped instant is not among them."""
    for looked in history:
        seen = looked.snapshot
        told = {each.at for each in seen.adjustments if not each.is_undone}
        told |= set() if seen.reschedule is None else {seen.reschedule.to}
        for run in coming_runs(seen, looked.now, 20):
            assert (run.mark is not None) == (run.instant in told), looked
            assert run.at > looked.now - timedelta(0), looked
