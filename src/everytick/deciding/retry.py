"""Whether a failed attempt is tried again, and after which wait: arithmetic on a Retry and nothing else."""

from datetime import timedelta

from everytick.domain.durations import LONGEST_DURATION
from everytick.domain.ids import attempt_id, run_id
from everytick.domain.outcome import Failed, TimedOut
from everytick.domain.retry import Retry

_AT_ONCE = timedelta(0)
_TIMED_OUT = "timeout"
_RAISED = "failed"
# The digits of an attempt's id that make its share of the jitter; they are all of the hash.
_DIGITS = slice(len("attempt_"), len("attempt_") + 8)
_SHARES = 16**8


def is_retried(retry: Retry, used: int, outcome: Failed | TimedOut) -> bool:
    """Tell whether a run that has used so many retries gets another one after this outcome.

    `GiveUp` never does. `TryAgain` does whatever `on` says, as long as `max` allows one more.
    """
    if retry.max is not None and used >= retry.max:
        return False
    if isinstance(outcome, TimedOut):
        return _TIMED_OUT in retry.on
    if outcome.give_up:
        return False
    if outcome.try_again_after is not None or _RAISED in retry.on:
        return True
    return any(name in retry.on for name in outcome.error_types)


def wait_before(retry: Retry, k: int) -> timedelta:
    """Return the wait before the k-th retry, counted from 1, without jitter: interval × factor^(k−1), capped."""
    if retry.factor == 1.0 or not retry.interval:
        return min(retry.interval, LONGEST_DURATION)
    longest = LONGEST_DURATION if retry.max_interval is None else min(retry.max_interval, LONGEST_DURATION)
    try:
        return min(retry.interval * retry.factor ** (k - 1), longest)
    except OverflowError:
        return longest


def jittered(wait: timedelta, jitter: float, occurrence: str, task: str, number: int) -> timedelta:
    """Return the wait stretched by up to `jitter` of itself: the share is fixed by the id of the attempt to come.

    So every node and every repetition comes to the same moment, and occurrences that
    failed together do not come back together.
    """
    if not jitter:
        return wait
    digits = attempt_id(run_id(occurrence, task), number)[_DIGITS]
    return wait * (1 + jitter * (int(digits, 16) / _SHARES))


def next_wait(
    retry: Retry, used: int, outcome: Failed | TimedOut, occurrence: str, task: str, number: int
) -> timedelta | None:
    """Return how long to wait before attempt `number`, the next one; None where there is none.

    What `TryAgain` asked for is taken as it is: no factor, no cap, no jitter.
    """
    if not is_retried(retry, used, outcome):
        return None
    if isinstance(outcome, Failed) and outcome.try_again_after is not None:
        return min(max(outcome.try_again_after, _AT_ONCE), LONGEST_DURATION)
    return jittered(wait_before(retry, used + 1), retry.jitter, occurrence, task, number)
