"""Promises by what is stored: whenever nodes look, and however often, they find the same breaches."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from everytick.deciding.promises import SETTLE, judge
from everytick.domain.promise_policies import PromiseKind
from everytick.domain.promises import Breach, PromisedRun, PromiseSnapshot, PromiseState
from everytick.domain.snapshots import Ended
from everytick.domain.statuses import OccurrenceStatus
from tests.unit.deciding.planning import DAY, job, snapshot_of

MINUTE, TICK = timedelta(minutes=1), timedelta(microseconds=1)
GAP, INSTANTS = 60, 8
END = DAY + timedelta(minutes=GAP * (INSTANTS + 12))

Known = list[tuple[datetime, int, datetime | None]]


def _minute(minutes: float) -> datetime:
    return DAY + timedelta(minutes=minutes)


@st.composite
def histories(draw: st.DrawFn) -> list[int | None]:
    """Draw how many minutes after each hourly instant it started; None if it never did."""
    return draw(st.lists(st.one_of(st.none(), st.integers(0, 150)), min_size=INSTANTS, max_size=INSTANTS))


@st.composite
def looks(draw: st.DrawFn) -> list[datetime]:
    """Draw when nodes look; the last look is at the end."""
    moments = draw(st.lists(st.integers(0, GAP * (INSTANTS + 10)), max_size=8))
    return [*(_minute(each) + SETTLE + timedelta(seconds=1) for each in sorted(moments)), END]


def _expected(starts: list[int | None], within: int) -> Known:
    """Walk through the instants once."""
    found: list[Breach] = []
    breach: Breach | None = None
    for nth in range(1, 1000):
        instant = _minute(GAP * nth)
        due_at = instant + within * MINUTE
        if due_at >= END - SETTLE:
            break
        started = starts[nth - 1] if nth <= len(starts) else None
        if started is not None and started <= within:
            if breach is not None:
                found.append(replace(breach, ended_at=max(instant + started * MINUTE, breach.due_at)))
                breach = None
        elif breach is None:
            breach = Breach(PromiseKind.START_BY, instant, due_at, END, instant)
        else:
            breach = replace(breach, last_for=instant, count=breach.count + 1)
    return _known([*found, *([] if breach is None else [breach])])


def _known(found: list[Breach]) -> Known:
    return [(each.broken_for, each.count, each.ended_at) for each in found]


def _seen_at(now: datetime, starts: list[int | None], lag: int, state: PromiseState, within: int) -> PromiseSnapshot:
    """Return what the store holds at a moment: the first instants are planned, up to `lag` minutes before it."""
    made = job(start_by=timedelta(minutes=within))
    watermark = min(max(DAY, now - lag * MINUTE), _minute(GAP * INSTANTS))
    runs = []
    for nth, after in enumerate(starts, 1):
        instant = _minute(GAP * nth)
        begin = None if after is None else instant + after * MINUTE
        has_begun = begin is not None and begin <= now
        if state.judged_through < instant <= now and (instant <= watermark or has_begun):
            status = OccurrenceStatus.RUNNING if has_begun else OccurrenceStatus.PENDING
            runs.append(PromisedRun(f"occ_{nth}", instant, status, started_at=begin if has_begun else None))
    begun = [run.scheduled_for for run in runs if run.started_at is not None]
    return PromiseSnapshot(made.id, state, snapshot_of(made, max([watermark, *begun])), tuple(runs))


@settings(max_examples=60)
@given(histories(), looks(), st.integers(1, 150), st.sampled_from([0, 30, 100_000]))
def test_the_breaches_are_the_same_whenever_nodes_look(
    starts: list[int | None], moments: list[datetime], within: int, lag: int
) -> None:
    """A18: often, seldom, or once after all is over; whether a node planned the job or none did."""
    state, written = PromiseState(PromiseKind.START_BY, DAY, DAY), dict[datetime, Breach]()
    # What no plan has decided counts as not begun, so a job that never is planned has no starts.
    real: list[int | None] = [None] * INSTANTS if lag == 100_000 else starts
    for now in moments:
        judged = judge(_seen_at(now, real, lag, state, within), now)
        written |= {each.broken_for: each for each in judged.breaches}
        state = replace(judged.state, revision=state.revision + 1)
    assert _known(list(written.values())) == _expected(real, within)
    assert state.breach == next((each for each in written.values() if each.ended_at is None), None)


@settings(max_examples=15)
@given(histories(), st.integers(1, 150))
def test_a_node_that_looks_when_it_was_told_to_finds_each_breach_at_its_moment(
    starts: list[int | None], within: int
) -> None:
    """A18: `check_at` may be too early and is never too late."""
    state, now, found = PromiseState(PromiseKind.START_BY, DAY, DAY), DAY, list[Breach]()
    while state.check_at is not None and state.check_at < END:
        now = max(now, state.check_at)
        judged = judge(_seen_at(now, starts, 0, state, within), now)
        found += [each for each in judged.breaches if each.found_at == now]
        assert judged.state.check_at is None or judged.state.check_at > now
        state = judged.state
    begun = {each.broken_for: each for each in reversed(found)}
    assert sorted(begun) == [instant for instant, *_ in _expected(starts, within)]
    assert all(each.found_at - each.due_at <= SETTLE + 2 * TICK for each in begun.values())


@st.composite
def successes(draw: st.DrawFn) -> list[datetime]:
    return [_minute(each) for each in sorted(draw(st.sets(st.integers(1, 600), max_size=12)))]


def _after(moment: datetime, known: list[datetime]) -> datetime | None:
    return next((each for each in known if each > moment), None)


def _job_at(now: datetime, ends: list[datetime], within: int, state: PromiseState) -> PromiseSnapshot:
    known = [Ended(each, each, each, f"occ_{each}") for each in ends if each <= now][-2:]
    shown: dict[str, Any] = {"last_success": known[-1] if known else None}
    shown["other_success"] = known[0] if len(known) == 2 else None
    made = job(success_within=timedelta(minutes=within))
    return PromiseSnapshot(made.id, state, snapshot_of(made, DAY, **shown))


@given(successes(), looks(), st.integers(5, 200))
def test_no_stretch_with_a_success_in_it_is_ever_called_a_breach(
    ends: list[datetime], moments: list[datetime], within: int
) -> None:
    """A19: however seldom nodes look, and though a job remembers two successes only."""
    state = PromiseState(PromiseKind.SUCCESS_WITHIN, DAY, DAY)
    for now in moments:
        judged = judge(_job_at(now, ends, within, state), now)
        for each in judged.breaches:
            assert each.due_at == each.broken_for + timedelta(minutes=within)
            following = _after(each.broken_for, ends)
            assert following is None or following > each.due_at or each.ended_at is None
            if each.ended_at is not None:
                assert each.ended_at in ends
                assert each.ended_at >= each.due_at
        state = judged.state


@settings(max_examples=20)
@given(successes(), st.integers(5, 200))
def test_every_stretch_without_a_success_is_found_by_nodes_that_look_when_they_were_told_to(
    ends: list[datetime], within: int
) -> None:
    """A18: each once, with its beginning and its end.

    A job remembers two successes. Where more came between two looks, the end that is told is one of them.
    """
    state, now, written = PromiseState(PromiseKind.SUCCESS_WITHIN, DAY, DAY), DAY, dict[datetime, Breach]()
    uncertain = set[datetime]()
    while state.check_at is not None and state.check_at < END:
        before, now = now, max(now, state.check_at)
        judged = judge(_job_at(now, ends, within, state), now)
        written |= {breach.broken_for: breach for breach in judged.breaches}
        if sum(before < end <= now for end in ends) > 2:
            uncertain |= {breach.broken_for for breach in judged.breaches}
        state = judged.state
    anchors = [DAY, *ends]
    gaps = [(anchor, _after(anchor, ends)) for anchor in anchors]
    limit = timedelta(minutes=within)
    broken = [(begin, end) for begin, end in gaps if (end or END) > begin + limit + SETTLE]
    assert [breach.broken_for for breach in written.values()] == [begin for begin, _ in broken]
    for breach, (begin, end) in zip(written.values(), broken, strict=True):
        if begin in uncertain and breach.ended_at is not None:
            assert end is not None
            assert end <= breach.ended_at
            assert breach.ended_at in ends
        else:
            assert breach.ended_at == end
