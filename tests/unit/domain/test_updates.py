"""When a version comes into force, worked out by hand."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from everytick import schedule
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.policies import update_policy
from everytick.domain.snapshots import Edition, JobSnapshot
from everytick.domain.upcoming import editions_to_come, effective, upcoming
from everytick.domain.updates import asked_edition, is_asked, numbered, period_end, updated

BERLIN = ZoneInfo("Europe/Berlin")


def job(when: str, **policies: object) -> Job:
    return define_job("report", schedule(when), policies=policies, tasks=[define_task("report", "main")])


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def stored(when: str, now: datetime, **policies: object) -> JobSnapshot:
    return JobSnapshot("job", 1, 1, now, (Edition(job(when, **policies)),))


def edited(before: JobSnapshot, new: Job, policy: str, now: datetime) -> JobSnapshot:
    added = numbered(updated(before, new, update_policy(policy), now), before.editions[-1].job.version, "anna")
    return JobSnapshot("job", 2, 2, before.watermark, (*before.editions, *added))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("0 5 * * *", "0 6 * * *", ["03 05:00", "04 06:00", "05 06:00"]),
        ("0 5 * * *", "0 4 * * *", ["03 05:00", "04 04:00", "05 04:00"]),
        ("5 * * * *", "10 * * * *", ["02 12:05", "02 13:10", "02 14:10"]),
        ("5 * * * *", "2 * * * *", ["02 12:05", "02 13:02", "02 14:02"]),
        ("0 5,17 * * *", "0 6,18 * * *", ["02 17:00", "03 06:00", "03 18:00"]),
        ("*/15 * * * *", "*/20 * * * *", ["02 12:15", "02 12:30", "02 12:45", "02 13:00", "02 13:20"]),
        ("0 5 * * 1", "0 5 * * 2", ["09 05:00", "17 05:00", "24 05:00"]),
        ("0 5 9 * *", "0 5 8 * *", ["09 05:00", "08 05:00", "08 05:00"]),
        ("once: 2026-03-02T15:00:00Z", "0 16 * * *", ["02 15:00", "02 16:00", "03 16:00"]),
    ],
)
def test_the_period_of_the_next_run_ends_by_the_old_rule(old: str, new: str, expected: list[str]) -> None:
    """S0-118: one run in each period, whether the time moves forward or back."""
    now = at("2026-03-02 12:00")
    found = edited(stored(old, now), job(new), "graceful", now)
    assert [f"{each:%d %H:%M}" for each in upcoming(found, now, len(expected))] == expected


@pytest.mark.parametrize(
    ("run", "gap", "expected"),
    [
        ("2026-03-02 04:00", timedelta(minutes=1), "2026-03-02 04:01"),
        ("2026-03-02 04:30", timedelta(minutes=15), "2026-03-02 05:00"),
        ("2026-03-02 22:30", timedelta(days=1), "2026-03-02 23:00"),
        ("2026-03-02 23:30", timedelta(days=1), "2026-03-03 23:00"),
        ("2026-03-29 00:30", timedelta(hours=23), "2026-03-29 22:00"),
        ("2026-10-25 00:30", timedelta(hours=25), "2026-10-25 23:00"),
        ("2026-03-04 05:00", timedelta(days=7), "2026-03-08 23:00"),
        ("2026-01-31 05:00", timedelta(days=28), "2026-01-31 23:00"),
        ("2026-12-15 05:00", timedelta(days=31), "2026-12-31 23:00"),
        ("2026-03-04 05:00", timedelta(days=400), "2026-12-31 23:00"),
    ],
)
def test_a_period_is_one_of_the_calendar_in_the_zone_of_the_job(run: str, gap: timedelta, expected: str) -> None:
    """A day with 23 or 25 hours is a day."""
    assert period_end(at(run), gap, BERLIN) == at(expected) - timedelta(microseconds=1)


def test_a_later_version_takes_the_place_of_one_to_come() -> None:
    """The order of the versions says who wins, once they are in force."""
    now = at("2026-03-02 12:00")
    first, second, third = (Edition(job(f"0 {hour} * * *")) for hour in (5, 6, 7))
    later, soon = Edition(second.job, now + timedelta(days=2)), Edition(third.job, now + timedelta(days=1))
    assert list(effective((first, later, soon))) == [first, soon]
    assert editions_to_come((first, later, soon), now) == [soon]
    assert list(effective((first, soon, later))) == [first, soon, later]


def test_a_window_within_what_is_to_come_is_followed_by_it() -> None:
    """A graceful edit that comes after the window's end still comes."""
    now = at("2026-03-02 12:00")
    found = edited(
        edited(stored("0 5 * * *", now), job("0 6 * * *"), "graceful 5", now), job("0 9 * * *"), "windowed 2", now
    )
    runs = [f"{each:%d %H:%M}" for each in upcoming(found, now, 7)]
    assert runs == ["03 09:00", "04 09:00", "05 05:00", "06 05:00", "07 05:00", "08 06:00", "09 06:00"]
    assert [each.follows for each in found.editions] == [None, None, None, 3, 3]
    assert asked_edition(found.editions, now).job.version == 3
    assert asked_edition(found.editions, at("2026-03-05 12:00")).job.version == 5
    assert is_asked(found.editions, job("0 9 * * *"), now)
    assert not is_asked(found.editions, job("0 9 * * *"), now, is_lasting=True)


def test_a_user_s_own_zone_decides_where_a_day_ends() -> None:
    """23:30 in Berlin is one day, half an hour later is the next."""
    now = at("2026-03-02 12:00")
    [made] = updated(
        stored("0 5 * * *", now), job("0 6 * * *"), update_policy("graceful"), now, ZoneInfo("Pacific/Kiritimati")
    )
    assert made.in_force_after == at("2026-03-03 10:00") - timedelta(microseconds=1)
