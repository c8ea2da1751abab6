"""Laws of spreading: no job leaves its window, the peak never rises, and the same jobs give the same answer."""

from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from everytick.deciding.spreading import MINUTE, Movable, spread

START = datetime(2027, 3, 1, tzinfo=UTC)
THROUGH = START + timedelta(days=1)


@st.composite
def fleets(draw: st.DrawFn) -> list[Movable]:
    """Give jobs with some instants of a day, a window and an offset in it."""
    fleet = []
    for number in range(draw(st.integers(0, 8))):
        minutes = draw(st.lists(st.integers(1, 1439), min_size=1, max_size=5, unique=True))
        window = draw(st.integers(0, 90))
        offset = draw(st.integers(0, max(window - 1, 0)))
        instants = tuple(START + minute * MINUTE for minute in sorted(minutes))
        length = timedelta(seconds=draw(st.integers(0, 7200)))
        fleet.append(Movable(f"job-{number}", instants, length, window * MINUTE, offset * MINUTE))
    return fleet


@given(fleets(), st.integers(1, 4))
def test_no_job_leaves_its_window(fleet: list[Movable], enough: int) -> None:
    windows = {job.name: job.window for job in fleet}
    for move in spread(fleet, START, THROUGH, enough=enough).moves:
        assert timedelta(0) <= move.after < windows[move.name]
        assert move.after != move.before


def at(*minutes: int) -> tuple[datetime, ...]:
    return tuple(START + minute * MINUTE for minute in minutes)


@given(fleets(), st.integers(1, 4))
@example(
    # Runs of job-3 are under way together: where another runs, they make two more, not one.
    fleet=[
        Movable("job-0", at(1), timedelta(0)),
        Movable("job-1", at(266), timedelta(0), 41 * MINUTE, 38 * MINUTE),
        Movable("job-2", at(3), MINUTE),
        Movable("job-3", at(2, 16, 18, 64, 248), 59 * MINUTE, 61 * MINUTE),
        Movable("job-4", at(262), 45 * MINUTE, 2 * MINUTE),
        Movable("job-5", at(75), 4 * MINUTE, 58 * MINUTE),
    ],
    enough=2,
)
def test_the_peak_never_rises_and_no_run_is_lost(fleet: list[Movable], enough: int) -> None:
    found = spread(fleet, START, THROUGH, enough=enough)
    assert found.peak_after <= found.peak_before
    if all(job.length <= MINUTE for job in fleet):
        assert sum(found.after) == sum(found.before) == sum(len(job.instants) for job in fleet)


@given(fleets(), st.randoms(use_true_random=False))
def test_the_same_jobs_in_any_order_give_the_same_answer(fleet: list[Movable], random: object) -> None:
    shuffled = list(fleet)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert spread(shuffled, START, THROUGH) == spread(fleet, START, THROUGH)


@given(fleets(), st.integers(0, 3_000))
def test_jobs_beyond_the_work_are_counted_and_stay(fleet: list[Movable], work: int) -> None:
    found = spread(fleet, START, THROUGH, work=work)
    movable = sum(job.window > MINUTE for job in fleet)
    assert len(found.moves) + found.untried <= movable
    assert found.peak_after <= found.peak_before


@given(fleets())
def test_minutes_with_enough_room_are_left_alone(fleet: list[Movable]) -> None:
    peak = spread(fleet, START, THROUGH).peak_before
    assert spread(fleet, START, THROUGH, enough=peak).moves == ()
