"""Retry arithmetic: the waits are those of the formula, capped, and never start at or after the deadline."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from everytick.domain.ids import attempt_id, run_id
from everytick.domain.outcome import Failed, Outcome, TimedOut
from everytick.domain.retry import Retry
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.steps import KEPT_WAIT
from tests.unit.deciding.lives import Life, job

INTERVALS = st.integers(1, 600).map(lambda seconds: timedelta(seconds=seconds))
FACTORS = st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0, 3.0])
JITTERS = st.sampled_from([0.0, 0.1, 0.5, 1.0])
FAILURES: st.SearchStrategy[Outcome] = st.sampled_from([Failed("boom", ("builtins.ValueError",)), TimedOut()])


@st.composite
def policies(draw: st.DrawFn) -> Retry:
    interval = draw(INTERVALS)
    longest = draw(st.none() | INTERVALS.map(lambda more: interval + more))
    return Retry(draw(st.none() | st.integers(0, 6)), interval, draw(FACTORS), longest, draw(JITTERS))


def expected(retry: Retry, k: int, attempt: str) -> timedelta:
    """The wait before retry k, written out as the contract has it."""
    wait = retry.interval.total_seconds() * retry.factor ** (k - 1)
    if retry.max_interval is not None:
        wait = min(wait, retry.max_interval.total_seconds())
    share = int(attempt.removeprefix("attempt_").replace("-", "")[:8], 16) / 2**32
    assert 0 <= share < 1
    return timedelta(seconds=wait * (1 + retry.jitter * share))


@settings(max_examples=150, deadline=None)
@given(policies(), st.none() | st.integers(1, 3600), st.lists(FAILURES, min_size=1, max_size=9))
def test_waits_are_those_of_the_formula_and_end_before_the_deadline(
    retry: Retry, timeout: int | None, failures: list[Outcome]
) -> None:
    """S0-064, S0-067, S0-081…083, C-33."""
    deadline = None if timeout is None else timedelta(seconds=timeout)
    life = Life(job(retry=retry, execution_timeout=deadline))
    task = life.rules.tasks[0]
    life.claim()
    begun = life.now
    for used, failure in enumerate(failures):
        number = life.open["a"]
        assert number == used + 1
        step = life.end("a", failure)
        wait = expected(retry, used + 1, attempt_id(run_id(life.header.id, task.id), number + 1))
        left = retry.max is None or used < retry.max
        in_time = deadline is None or life.now + wait < begun + deadline
        if not left or not in_time:
            assert life.status is OccurrenceStatus.FAILED
            assert (life.state.error == "Execution exceeded timeout") == left
            assert step.starts == ()
            break
        until = life.run("a").resume_at
        assert until is not None
        assert abs(until - life.now - wait) <= timedelta(microseconds=2)
        assert abs(life.run("a").waits[-1] - wait) <= timedelta(microseconds=2)
        assert (step.resume_at == until) == (until - life.now > KEPT_WAIT)
        again = life.claim_again() if step.resume_at is not None else life.wait_over("a")
        assert [start.number for start in again.starts] == [number + 1]
        assert life.now == until
    else:
        assert life.run("a").retries == len(failures)
