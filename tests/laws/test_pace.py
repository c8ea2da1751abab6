"""The pace of a backfill, whenever its occurrences begin and however they end."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import example, given, settings
from hypothesis import strategies as st

from everytick.deciding.pace import allowance, paced
from everytick.domain.backfills import WINDOW, BackfillOrder, OpenBackfill, Recent

BEGIN = datetime(2026, 11, 16, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LOOKS = st.lists(
    # How much later the next look is, how many of those that wait begin before it, and whether what ends has failed.
    st.tuples(
        st.sampled_from([0, 1, 10, 60, 90]),
        st.sampled_from([0, 0, 0, 1, 500]),
        st.booleans(),
        st.sampled_from([None, SECOND]),
    ),
    min_size=8,
    max_size=60,
)


def going(rate: int) -> OpenBackfill:
    order = BackfillOrder("b", BEGIN - timedelta(days=1), BEGIN, rate=rate)
    return OpenBackfill("backfill_x", order, order.after, order.through, 0, rate, BEGIN)


@settings(max_examples=120)
@example(1, [(60, 0, False, None), (60, 0, False, None), (0, 500, False, None)])
@given(st.integers(1, 9), LOOKS)
def test_no_minute_sees_more_starts_than_the_rate(
    rate: int, looks: list[tuple[int, int, bool, timedelta | None]]
) -> None:
    """A23: nodes may claim late and many at once, and the pace may fall and rise meanwhile."""
    backfill, now, unstarted, started, ends = going(rate), BEGIN, 0, list[datetime](), list[tuple[datetime, bool]]()
    for wait, begin, fails, latency in looks:
        now += wait * SECOND
        begun = min(begin, unstarted)
        started += [now] * begun
        ends += [(now, fails)] * begun
        unstarted -= begun
        since = [failed for at, failed in ends if at > backfill.paced_at]
        recent = Recent(unstarted, sum(1 for at in started if at > now - WINDOW), len(since), sum(since))
        seen = replace(backfill, recent=recent, latency=latency)
        pace, paced_at = paced(seen, now)
        assert 1 <= pace <= rate
        assert pace in (backfill.pace, max(backfill.pace // 2, 1), min(backfill.pace * 2, rate))
        made = allowance(seen, pace, now)
        unstarted += made
        backfill = replace(backfill, pace=pace, paced_at=paced_at, filled_at=now if made else backfill.filled_at)
    for at in started:
        assert sum(1 for each in started if at - WINDOW < each <= at) <= rate


@given(st.integers(1, 6_000))
def test_it_is_never_slowed_down_for_ever(rate: int) -> None:
    """However far it fell, some good minutes bring it back, and a minute without a start lets one begin."""
    backfill, now = going(rate), BEGIN
    for failed in (True, False):
        for _ in range(14):
            now += WINDOW
            seen = replace(backfill, recent=Recent(ended=4, failed=4 * failed))
            pace, paced_at = paced(seen, now)
            assert allowance(replace(seen, recent=Recent()), pace, now) >= 1
            backfill = replace(backfill, pace=pace, paced_at=paced_at)
        assert backfill.pace == (1 if failed else rate)
