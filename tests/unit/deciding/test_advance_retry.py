"""The arithmetic of waits, and which outcomes are retried."""

from datetime import timedelta

import pytest

from everytick.deciding.retry import is_retried, jittered, next_wait, wait_before
from everytick.domain.durations import LONGEST_DURATION
from everytick.domain.ids import attempt_id, run_id
from everytick.domain.outcome import Failed, TimedOut
from everytick.domain.retry import Retry

MINUTE = timedelta(minutes=1)
REFUSED = Failed("no", ("builtins.ConnectionRefusedError", "builtins.ConnectionError", "builtins.OSError"))


def test_the_waits_grow_by_the_factor() -> None:
    """S0-082: 3 / 1m / 2.0 gives 1m, 2m, 4m."""
    retry = Retry(3, "1m", factor=2.0)
    assert [wait_before(retry, k) for k in (1, 2, 3)] == [MINUTE, 2 * MINUTE, 4 * MINUTE]


def test_a_factor_of_one_is_constant_and_a_smaller_one_shrinks() -> None:
    """S0-081."""
    assert [wait_before(Retry(9, "1m"), k) for k in (1, 5, 10**9)] == [MINUTE] * 3
    assert wait_before(Retry(9, "1m", factor=0.5), 3) == timedelta(seconds=15)


def test_the_cap_holds_however_many_retries_there_were() -> None:
    retry = Retry(None, "1m", factor=2.0, max_interval="5m")
    assert [wait_before(retry, k) for k in (1, 2, 3, 4, 10**6)] == [MINUTE, 2 * MINUTE, 4 * MINUTE, *[5 * MINUTE] * 2]


def test_no_wait_is_longer_than_the_calendar() -> None:
    assert wait_before(Retry(None, "1m", factor=2.0), 60) == LONGEST_DURATION
    assert wait_before(Retry(None, "1m", factor=2.0), 10**6) == LONGEST_DURATION
    assert wait_before(Retry(None, "P900000D"), 1) == LONGEST_DURATION
    assert wait_before(Retry(None, "P1D", factor=9.0, max_interval="P900000D"), 99) == LONGEST_DURATION
    assert wait_before(Retry(None, "0s", factor=9.0), 10**6) == timedelta(0)


def test_jitter_is_a_share_taken_from_the_digits_of_the_attempts_id() -> None:
    digits = attempt_id(run_id("occ_1", "task_1"), 2).removeprefix("attempt_")[:8]
    share = int(digits, 16) / 16**8
    assert jittered(MINUTE, 0.5, "occ_1", "task_1", 2) == MINUTE * (1 + 0.5 * share)
    assert jittered(MINUTE, 0, "occ_1", "task_1", 2) == MINUTE


@pytest.mark.parametrize(
    ("on", "outcome", "retried"),
    [
        (("failed", "timeout"), REFUSED, True),
        (("failed", "timeout"), TimedOut(), True),
        ("failed", TimedOut(), False),
        ("timeout", TimedOut(), True),
        ("timeout", REFUSED, False),
        (ConnectionError, REFUSED, True),
        (OSError, REFUSED, True),
        (ConnectionRefusedError, REFUSED, True),
        (ConnectionResetError, REFUSED, False),
        (ValueError, Failed("no"), False),
        (ValueError, Failed("later", try_again_after=MINUTE), True),
        ("failed", Failed("no use", give_up=True), False),
    ],
)
def test_on_names_what_is_retried(on: object, outcome: Failed | TimedOut, retried: bool) -> None:
    """A class stands for its subclasses too; TryAgain is always meant, GiveUp never."""
    assert is_retried(Retry(1, "1s", on=on), 0, outcome) is retried
    assert (next_wait(Retry(1, "1s", on=on), 0, outcome, "occ_1", "task_1", 2) is not None) is retried


@pytest.mark.parametrize(("most", "used", "retried"), [(0, 0, False), (1, 0, True), (1, 1, False), (None, 10**9, True)])
def test_max_does_not_count_the_first_attempt(most: int | None, used: int, retried: bool) -> None:
    """C-33, S2-024."""
    assert is_retried(Retry(most, "1s"), used, REFUSED) is retried


@pytest.mark.parametrize(
    ("asked", "waited"),
    [(MINUTE, MINUTE), (timedelta(0), timedelta(0)), (-MINUTE, timedelta(0)), (timedelta.max, LONGEST_DURATION)],
)
def test_what_try_again_asks_for_is_taken_as_it_is(asked: timedelta, waited: timedelta) -> None:
    """No factor, no cap of the policy, no jitter."""
    retry = Retry(9, "1s", factor=3.0, max_interval="2s", jitter=1.0)
    assert next_wait(retry, 4, Failed("later", try_again_after=asked), "occ_1", "task_1", 6) == waited
