"""Promises that contradict the schedule or another policy are told of, with what to write instead (A18)."""

import re
from typing import Any

import pytest

from everytick.deciding.doubts import promise_doubts
from tests.unit.deciding.planning import at, job


def _told(when: str, **policies: Any) -> list[str]:
    return list(promise_doubts(job(when, **policies), at("00:30")))


@pytest.mark.parametrize(
    ("when", "policies", "said"),
    [
        ("0 * * * *", {"start_by": "30s"}, 'is shorter than grace 1m: .*; grace="30s" makes both say the same'),
        ("0 3 * * 1-5", {"success_within": "26h"}, 'longest gap, 72h .*; write at least success_within="73h"'),
        ("0 3 * * *", {"success_within": "24h"}, "is not longer than the schedule's longest gap, 24h"),
        ("0 * * * *", {"finish_by": "2h"}, "lies beyond the next instant, .*; a length of at most 1h owes one"),
        ("0 1,5 * * *", {"finish_by": "06:00"}, "finish_by 06:00 of .*T01:00:00.* lies beyond the next instant"),
        ("on request", {"start_by": "5m", "finish_by": "1h"}, "start_by and finish_by promise nothing"),
    ],
)
def test_a_promise_that_cannot_hold_is_told_of(when: str, policies: dict[str, Any], said: str) -> None:
    [told] = _told(when, **policies)
    assert re.search(said, told), told


@pytest.mark.parametrize(
    ("when", "policies"),
    [
        ("0 * * * *", {}),
        ("0 * * * *", {"start_by": "1m", "finish_by": "1h", "success_within": "61m"}),
        ("0 3 * * *", {"success_within": "26h", "finish_by": "06:00"}),
        ("on request", {"success_within": "26h"}),
        ("after: 1h", {"success_within": "10m", "start_by": "1m", "finish_by": "9h"}),
        ("once: 2030-01-01T00:00:00Z", {"success_within": "10m", "finish_by": "9h"}),
    ],
)
def test_a_promise_that_can_hold_is_not(when: str, policies: dict[str, Any]) -> None:
    assert _told(when, **policies) == []
