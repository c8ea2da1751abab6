"""The agenda: planned starts, instants that many share, who waits for a slot, and clock changes."""

from datetime import UTC, datetime, timedelta

from everytick import cron, every
from everytick.deciding.agenda import agenda_of, waits
from everytick.domain.agenda import AgendaJob, alike
from everytick.domain.job import define_job
from everytick.domain.questions import JobLengths
from everytick.domain.schedule import Schedule
from everytick.domain.snapshots import PausedSpan

NOW = datetime(2026, 10, 23, 12, 7, tzinfo=UTC)
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)


def planned(name: str, rule: Schedule, usual: timedelta | None = None, pause: PausedSpan | None = None) -> AgendaJob:
    """Return a job as the agenda sees it."""
    lengths = None if usual is None else JobLengths(9, usual, usual, usual)
    return AgendaJob(define_job(name, rule), None, lengths, pause)


def test_starts_are_counted_by_quarter_and_by_time() -> None:
    found = agenda_of(
        [planned("a", cron("0 * * * *", tz="UTC")), planned("b", cron("0 9 * * *", tz="UTC"))], NOW, slots=5
    )
    assert found.starts(NOW, NOW + HOUR) == 1
    assert found.starts(NOW, NOW + DAY) == 25
    assert sum(found.quarters.values()) == 7 * 25


def test_a_pause_takes_its_instants_out_and_lets_the_later_ones_stand() -> None:
    pause = PausedSpan(NOW - HOUR, NOW + 2 * DAY)
    found = agenda_of([planned("a", cron("0 9 * * *", tz="UTC"), pause=pause)], NOW, slots=5)
    assert sum(found.quarters.values()) == 5


def test_a_very_busy_schedule_is_estimated_for_the_rest_of_the_week() -> None:
    found = agenda_of([planned("beat", every("10s"))], NOW, slots=5)
    [is_cut] = [group.is_cut for group in found.groups]
    assert is_cut
    total, whole_week = sum(found.quarters.values()), found.starts(NOW, NOW + 7 * DAY)
    assert abs(total - 7 * 8640) < 10
    assert abs(whole_week - 7 * 8640) < 10


def test_a_schedule_that_is_busy_at_day_is_estimated_as_quiet_at_night() -> None:
    found = agenda_of([planned("shop", cron("0/5 * 9-16 * * ?", dialect="quartz", tz="UTC"))], NOW, slots=5)
    [is_cut] = [group.is_cut for group in found.groups]
    assert is_cut
    night = (NOW + 5 * DAY).replace(hour=2) - datetime(1970, 1, 1, tzinfo=UTC)
    assert found.quarters.get(night // (15 * MINUTE), 0) == 0


def test_when_time_is_up_the_jobs_that_are_left_are_told() -> None:
    jobs = [planned(f"job-{n}", cron(f"{n} * * * *", tz="UTC")) for n in range(40)]
    looks = iter(range(1000))
    found = agenda_of(jobs, NOW, slots=5, is_over=lambda: next(looks) >= 10)
    assert (len(found.groups), found.uncounted) == (10, 30)


def test_jobs_with_one_schedule_are_enumerated_once() -> None:
    rule = cron("0 2 * * *", tz="UTC")
    found = agenda_of([planned(f"job-{n}", rule) for n in range(500)], NOW, slots=80)
    assert len(found.groups) == 1
    assert found.crowds[0].starts == 500
    assert found.crowds[0].waiting == 420


def test_jobs_are_alike_only_if_their_schedule_depends_on_none_of_them() -> None:
    """Equal schedules are one group, however many values of them there are; a window or a hash makes another."""
    hourly, hashed = "0 * * * *", cron("H * * * *", tz="UTC")
    jobs = [define_job(f"job-{n}", cron(hourly, tz="UTC")) for n in range(3)]
    jobs += [define_job("later", cron(hourly, tz="UTC"), policies={"start": "2027-01-01T00:00:00Z"})]
    jobs += [define_job(f"hashed-{n}", hashed) for n in range(2)]
    groups = alike((job, None, job.name) for job in jobs)
    assert groups == [["job-0", "job-1", "job-2"], ["later"], ["hashed-0"], ["hashed-1"]]


def test_the_jobs_of_a_crowd_are_those_that_start_at_its_instant() -> None:
    """Who waits is found out once for each set of jobs: another group or a pause makes another set."""
    daily, hourly = cron("0 2 * * *", tz="UTC"), cron("0 * * * *", tz="UTC")
    until_tomorrow = PausedSpan(NOW - HOUR, NOW + DAY)
    jobs = [
        planned("a", daily, HOUR),
        planned("b", daily, HOUR, until_tomorrow),
        planned("c", hourly),
        planned("d", hourly),
    ]
    crowds = {crowd.at: (crowd.jobs, crowd.starts, crowd.waiting) for crowd in agenda_of(jobs, NOW, slots=2).crowds}
    tonight = NOW.replace(hour=2, minute=0) + DAY
    assert crowds[tonight] == (("a", "c", "d"), 3, 1)
    assert crowds[tonight + HOUR] == (("c", "d"), 2, 0)
    assert {crowds[tonight + day * DAY] for day in range(1, 6)} == {(("a", "b", "c", "d"), 4, 2)}


def test_the_fullest_instant_comes_first_with_who_waits() -> None:
    jobs = [planned(f"two-{n}", cron("0 2 * * *", tz="UTC"), 10 * MINUTE) for n in range(3)]
    jobs += [planned(f"three-{n}", cron("0 3 * * 6", tz="UTC"), MINUTE) for n in range(2)]
    first, *_ = found = agenda_of(jobs, NOW, slots=1).crowds
    assert (first.starts, first.waiting, first.longest) == (3, 2, 20 * MINUTE)
    assert found[-1].jobs == ("three-0", "three-1")


def test_runs_wait_for_the_slot_that_is_free_first() -> None:
    lengths = [10 * MINUTE, MINUTE, 5 * MINUTE, MINUTE]
    assert waits(lengths, 2) == (2, 6 * MINUTE)
    assert waits(lengths, 4) == (0, timedelta(0))
    assert waits(lengths, 0) == (0, timedelta(0))


def test_a_clock_change_names_the_jobs_that_it_concerns() -> None:
    jobs = [
        planned("once", cron("30 2 * * *", tz="Europe/Berlin")),
        planned("far", cron("30 9 * * *", tz="Europe/Berlin")),
    ]
    jobs.append(planned("utc", cron("30 2 * * *", tz="UTC")))
    [change] = agenda_of(jobs, NOW, slots=5).changes
    assert (change.zone, change.is_fold, change.job_count) == ("Europe/Berlin", True, 1)
    assert change.at == datetime(2026, 10, 25, 1, tzinfo=UTC)
    assert (change.first.hour, change.last.hour) == (2, 3)
    [((what, _), names)] = change.jobs.items()
    assert (what, names) == ("silenced", ("once",))


def test_a_schedule_that_raises_leaves_the_others_counted() -> None:
    class Broken:
        def next_after(self, instant: datetime, /) -> datetime | None:
            return instant + HOUR

        last_at = next_after

        def instants(self, after: datetime, through: datetime, limit: int | None = None) -> list[datetime]:
            raise ValueError("broken")

        def describe(self) -> str:
            return "broken"

    found = agenda_of([planned("bad", Broken()), planned("good", cron("0 9 * * *", tz="UTC"))], NOW, slots=5)
    assert [group.jobs[0].job.name for group in found.groups] == ["good"]
