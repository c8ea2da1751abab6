"""Spreading: which jobs move, how far, and how their schedules say it."""

from datetime import UTC, datetime, timedelta

from everytick import after_completion, cron, every
from everytick.deciding.spreading import MINUTE, Movable, movable, moved_schedule, spread
from everytick.domain.job import define_job
from everytick.schedules.codec import schedule

START = datetime(2027, 3, 1, tzinfo=UTC)
THROUGH = START + timedelta(days=7)
HOUR = timedelta(hours=1)


def test_five_daily_jobs_at_two_get_a_minute_each() -> None:
    at_two = [START + timedelta(days=day, hours=2) for day in range(7)]
    jobs = [Movable(f"job-{n}", at_two, timedelta(seconds=40), timedelta(minutes=10)) for n in range(5)]

    found = spread(jobs, START, THROUGH)

    assert (found.peak_before, found.peak_after) == (5, 1)
    assert len({move.after for move in found.moves}) == 4
    assert found.before[2 * 60] == 5
    assert found.after[2 * 60] == 1


def test_a_run_counts_for_every_minute_that_it_usually_takes() -> None:
    long = Movable("long", [START + HOUR], timedelta(minutes=30))
    short = Movable("short", [START + HOUR], timedelta(minutes=5), timedelta(minutes=20))

    found = spread([long, short], START, START + 3 * HOUR)

    # Within its window there is no minute in which the long one does not run.
    assert found.moves == ()
    assert sum(found.before) == 35


def test_a_job_without_a_window_stays() -> None:
    jobs = [Movable(f"job-{n}", [START + HOUR], MINUTE) for n in range(3)]
    assert spread(jobs, START, THROUGH).moves == ()


def test_the_window_of_a_job_is_its_spread_and_its_offset_is_in_it() -> None:
    job = define_job("report", cron("0 9 * * *", tz="UTC"), policies={"spread": "30m"})
    found = movable(job, None, None, START, THROUGH)
    assert found is not None
    assert found.window == timedelta(minutes=30)
    assert found.instants[0] == START + 9 * HOUR
    assert found.instants[0] + found.offset == job.bound(None).next_after(START)


def test_a_chosen_offset_is_where_the_job_stands() -> None:
    job = define_job("report", schedule("cron: 0 9 * * *; tz=UTC; spread=30m; offset=7m"))
    found = movable(job, None, None, START, THROUGH)
    assert found is not None
    assert found.offset == timedelta(minutes=7)


def test_an_allowed_window_ends_before_the_next_instant() -> None:
    job = define_job("often", cron("*/10 * * * *", tz="UTC"))
    found = movable(job, None, None, START, THROUGH, allow=HOUR)
    assert found is not None
    assert found.window == timedelta(minutes=10)
    kept = movable(job, None, None, START, THROUGH)
    assert kept is not None
    assert kept.window == timedelta(0)


def test_jobs_that_follow_an_end_or_start_all_the_time_count_for_nothing() -> None:
    for rule in (after_completion("10m"), every("10s")):
        assert movable(define_job("job", rule), START, None, START, THROUGH, allow=HOUR) is None


def test_a_moved_schedule_reads_back_and_starts_later_by_the_offset() -> None:
    job = define_job("report", cron("0 9 * * *", tz="UTC"), policies={"spread": "30m"})
    moved = moved_schedule(job, timedelta(minutes=30), timedelta(minutes=12))
    assert str(moved) == "cron: 0 9 * * *; tz=UTC; spread=30m; offset=12m"
    again = define_job("report", schedule(str(moved)))
    assert again.bound(None).next_after(START) == START + timedelta(hours=9, minutes=12)
