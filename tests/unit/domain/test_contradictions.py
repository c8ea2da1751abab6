"""Policies that cannot hold together."""

from typing import Any

import pytest

from everytick.domain.config import Level, Settings, overrides
from everytick.domain.contradictions import refuse_contradictions, surprises
from everytick.domain.policies import LateOverlap, Overlap, Strategy
from everytick.domain.retry import Retry
from everytick.errors import InvalidPolicies

GIVES_WAY = Retry(None, "1m", superseded_by_next=True)


def settings(**said: Any) -> Settings:
    return Settings().overridden_by(overrides(Level.JOB, said))


@pytest.mark.parametrize("overlap", [overlap for overlap in Overlap if overlap is not Overlap.ALLOW])
def test_a_retry_may_give_way_to_the_next_instant_where_only_one_runs(overlap: Overlap) -> None:
    """C-13: S2's retry, under every overlap but allow."""
    refuse_contradictions("x", settings(retry=GIVES_WAY, overlap=overlap))
    refuse_contradictions("x", settings(retry=Retry(3, "1m"), overlap="allow"))


def test_a_retry_that_gives_way_cannot_run_beside_the_next_instant() -> None:
    """Refused pair: `superseded_by_next` with overlap allow, for a job and for one of its tasks."""
    both = settings(retry=GIVES_WAY, overlap="allow")
    with pytest.raises(InvalidPolicies, match="job 'x': superseded_by_next gives way to the next instant") as refusal:
        refuse_contradictions("x", both)
    assert refusal.value.alternatives == (
        'overlap="queue_latest", to run one at a time',
        "superseded_by_next=False, to go on retrying",
    )
    with pytest.raises(InvalidPolicies, match="job 'x': task 'load': superseded_by_next"):
        refuse_contradictions("x", both, "load")


@pytest.mark.parametrize("overlap", [overlap for overlap in Overlap if overlap is not Overlap.ALLOW])
def test_firing_from_memory_keeps_no_overlap_but_allow(overlap: Overlap) -> None:
    """C-28, refused pair: `fire_local` with an overlap other than allow."""
    with pytest.raises(InvalidPolicies, match=f'cannot keep overlap {overlap}; instead: overlap="allow"'):
        refuse_contradictions("x", settings(on_store_outage="fire_local", overlap=overlap))
    refuse_contradictions("x", settings(on_store_outage="fire_local", overlap="allow"))
    refuse_contradictions("x", settings(on_store_outage="wait", overlap=overlap))


def test_a_window_ends_after_it_starts() -> None:
    """S0-049: both ends belong to the window, so it may be one instant long."""
    refuse_contradictions("x", settings(start="2024-01-01T00:00:00Z", end="2024-01-01T00:00:00Z"))
    refuse_contradictions("x", settings(start="2024-01-01T00:00:00Z"))
    refuse_contradictions("x", settings(end="2024-01-01T00:00:00Z"))
    with pytest.raises(InvalidPolicies, match=r"end 2023-.* comes before start 2024-"):
        refuse_contradictions("x", settings(start="2024-01-01T00:00:00Z", end="2023-12-31T23:59:59Z"))


@pytest.mark.parametrize("strategy", list(Strategy))
@pytest.mark.parametrize("late", list(LateOverlap))
def test_running_all_late_instants_while_skipping_them_is_a_surprise(strategy: Strategy, late: LateOverlap) -> None:
    """A warning at definition, not a refusal: only the oldest would run."""
    both = settings(recovery=strategy, late_overlap=late)
    refuse_contradictions("x", both)
    expected = 1 if (strategy, late) == (Strategy.EXECUTE_ALL, LateOverlap.SKIP) else 0
    assert len(list(surprises(both))) == expected


@pytest.mark.parametrize(
    ("policies", "why"),
    [
        ({"start_by": "1m", "jitter": "1m"}, "start_by 1m cannot be kept: jitter delays a start by up to 1m"),
        ({"start_by": "10m", "finish_by": "10m"}, "finish_by 10m leaves no time after start_by 10m"),
    ],
)
def test_promises_that_cannot_be_kept_are_refused(policies: dict[str, Any], why: str) -> None:
    """A18: with what to write instead."""
    settings = Settings().overridden_by(overrides(Level.JOB, policies))
    with pytest.raises(InvalidPolicies, match=why) as refusal:
        refuse_contradictions("etl", settings)
    assert len(refusal.value.alternatives) == 2
    refuse_contradictions("etl", Settings().overridden_by(overrides(Level.JOB, policies | {"start_by": None})))
