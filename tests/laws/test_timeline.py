"""Laws of the timeline: every run is in one mark, nothing merges across now, and lanes and bands are bounded."""

import re
from datetime import UTC, datetime, timedelta

from hypothesis import assume, given
from hypothesis import strategies as st

from everytick.domain.statuses import ACTIVE, OccurrenceStatus
from everytick.web.pictures.axis import axis_around, axis_to, ticks
from everytick.web.pictures.bands import BandCounts, band_picture, band_step, steps_of
from everytick.web.pictures.lanes import NEAR, LaneRun, LaneUsual, PlannedRun, lane_picture, marks_of
from everytick.web.pictures.timeline import MOST_BANDS, LaneCandidate, Urgency, chosen, folded

NOW = datetime(2026, 10, 23, 12, 7, 18, tzinfo=UTC)
LENGTHS = st.sampled_from([timedelta(hours=1), timedelta(hours=4), timedelta(hours=15), timedelta(days=3)])
SECONDS = st.integers(0, 300_000)


@st.composite
def runs(draw: st.DrawFn) -> list[LaneRun]:
    found = []
    for _ in range(draw(st.integers(0, 40))):
        at = NOW - timedelta(seconds=draw(SECONDS))
        status = draw(st.sampled_from(list(OccurrenceStatus)))
        started = min(at + timedelta(seconds=draw(st.integers(0, 600))), NOW)
        ended = min(started + timedelta(seconds=draw(st.integers(0, 90_000))), NOW)
        is_waiting = status in (OccurrenceStatus.PENDING, OccurrenceStatus.QUEUED)
        found.append(
            LaneRun(
                at,
                status,
                None if is_waiting else started,
                None if status in ACTIVE else ended,
                is_late=draw(st.booleans()),
            )
        )
    return found


@given(runs(), LENGTHS)
def test_every_run_in_the_picture_is_in_exactly_one_mark(given: list[LaneRun], length: timedelta) -> None:
    axis = axis_around(NOW, length)
    marked = [run for mark in marks_of(given, axis) for run in mark.runs]
    seen = [run for run in given if (run.ended or NOW) > axis.after]

    assert sorted(map(id, marked)) == sorted(map(id, seen))


@given(runs(), LENGTHS)
def test_nothing_merges_across_now_nor_with_what_is_not_alike(given: list[LaneRun], length: timedelta) -> None:
    axis = axis_around(NOW, length)
    for mark in marks_of(given, axis):
        assert mark.end <= axis.now_at + 1e-9
        if len(mark.runs) > 1:
            assert len({(run.status, run.is_late) for run in mark.runs}) == 1
            assert not any(run.is_active for run in mark.runs)


@given(runs(), LENGTHS)
def test_marks_stay_in_the_picture_and_alike_ones_keep_apart(given: list[LaneRun], length: timedelta) -> None:
    axis = axis_around(NOW, length)
    ended: dict[object, float] = {}
    for mark in marks_of(given, axis):
        assert 0 <= mark.begin <= mark.end <= 1
        kind = mark.first.status, mark.first.is_late
        if not mark.first.is_active:
            assert mark.begin - ended.get(kind, -1.0) >= NEAR - 1e-12
            ended[kind] = mark.end


@given(runs(), st.lists(SECONDS, max_size=20), LENGTHS, st.booleans())
def test_no_mark_is_drawn_outside_and_no_plan_before_now(
    given: list[LaneRun], ahead: list[int], length: timedelta, has_usual: bool
) -> None:
    axis = axis_around(NOW, length)
    usual = LaneUsual(timedelta(minutes=7), timedelta(minutes=40)) if has_usual else None
    planned = [PlannedRun(NOW + timedelta(seconds=each)) for each in ahead]
    drawn = str(lane_picture(marks_of(given, axis), planned, axis, usual, "/marks.svg"))

    for x, width in re.findall(r'<rect class="[^"]+" x="([\d.]+)%" y="[\d.]+" width="([\d.]+)%"', drawn):
        assert 0 <= float(x) <= 100
        assert float(x) + float(width) <= 100.02
    for x in re.findall(r'class="m-ghost" x="([\d.]+)%"', drawn):
        assert float(x) >= 80 - 0.01


@given(LENGTHS, SECONDS)
def test_labels_are_few_and_in_the_picture(length: timedelta, back: int) -> None:
    axis = axis_to(NOW - timedelta(seconds=back), length, NOW)
    found = ticks(axis, UTC)

    assert found == sorted(set(found))
    assert 2 <= len(found) <= 17
    assert all(axis.after < moment < axis.through for moment in found)


@given(st.lists(st.tuples(SECONDS, st.booleans()), max_size=60), LENGTHS)
def test_a_band_counts_every_start_once(moments: list[tuple[int, bool]], length: timedelta) -> None:
    axis = axis_around(NOW, length)
    within = [
        (NOW - timedelta(seconds=back), bad) for back, bad in moments if NOW - timedelta(seconds=back) > axis.after
    ]
    counts = steps_of(within, axis, band_step(axis))

    assert sum(each.starts for each in counts.values()) == len(within)
    assert sum(each.failed for each in counts.values()) == sum(bad for _, bad in within)
    drawn = str(band_picture(counts, {}, axis, band_step(axis)))
    assert all(2 <= int(high) <= 22 for high in re.findall(r"v-(\d+)", drawn))


STEP = re.compile(r"([Mm])(-?[\d.]+) (-?[\d.]+)(?:v-[\d.]+)?h([\d.]+)(?:v[\d.]+(z))?")


def edges_of(path: str) -> list[tuple[float, float]]:
    """Return the left edge and the level of every bar of a path, whose moves count from the last one."""
    x = y = 0.0
    found = []
    for kind, across, down, wide, closed in STEP.findall(path):
        x, y = (float(across), float(down)) if kind == "M" else (x + float(across), y + float(down))
        found.append((round(x, 2), round(y, 2)))
        x += 0 if closed else float(wide)
    return found


@given(st.sets(st.integers(1, 200), min_size=1, max_size=40))
def test_every_bar_of_a_band_stands_at_its_step(places: set[int]) -> None:
    axis = axis_around(NOW, timedelta(hours=15))
    step = band_step(axis)
    within = [place for place in sorted(places) if axis.after + place * step < NOW]
    assume(within)
    counts = {axis.after + place * step: BandCounts(1 + place % 7) for place in within}
    drawn = str(band_picture(counts, {}, axis, step))
    fill, edge = (re.findall(rf'<path class="{kind}" d="([^"]+)"', drawn)[0] for kind in ("b-soft", "e-soft"))
    high = [max(round((1 + place % 7) / max(1 + each % 7 for each in within) * 20), 2) for place in within]

    assert edges_of(fill) == [(place, 22) for place in within]
    assert edges_of(edge) == [(place, 22 - each) for place, each in zip(within, high, strict=True)]


CANDIDATES = st.lists(
    st.builds(LaneCandidate, st.text("abc", max_size=4), st.sampled_from(Urgency), is_pinned=st.booleans()),
    unique_by=lambda each: each.name,
    max_size=60,
)


@given(CANDIDATES, st.integers(1, 24))
def test_lanes_are_bounded_and_the_most_urgent_come_first(candidates: list[LaneCandidate], most: int) -> None:
    names = chosen(candidates, most)
    by_name = {each.name: each for each in candidates}
    urgencies = [by_name[name].urgency for name in names]

    assert len(names) <= most
    assert urgencies == sorted(urgencies, reverse=True)
    left = [each for each in candidates if each.name not in names]
    for each in left:
        assert not each.is_pinned or sum(other.is_pinned for other in candidates) > most
        if not each.is_pinned and each.urgency > Urgency.QUIET:
            taken = [by_name[name].urgency for name in names if not by_name[name].is_pinned]
            assert all(other >= each.urgency for other in taken)


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.text("uvwxyz", min_size=1, max_size=2)))
def test_every_other_job_is_in_one_band(bands: dict[str, str]) -> None:
    groups: dict[str, list[str]] = {}
    for job, band in bands.items():
        groups.setdefault(band, []).append(job)
    found = folded(groups)

    assert len(found) <= MOST_BANDS
    assert sorted(job for jobs in found.values() for job in jobs) == sorted(bands)
