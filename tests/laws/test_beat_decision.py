"""Laws of what a beat decides about one schedule, whatever the rule, the zone and the moments it looks."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as some

from everytick.beat import Registry, Schedule
from everytick.beat.decision import Recorded, decide, is_ours
from everytick.beat.registry import DISABLED, RegisteredSchedule
from everytick.domain.policies import FirstSight

RULES = [
    "* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "0 9 * * 1", "0 0 1 * *", "0 0 31 * *", "5,35 */6 * * 1-5",
    "@daily", "@yearly", "0 0 29 2 *", "H * * * *",
]  # fmt: skip
ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"]
DAY = timedelta(days=1)

moments = some.datetimes(datetime(2024, 1, 1), datetime(2029, 1, 1), timezones=some.just(UTC))  # noqa: DTZ001
pauses = some.timedeltas(timedelta(microseconds=1), 40 * DAY)


def registered(rule: str, zone: str = "UTC", *, enabled: bool = True) -> RegisteredSchedule:
    registry = Registry()
    registry.register(Schedule(id="law", cron=rule, job="job", timezone=zone, enabled=enabled))
    entry = registry.entry("law")
    assert entry is not None
    return entry


entries = some.builds(registered, some.sampled_from(RULES), some.sampled_from(ZONES))


def known(entry: RegisteredSchedule, through: datetime) -> Recorded:
    return Recorded(through, entry.definition, through)


@given(entries, moments, pauses)
def test_at_most_one_time_is_due_and_it_is_the_last(
    entry: RegisteredSchedule, through: datetime, pause: timedelta
) -> None:
    """S3-012: due when the next time after the last run has come; several missed times give one run."""
    now = through + pause
    rule = entry.job.bound(None)

    decision = decide(entry, known(entry, through), now)

    due = (following := rule.next_after(through)) is not None and following <= now
    assert (decision.run is not None) == due
    assert decision.run is None or decision.run.scheduled_at == rule.last_at(now)
    assert decision.through == now
    assert decision.look_at == rule.next_after(now)


@given(entries, moments, pauses)
def test_what_is_decided_is_not_decided_again(entry: RegisteredSchedule, through: datetime, pause: timedelta) -> None:
    """S3-019: a second beat that decides from the new record has nothing to run."""
    now = through + pause
    decision = decide(entry, known(entry, through), now)

    again = decide(entry, known(entry, decision.through), now)

    assert (again.run, again.look_at, again.through) == (None, decision.look_at, decision.through)


@given(entries, moments, some.lists(some.timedeltas(timedelta(microseconds=1), 3 * DAY), min_size=1, max_size=12))
def test_however_often_a_beat_looks_runs_are_times_of_the_schedule_in_order(
    entry: RegisteredSchedule, begin: datetime, steps: list[timedelta]
) -> None:
    """S3-012: none twice, and the last look leaves nothing behind that was due."""
    rule, through, runs = entry.job.bound(None), begin, []
    for step in steps:
        decision = decide(entry, known(entry, through), through + step)
        runs += [decision.run.scheduled_at] if decision.run else []
        through = decision.through

    assert runs == sorted(set(runs))
    assert all(rule.last_at(run) == run and begin < run <= through for run in runs)
    last = rule.last_at(through)
    assert last is None or last <= begin or runs[-1] == last


@given(some.sampled_from(ZONES), moments)
def test_a_beat_that_looks_often_enough_runs_every_time(zone: str, begin: datetime) -> None:
    entry = registered("*/20 * * * *", zone)
    through, runs = begin, []
    for _ in range(200):
        decision = decide(entry, known(entry, through), through + timedelta(minutes=1))
        runs += [decision.run.scheduled_at] if decision.run else []
        through = decision.through

    assert runs == list(entry.job.bound(None).instants(begin, through))


@given(entries, moments, pauses, pauses)
def test_the_job_id_follows_from_schedule_and_time_alone(
    entry: RegisteredSchedule, through: datetime, one: timedelta, other: timedelta
) -> None:
    """S3-020: any beat, from any record, names the same job."""
    first = decide(entry, known(entry, through), through + one)
    second = decide(entry, known(entry, through + one - min(one, other)), through + one)

    assert first.run is None or second.run is None or first.run == second.run


@given(entries, moments)
def test_a_schedule_that_never_ran_is_due_at_once_for_its_last_time(entry: RegisteredSchedule, now: datetime) -> None:
    """S3-013, S3-025, C-08: or it waits for its next one, if the beat was told so."""
    at_once, later = decide(entry, Recorded(), now), decide(entry, Recorded(), now, FirstSight.NEXT)

    assert at_once.run is not None
    assert at_once.run.scheduled_at == entry.job.bound(None).last_at(now)
    assert (later.run, later.through, later.look_at) == (None, now, at_once.look_at)


@given(entries, entries, moments, pauses)
def test_another_rule_names_no_time_of_the_past(
    entry: RegisteredSchedule, before: RegisteredSchedule, through: datetime, pause: timedelta
) -> None:
    """C-23: what was missed is decided by the rule of that time, and a change fires nothing by itself."""
    now = through + pause

    decision = decide(entry, known(before, through), now)

    expected = decide(before, known(before, through), now)
    assert decision.run == expected.run
    assert decision.look_at == entry.job.bound(None).next_after(now)
    assert decision.through == now


@given(some.sampled_from(RULES), some.sampled_from(ZONES), moments, pauses)
def test_a_disabled_schedule_runs_nothing_and_makes_up_for_nothing(
    rule: str, zone: str, through: datetime, pause: timedelta
) -> None:
    """S3-005: and enabling it again fires nothing by itself."""
    off, on, now = registered(rule, zone, enabled=False), registered(rule, zone), through + pause

    assert decide(off, known(on, through), now).run is None
    assert decide(off, known(on, through), now).look_at is None
    assert decide(on, Recorded(through, DISABLED, through), now).run is None


@given(entries, some.text(max_size=40), moments, pauses)
def test_a_recorded_rule_that_cannot_be_read_names_nothing(
    entry: RegisteredSchedule, text: str, through: datetime, pause: timedelta
) -> None:
    """S3-032: what runs comes from code; a text in Redis is at most a rule for what was missed."""
    decision = decide(entry, Recorded(through, f"?{text}", through), through + pause)

    assert decision.run is None
    assert decision.through == through + pause


@given(entries, entries, moments, moments)
def test_of_two_rules_the_newest_start_decides(
    entry: RegisteredSchedule, other: RegisteredSchedule, defined: datetime, started: datetime
) -> None:
    recorded = known(other, defined)

    same = entry.definition == other.definition
    assert is_ours(entry, recorded, started) == (same or defined < started)
    assert is_ours(entry, replace(recorded, definition=""), started)
