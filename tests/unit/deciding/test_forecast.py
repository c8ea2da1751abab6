"""A forecast says from the usual lengths that a promise will be broken, or may be (beyond.md A18)."""

from datetime import timedelta
from typing import Any

import pytest

from everytick.deciding.forecast import LikelyBreach, Usual, forecasts, usual_length
from everytick.domain.occurrence import Occurrence
from everytick.domain.promise_policies import PromiseKind
from everytick.domain.promises import Breach, PromiseState, promises_of
from everytick.domain.snapshots import Ended
from everytick.domain.statuses import OccurrenceStatus
from tests.unit.deciding.planning import active, at, job, snapshot_of

USUAL = Usual(timedelta(minutes=40), timedelta(minutes=55))


def _ran(minutes: int, begin: str = "01:00") -> Occurrence:
    begun = at(begin)
    status = OccurrenceStatus.COMPLETED
    return Occurrence("occ_1", "job_1", 1, begun, status, started_at=begun, ended_at=begun + timedelta(minutes=minutes))


def _running(id_: str, when: str, begin: str) -> Occurrence:
    return Occurrence(id_, "job_1", 1, at(when), OccurrenceStatus.RUNNING, started_at=at(begin))


def _told(
    now: str, *, started: tuple[Occurrence, ...] = (), usual: Usual | None = USUAL, **known: Any
) -> list[LikelyBreach]:
    policies = known.pop("policies", {"finish_by": "06:00"})
    made = job(known.pop("when", "0 5 * * *"), **policies)
    states = known.pop("states", [PromiseState(kind, at("-1 00:00"), None) for kind in promises_of(made.settings)])
    seen = snapshot_of(made, at(now), **known)
    return list(forecasts(made, seen, states, usual, started, at(now)))


def test_the_usual_length_leaves_the_fastest_and_the_slowest_tenth_out() -> None:
    runs = [_ran(minutes) for minutes in [1, 40, 42, 44, 46, 48, 50, 52, 55, 300]]
    usual = usual_length(runs)
    assert usual is not None
    assert str(usual) == "usually takes 40m to 55m"
    assert usual_length(runs[:2]) is None
    assert str(usual_length([_ran(95)] * 3)) == "usually takes 1h35m"


def test_a_run_that_has_not_started_will_miss_its_time() -> None:
    """A18: "will miss 06:00: usually takes 40 to 55 min, not started yet, 2 before it in the queue"."""
    line = (
        active("occ_1", at("05:00"), "running"),
        active("occ_2", at("05:01"), "queued", "trigger"),
        active("occ_3", at("05:00:30"), "queued"),
    )
    [found] = _told(
        "05:10",
        active=line,
        started=(_running("occ_1", "05:00", "05:09"),),
        policies={"finish_by": "06:00", "overlap": "queue"},
        when="0,30 5 * * *",
    )
    assert (found.instant, found.due_at, found.is_certain) == (at("05:00"), at("06:00"), False)
    waiting = (active("occ_0", at("04:30"), "running", "trigger"), *line[2:])
    [found] = _told("05:10", active=waiting, started=(_running("occ_0", "04:30", "05:09"),))
    assert (found.instant, found.is_certain) == (at("05:00:30"), True)
    assert str(found) == (
        "will miss 2026-11-16T06:00:00+00:00 (finish_by): not started yet, 1 before it in the queue, "
        "it usually takes 40m to 55m"
    )


@pytest.mark.parametrize(
    ("now", "begin", "word"),
    [("05:06", "05:05", None), ("05:15", "05:06", "may"), ("05:30", "05:25", "will"), ("05:59", "05:00", None)],
)
def test_a_run_under_way_is_told_of_once_it_is_too_late_for_it(now: str, begin: str, word: str | None) -> None:
    busy = (active("occ_1", at("05:00")),)
    found = _told(now, active=busy, started=(_running("occ_1", "05:00", begin),))
    assert [str(each).split()[0] for each in found] == ([] if word is None else [word])


def test_the_next_instant_is_told_of_before_it_comes() -> None:
    assert _told("04:00") == []
    [found] = _told("04:00", when="30 5 * * *")
    assert str(found) == (
        "will miss 2026-11-16T06:00:00+00:00 (finish_by): it starts at 2026-11-16T05:30:00+00:00, "
        "it usually takes 40m to 55m"
    )


def test_a_start_is_late_if_those_before_it_take_too_long() -> None:
    policies = {"start_by": "30m", "overlap": "queue"}
    line = (active("occ_1", at("04:50")), active("occ_2", at("05:00"), "queued"))
    [found] = _told("05:01", active=line, started=(_running("occ_1", "04:50", "04:50"),), policies=policies)
    assert (found.kind, found.instant, found.due_at) == (PromiseKind.START_BY, at("05:00"), at("05:30"))
    assert "1 before it in the queue" in found.text


def test_a_success_comes_too_late_if_the_next_run_does() -> None:
    ended = Ended(at("-1 05:50"), at("-1 05:00"), at("-1 05:50"), "occ_1")
    assert _told("01:00", policies={"success_within": "26h"}, last_success=ended) == []
    [found] = _told("01:00", policies={"success_within": "23h45m"}, last_success=ended)
    assert (found.due_at, found.is_certain) == (at("05:35"), True)
    assert found.text == "the next run is at 2026-11-16T05:00:00+00:00, it usually takes 40m to 55m"


def test_nothing_is_said_without_usual_lengths_and_of_what_is_broken_or_stands_still() -> None:
    late: dict[str, Any] = {"when": "30 5 * * *"}
    assert _told("04:00", usual=None, **late) == []
    assert _told("04:00", policies={"finish_by": "06:00", "enabled": False}, **late) == []
    assert _told("04:00", retire_at=at("03:00"), **late) == []
    breach = Breach(PromiseKind.FINISH_BY, at("-1 05:30"), at("-1 06:00"), at("-1 06:01"), at("-1 05:30"))
    broken = PromiseState(PromiseKind.FINISH_BY, at("00:00"), None, breach=breach)
    assert _told("04:00", states=[broken], **late) == []
