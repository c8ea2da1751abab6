"""The one table of legal moves, pair by pair."""

import pytest

from everytick.domain.statuses import (
    ACTIVE,
    ATTEMPT_ENDED,
    ATTEMPT_MOVES,
    BUSY,
    ENDED,
    FINISHED,
    MOVES,
    RUN_ENDED,
    RUN_MOVES,
    WAITING,
    AttemptStatus,
    OccurrenceStatus,
    RunStatus,
    Status,
    may_move,
    move,
)
from everytick.domain.values import value

O, R, A = OccurrenceStatus, RunStatus, AttemptStatus  # noqa: E741

LEGAL: dict[type[Status], dict[Status, str]] = {
    O: {
        O.QUEUED: "pending canceled superseded skipped",
        O.PENDING: "running queued canceled superseded",
        O.RUNNING: "pending awaiting_retry completed completed_with_errors failed canceled failed_stale",
        O.AWAITING_RETRY: "running superseded completed completed_with_errors failed canceled failed_stale",
    },
    R: {
        R.PENDING: "running failed timeout canceled skipped",
        R.RUNNING: "pending success failed timeout canceled",
        R.SUCCESS: "pending",
        R.FAILED: "pending",
        R.TIMEOUT: "pending",
        R.CANCELED: "pending",
        R.SKIPPED: "pending",
    },
    A: {
        A.PENDING: "running canceled lost",
        A.RUNNING: "success failed timeout canceled lost",
    },
}
EVERY: tuple[Status, ...] = (*O, *R, *A)


@value
class Thing:
    id: str
    status: Status


def test_the_status_names_are_the_contract_s() -> None:
    """S0-021, S0-022, C-26."""
    assert {str(status) for status in O} == {
        *("pending", "queued", "running", "awaiting_retry", "completed", "completed_with_errors", "failed"),
        *("canceled", "failed_stale", "skipped", "missed", "superseded"),
    }
    six = {"pending", "running", "success", "failed", "timeout", "canceled"}
    assert {str(status) for status in R} == six | {"skipped"}
    assert {str(status) for status in A} == six | {"lost"}


@pytest.mark.parametrize("one", EVERY, ids=lambda status: f"{type(status).__name__}-{status}")
def test_a_move_is_legal_exactly_when_the_contract_names_it(one: Status) -> None:
    """S0-014 and the moves of an occurrence, a run and an attempt: all pairs, also across kinds."""
    for to in EVERY:
        expected = type(one) is type(to) and to in LEGAL[type(one)].get(one, "").split()
        assert may_move(one, to) == expected, f"{one!r} to {to!r}"
        if expected:
            assert move(Thing("x", one), to) == Thing("x", to)
        else:
            with pytest.raises(AssertionError, match=f"x: {one} cannot become {to}"):
                move(Thing("x", one), to)


def test_every_occurrence_status_is_busy_waiting_or_ended_and_only_one_of_them() -> None:
    """Words of planning: busy + waiting = active, and everything else is final."""
    assert {O.PENDING, O.RUNNING, O.AWAITING_RETRY} == BUSY
    assert {O.QUEUED} == WAITING
    assert ACTIVE == BUSY | WAITING
    assert not BUSY & WAITING
    assert not ACTIVE & ENDED
    assert set(O) == ACTIVE | ENDED


def test_nothing_leaves_the_end_of_an_occurrence_or_an_attempt() -> None:
    """S0-014: a retry or replay is a new record."""
    assert all(not MOVES[status] for status in ENDED)
    assert all(not ATTEMPT_MOVES[status] for status in ATTEMPT_ENDED)


def test_a_run_leaves_its_end_only_to_start_again() -> None:
    """Restart of an orphan is the one move out of a final run status."""
    assert all(RUN_MOVES[status] == {R.PENDING} for status in RUN_ENDED)


def test_what_never_ran_is_born_so() -> None:
    """S0-021: missed is history, not a place to move to; skipped is one only for what waited for another job."""
    reached = frozenset().union(*MOVES.values())
    assert O.MISSED not in reached
    assert [status for status, to in MOVES.items() if O.SKIPPED in to] == [O.QUEUED]
    assert reached >= FINISHED | {O.SUPERSEDED}


def test_every_active_status_can_still_come_to_an_end() -> None:
    """Nothing can be stuck: from each active status some end is reachable."""
    for status in ACTIVE:
        reached, before = {status}, set[OccurrenceStatus]()
        while reached != before:
            before = set(reached)
            reached |= {to for one in before for to in MOVES[one]}
        assert reached >= FINISHED
