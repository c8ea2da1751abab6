"""The instants of the past, each by the definition of its time."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from everytick.deciding.past import past_instants, past_instants_back
from everytick.domain.rollouts import NEVER, Rollout
from everytick.domain.snapshots import Edition
from everytick.schedules.codec import schedule
from tests.unit.deciding.planning import job

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def edition(when: str, since: datetime | None) -> Edition:
    return Edition(replace(job(), schedule=schedule(when)), since)


def named(editions: list[Edition], after: datetime, through: datetime) -> list[str]:
    return [f"{instant:%H:%M}" for instant, _ in past_instants(editions, after, through)]


def test_an_instant_at_the_moment_of_an_edit_is_the_old_ones() -> None:
    """Planning.md, Ids; before the first version the first names them."""
    editions = [edition("0 * * * *", NOON - HOUR), edition("*/30 * * * *", NOON), edition("15 * * * *", NOON + HOUR)]
    assert named(editions, NOON - 3 * HOUR, NOON + 2 * HOUR) == [
        *("10:00", "11:00", "12:00", "12:30", "13:00", "13:15"),
    ]


def test_the_instant_before_is_named_by_the_same_definition() -> None:
    editions = [edition("0 * * * *", None), edition("30 * * * *", NOON)]
    found = dict(past_instants(editions, NOON - HOUR, NOON + HOUR))
    assert found == {NOON: NOON - HOUR, NOON + HOUR / 2: NOON - HOUR / 2}


def test_very_many_instants_come_one_after_the_other() -> None:
    found = list(past_instants([edition("every 1s", None)], NOON, NOON + HOUR))
    assert len(found) == 3600
    assert all(instant - before == timedelta(seconds=1) for instant, before in found if before is not None)


@pytest.mark.parametrize(
    "waited",
    [
        pytest.param(edition("30 * * * *", NOON + 2 * HOUR), id="replaced before its moment"),
        pytest.param(replace(edition("30 * * * *", NEVER), rollout=Rollout(share=0.1)), id="on trial"),
    ],
)
def test_backwards_too_only_versions_that_were_in_force_name_instants(waited: Edition) -> None:
    """Before a version that never was, the first one named its own instants again, beside those of the last."""
    editions = [edition("0 * * * *", None), waited, edition("15 * * * *", NOON)]
    forth = list(past_instants(editions, NOON - 2 * HOUR, NOON + 3 * HOUR))
    assert [f"{instant:%H:%M}" for instant, _ in forth] == ["11:00", "12:00", "12:15", "13:15", "14:15"]
    assert list(past_instants_back(editions, NOON - 2 * HOUR, NOON + 3 * HOUR)) == forth[::-1]
