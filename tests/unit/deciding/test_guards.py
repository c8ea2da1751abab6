"""Guards: who has to agree to an operation, decided from the jobs that it touches and the runs that it creates."""

from datetime import timedelta

import pytest

from everytick.deciding.guards import Consent, Cost, created_at_once, judge, why_not_approved
from everytick.deciding.revise import resumed
from everytick.domain.proposals import Proposal
from everytick.domain.snapshots import Missed, PausedSpan
from tests.unit.deciding.planning import at, job, snapshot_of

PLAIN, CAREFUL, TWO = job(), job(protected=True), job(protected="two_people")


@pytest.mark.parametrize(
    ("jobs", "runs", "consent"),
    [
        ([], 1000, Consent.AUTO),
        ([PLAIN], 1000, Consent.AUTO),
        ([PLAIN], 1001, Consent.CONFIRM),
        ([PLAIN, CAREFUL], 0, Consent.CONFIRM),
        ([CAREFUL, TWO], 0, Consent.TWO_PEOPLE),
        ([TWO], 1001, Consent.TWO_PEOPLE),
    ],
)
def test_protected_jobs_and_many_runs_need_consent(jobs: list[object], runs: int, consent: Consent) -> None:
    assert judge(jobs, Cost(runs), 1000).consent is consent  # type: ignore[arg-type]


def test_the_reasons_are_told_with_the_cost() -> None:
    cost = Cost(1200, timedelta(minutes=90, seconds=20))

    assert judge([TWO], cost, 1000).reasons == (
        "job 'report' is protected by two people",
        "it would create 1,200 runs, about 1h30m one after another: more than 1,000",
    )
    assert (str(Cost()), str(Cost(1, None)), str(Cost(2, timedelta(seconds=3.2), more=True))) == (
        "0 runs",
        "1 run, of unknown length",
        "2 or more runs, about 3s one after another",
    )


def test_what_a_resumption_catches_up_is_counted_by_recovery() -> None:
    """By the same function that decides which late instants run."""
    pause = PausedSpan(at("00:00"), None, Missed.CATCH_UP)
    now = at("10:30")
    for policies, count in (
        ({"recovery": "execute_all"}, 10),
        ({"recovery": "execute_all", "late_cap": 4}, 4),
        ({"recovery": "execute_last"}, 1),
        ({"recovery": "mark_as_missed"}, 0),
    ):
        held = snapshot_of(job(**policies), at("00:00"), pauses=(pause,))
        assert created_at_once(held, resumed(held, now), now) == count
        assert created_at_once(held, resumed(held, now, Missed.SKIP), now) == 0
    assert created_at_once(None, None, now) == 0


def test_a_proposal_is_approved_by_somebody_else_in_time() -> None:
    proposal = Proposal("1", "x", (), "alice", at("09:00"), at("1 09:00"))

    assert why_not_approved(proposal, "bob", at("10:00")) is None
    assert why_not_approved(proposal, "alice", at("10:00")) == ("alice has proposed it: another person must approve it")
    assert why_not_approved(proposal, "alice/deploy", at("10:00")) is not None, "a token of hers is no other person"
    assert "it has expired" in (why_not_approved(proposal, "bob", at("1 09:00")) or "")


def test_what_a_token_proposed_is_not_approved_by_its_owner() -> None:
    proposal = Proposal("1", "x", (), "alice/deploy", at("09:00"), at("1 09:00"))

    for by in ("alice", "alice/deploy", "alice/other"):
        assert why_not_approved(proposal, by, at("10:00")) is not None
    assert why_not_approved(proposal, "bob/deploy", at("10:00")) is None
