"""Where a rollout goes: its bounds, to the occurrence."""

from dataclasses import replace

import pytest

from everytick.deciding.rollout import where_to
from everytick.domain.rollouts import Rollout, RolloutVerdict, TrialCounts, Way
from everytick.domain.snapshots import Edition
from tests.stores.acting import job
from tests.stores.clock import START
from tests.unit.deciding.planning import snapshot_of


def verdict(rollout: Rollout, counts: TrialCounts) -> RolloutVerdict | None:
    """Return where a version on trial goes after these outcomes."""
    first = job()
    trial = Edition(replace(first, version=2), START, rollout=rollout)
    return where_to(replace(snapshot_of(first, START), editions=(Edition(first), trial), trial=counts))


@pytest.mark.parametrize(("created", "way"), [(4, None), (5, Way.ON), (6, Way.ON)])
def test_a_dry_run_lasts_for_as_many_occurrences_as_it_says(created: int, way: Way | None) -> None:
    """B9: the fifth of five ends it, not the fourth and not the sixth."""
    found = verdict(Rollout(0.5, dry_run=5), TrialCounts(0, 0, created))
    assert (None if found is None else found.way) is way


@pytest.mark.parametrize(
    ("well", "failed", "way"),
    [(19, 0, None), (20, 0, Way.ON), (19, 1, Way.ON), (18, 1, None), (0, 1, None), (0, 2, Way.BACK), (30, 2, Way.BACK)],
)
def test_a_stage_goes_on_or_back_by_what_has_ended(well: int, failed: int, way: Way | None) -> None:
    """B9: twenty ends let it go on if at most one of them failed; the second failure rolls it back at once."""
    found = verdict(Rollout(0.5, after=20, max_failures=1), TrialCounts(well, failed, well + failed))
    assert (None if found is None else found.way) is way
