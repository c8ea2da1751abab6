"""Every instant has exactly one decision, whatever happens to its job."""

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings

from everytick.deciding.coverage import CoverageState, coverage_spans
from everytick.domain.ids import occurrence_id
from everytick.domain.occurrence import Cause
from everytick.domain.questions import Covered
from tests.laws.worlds import History, Looked, histories, named, said_by_hand


def _created_in_place(looked: Looked) -> set[object]:
    """The instants that became occurrences where the schedule names them; what was moved bears another's id."""
    return {
        each.scheduled_for
        for each in looked.plan.creations
        if each.cause is Cause.SCHEDULE and each.id == occurrence_id(looked.snapshot.job_id, each.scheduled_for)
    }


@settings(max_examples=120)
@given(histories())
def test_every_instant_up_to_the_new_watermark_has_exactly_one_decision(history: History) -> None:
    """Coverage; C-36, S0-094, F7: an edit decides nothing outside old-before and new-after."""
    for looked in history:
        instants = named(looked.snapshot, looked.snapshot.watermark, looked.plan.watermark)
        created = _created_in_place(looked)
        for at, version in instants:
            spans = [each for each in looked.plan.spans if each.after < at <= each.through and each.version == version]
            assert len(spans) + (at in created) == 1, (at, version, looked)


@settings(max_examples=120)
@given(histories())
def test_a_span_holds_instants_that_were_due_and_counts_them(history: History) -> None:
    """C-36: exact up to 10,000; neighbours that are alike are one span, in order of time."""
    for looked in history:
        spans = looked.plan.spans
        instants = named(looked.snapshot, looked.snapshot.watermark, looked.plan.watermark)
        for span in spans:
            inside = [at for at, version in instants if span.after < at <= span.through and version == span.version]
            assert span.count == len(inside), (span, looked)
            assert inside[-1] == span.through, (span, looked)
        assert list(spans) == sorted(spans, key=lambda each: each.through)
        for one, other in pairwise(spans):
            alike = (one.status, one.why, one.detail, one.version) == (
                other.status, other.why, other.detail, other.version,
            )  # fmt: skip
            between = [at for at, _ in instants if one.through < at <= other.after]
            assert not alike or between, (one, other, looked)


@settings(max_examples=120)
@given(histories())
def test_the_watermark_moves_only_forward_and_never_beyond_now(history: History) -> None:
    """Monotony."""
    for looked in history:
        assert looked.snapshot.watermark <= looked.plan.watermark, looked
        assert looked.plan.watermark <= max(looked.snapshot.watermark, looked.now), looked


@settings(max_examples=120)
@given(histories() | histories(said_by_hand()))
def test_no_instant_is_created_twice_in_a_life(history: History) -> None:
    """S4-021, S0-098, F7: not by a restart, a cut, an edit, a pause or a move."""
    created = Counter(each.id for looked in history for each in looked.plan.creations if each.cause is Cause.SCHEDULE)

    assert [id_ for id_, times in created.items() if times > 1] == []


@settings(max_examples=120)
@given(histories())
def test_the_ledger_of_a_job_gives_the_reason_of_every_instant_that_was_decided(history: History) -> None:
    """B7: each instant once. What was decided has a run or the reason of a span; with its run deleted it is unknown."""
    for looked in history:
        instants = sorted({at for at, _ in named(looked.snapshot, looked.snapshot.watermark, looked.plan.watermark)})
        asked = [(at, None) for at in instants]
        runs = [
            Covered(each.id, each.covers_after, each.covers_through, each.status, each.cause, each.scheduled_for)
            for each in looked.plan.creations
        ]
        ledger = coverage_spans(asked, runs, spans=looked.plan.spans)
        assert sum(span.count for span in ledger) == len(instants), looked
        assert "no occurrence" not in [span.why for span in ledger], looked
        deleted = coverage_spans(asked, [], spans=looked.plan.spans, floor=looked.plan.watermark)
        told = {span.why for span in deleted if span.state is CoverageState.MISSING}
        assert "no occurrence" not in told, looked
        assert sum(span.count for span in deleted) == len(instants), looked
