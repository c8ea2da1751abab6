"""explain on hand-made evidence: what the tests through the application do not reach."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from everytick.deciding.explain import explain
from everytick.deciding.explanation import Evidence, Explanation, Verdict
from everytick.domain import ids
from everytick.domain.decisions import Span, Why
from everytick.domain.occurrence import Cause, Occurrence
from everytick.domain.snapshots import Adjustment, AdjustmentKind, Edition, JobSnapshot, PausedSpan, Rescheduled
from everytick.domain.statuses import OccurrenceStatus
from tests.unit.deciding.planning import active, at, job, snapshot_of

NOW = at("12:30")
HOURLY = job()


def told(when: str, snapshot: JobSnapshot | None = None, **known: Any) -> Explanation:
    definition = known.pop("job", HOURLY)
    evidence = Evidence(at(when), NOW, snapshot or snapshot_of(definition, NOW), (definition,), **known)
    return explain(evidence)


def occurrence(when: str, status: str, **more: Any) -> Occurrence:
    id_ = more.pop("id", ids.occurrence_id(HOURLY.id, at(when)))
    return Occurrence(id_, HOURLY.id, 1, at(when), OccurrenceStatus(status), **more)


def span(why: Why, detail: str = "", version: int = 1) -> Span:
    return Span(OccurrenceStatus.SKIPPED, why, detail, at("09:00"), at("12:00"), version, 3)


def test_a_span_holds_only_what_its_schedule_names() -> None:
    """The schedule of its version, where that is at hand."""
    assert told("10:00", spans=(span(Why.NOT_LAST),)).verdict is Verdict.MISSED
    assert told("10:17", spans=(span(Why.NOT_LAST),)).verdict is Verdict.NOT_NAMED
    unknown = told("10:17", spans=(span(Why.NOT_LAST, version=7),))
    assert unknown.verdict is Verdict.MISSED
    assert unknown.text.endswith("(by version 7 of its definition)")
    elsewhere = replace(span(Why.NOT_LAST), after=at("11:30"))
    assert told("11:00", spans=(elsewhere,)).verdict is not Verdict.MISSED


def test_what_was_missed_before_a_first_run_is_told_apart_from_what_a_strategy_missed() -> None:
    """S2-019: its strategy may be any."""
    before = told("10:00", spans=(span(Why.MISSED, "before its first run"),)).text
    assert before.endswith(
        "it was missed before its first run: on_create if_matching_now makes up for nothing that came before"
    )
    assert "mark_as_missed" in told("10:00", spans=(span(Why.MISSED),)).text


OF_OCCURRENCES = (Why.ON_TIME, Why.LATE, Why.ASKED, Why.UNVERIFIED, Why.RECOVERY)
"""Reasons of what runs; all others tell why something does not."""


@pytest.mark.parametrize("why", [each for each in Why if each not in OF_OCCURRENCES])
def test_every_reason_of_a_span_has_a_verdict_and_words(why: Why) -> None:
    detail = {Why.MOVED: "to 2026-11-16T13:00:00+00:00", Why.OVERLAP: "behind occ_1 and others"}.get(why, "by ada")
    found = told("10:00", spans=(span(why, detail),))
    assert found.text.startswith("report at 2026-11-16T10:00:00+00:00: it ")
    assert found.span is not None
    assert found.moved_to == (at("13:00") if why is Why.MOVED else None)
    assert found.behind == ("occ_1" if why is Why.OVERLAP else None)


@pytest.mark.parametrize(
    ("status", "more", "verdict", "words"),
    [
        ("pending", {"ready_at": at("12:45")}, Verdict.WAITING_FOR_A_SLOT, "may start at 2026-11-16T12:45"),
        ("queued", {"reason": "late, kept by recovery"}, Verdict.WAITING_IN_LINE, "it waits in line"),
        ("awaiting_retry", {"ready_at": at("12:40")}, Verdict.RUNNING, "it waits for a retry at 2026-11-16T12:40"),
        ("running", {"owner": "n", "started_at": at("12:00")}, Verdict.RUNNING, "it has been running since"),
        ("superseded", {"error": "superseded by x"}, Verdict.SUPERSEDED, "it gave way before it ran: superseded by x"),
        ("skipped", {"reason": "overlap, behind occ_9"}, Verdict.OVERLAP, "it was skipped: overlap, behind occ_9"),
        ("missed", {"reason": "missed"}, Verdict.MISSED, "it was missed: missed"),
        ("skipped", {"reason": "nobody knows"}, Verdict.MISSED, "nobody knows"),
        ("canceled", {}, Verdict.CANCELED, "it was canceled before it started"),
        ("completed", {"started_at": at("12:00"), "late": True}, Verdict.RAN, "to some time, late: completed"),
    ],
)
def test_an_occurrence_tells_its_story(status: str, more: dict[str, Any], verdict: Verdict, words: str) -> None:
    found = told("12:00", occurrences=(occurrence("12:00", status, **more),))
    assert found.verdict is verdict
    assert words in found.text


def test_of_several_occurrences_the_schedule_s_own_speaks() -> None:
    """And a request of the same moment does not hide that the instant itself was skipped."""
    asked = occurrence("12:00", "completed", id="occ_0", cause=Cause.TRIGGER, started_at=at("12:00"))
    own = occurrence("12:00", "failed", started_at=at("12:00"))
    assert told("12:00", occurrences=(asked, own)).occurrence == own
    assert told("12:00", occurrences=(asked,), spans=(span(Why.NOT_LAST),)).verdict is Verdict.MISSED
    alone = told("12:00", occurrences=(asked,))
    assert alone.verdict is Verdict.RAN
    assert alone.text.endswith("completed; it was triggered")


def test_a_queued_occurrence_names_the_busy_one_before_it() -> None:
    """Where its own reason does not say it."""
    snapshot = snapshot_of(HOURLY, NOW, active=(active("occ_1", at("11:00")),))
    found = told("12:00", snapshot, occurrences=(occurrence("12:00", "queued", reason="on time"),))
    assert found.behind == "occ_1"


def test_what_was_skipped_by_hand_inside_a_pause_is_told_by_the_hand() -> None:
    """The filters of a plan come in that order."""
    pause = PausedSpan(NOW, None)
    said = (
        Adjustment(at("13:00"), AdjustmentKind.SKIP, reason="release", by="ada"),
        Adjustment(at("14:00"), AdjustmentKind.MOVE, at("14:20")),
    )
    snapshot = snapshot_of(HOURLY, NOW, pauses=(pause,), adjustments=said)
    skipped, moved = told("13:00", snapshot), told("14:00", snapshot)
    assert (skipped.verdict, moved.verdict) == (Verdict.SKIPPED_BY_HAND, Verdict.MOVED_BY_HAND)
    assert skipped.text.endswith("it is skipped by ada (release)")
    assert (moved.moved_to, moved.text[-40:]) == (at("14:20"), "it is moved to 2026-11-16T14:20:00+00:00")
    assert told("14:20", snapshot).verdict is Verdict.PAUSED
    assert told("15:00", snapshot).verdict is Verdict.PAUSED


def test_a_future_instant_with_jitter_says_when_it_may_start() -> None:
    definition = job(jitter="10m")
    found = told("14:00", snapshot_of(definition, NOW), job=definition)
    assert found.verdict is Verdict.WILL_RUN
    assert "later (jitter)" in found.text


def test_a_future_instant_of_a_job_with_overlap_allow_waits_for_no_end() -> None:
    definition = job(overlap="allow")
    busy = snapshot_of(definition, NOW, active=(active("occ_1", at("11:00")),))
    found = told("14:00", busy, job=definition)
    assert (found.verdict, found.behind) == (Verdict.WILL_RUN, None)
    queue = job(overlap="queue")
    waiting = told("14:00", snapshot_of(queue, NOW, active=(active("occ_1", at("11:00")),)), job=queue)
    assert waiting.text.endswith("unless occ_1 is still not over then: waiting in line under overlap queue")


def test_a_reschedule_that_is_over_by_then_holds_nothing_back() -> None:
    snapshot = snapshot_of(HOURLY, NOW, reschedule=Rescheduled(NOW, at("14:30")))
    assert [told(when, snapshot).verdict for when in ("14:00", "14:30", "15:00")] == [
        Verdict.RESCHEDULED,
        Verdict.WILL_RUN,
        Verdict.WILL_RUN,
    ]


def test_an_instant_that_is_due_and_not_reached_by_the_next_plan_is_undecided() -> None:
    """A plan is bounded: what it does not speak of comes with a later one."""
    every_second = job("every 1s", recovery="execute_all", late_cap=100_000)
    snapshot = snapshot_of(every_second, NOW - timedelta(hours=1))
    found = told("12:29", snapshot, job=every_second)
    assert found.verdict is Verdict.NOT_DECIDED_YET
    assert found.text.endswith("no node has decided about it yet")


def test_a_definition_of_today_says_that_it_is_of_today() -> None:
    """The older ones are not at hand."""
    edited = replace(HOURLY, version=3, updated_at=at("11:00"), created_at=at("08:00"))
    snapshot = snapshot_of(edited, NOW, editions=(Edition(edited, at("11:00")),))
    assert "by version 3 of its definition, the oldest at hand" in told("10:17", snapshot, job=edited).text


def test_an_explanation_prints_its_sentence() -> None:
    assert str(told("12:17")) == told("12:17").text


def test_an_unnamed_instant_is_not_paused_either() -> None:
    snapshot = snapshot_of(HOURLY, NOW, pauses=(PausedSpan(NOW, None),))
    assert told("14:17", snapshot).verdict is Verdict.NOT_NAMED


def test_a_moved_one_that_would_be_turned_away_is_told_before_it_is_decided() -> None:
    """It is due, an occurrence is busy, and no node has planned yet."""
    moved = Adjustment(at("11:00"), AdjustmentKind.MOVE, at("12:30"))
    snapshot = snapshot_of(HOURLY, at("12:00"), adjustments=(moved,), active=(active("occ_1", at("11:00")),))
    found = told("12:30", snapshot)
    assert found.verdict is Verdict.NOT_DECIDED_YET
    assert found.text.endswith("since the job was still busy: it came behind occ_1")


def test_a_job_that_is_being_retired_plans_nothing() -> None:
    """Seen between the two facts of a removal."""
    snapshot = snapshot_of(HOURLY, NOW, retire_at=at("13:00"))
    assert told("14:00", snapshot).text.endswith("nothing would be planned at this time")
