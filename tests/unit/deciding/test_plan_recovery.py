"""Late instants: what each recovery strategy keeps, and how the rest is written down."""

from datetime import datetime, timedelta

import pytest

from everytick.deciding.plan import plan
from everytick.domain.ids import occurrence_id
from everytick.domain.policies import bounded_window
from tests.unit.deciding.planning import active, at, created, instants, job, skipped, snapshot_of


def test_an_instant_that_just_came_is_created_on_time() -> None:
    """S4-007; live ticks take the same lines as any outage."""
    decided = plan(snapshot_of(job(), at("09:00")), at("10:00:01"))

    [only] = decided.creations
    assert (only.scheduled_for, str(only.status), only.late, str(only.why)) == (
        at("10:00"), "pending", False, "on time",
    )  # fmt: skip
    assert only.id == occurrence_id(job().id, at("10:00"))
    assert (only.line_at, only.ready_at) == (at("10:00"), at("10:00"))
    assert (only.covers_after, only.covers_through) == (at("09:00"), at("10:00"))
    assert (decided.watermark, decided.wake_at, decided.spans) == (at("10:00:01"), at("11:00"), ())
    assert (decided.revision, decided.woken) == (7, 3)


def test_nothing_due_moves_the_watermark_through_now() -> None:
    """S4-027."""
    decided = plan(snapshot_of(job(), at("09:00")), at("09:59:59"))

    assert (decided.creations, decided.spans) == ((), ())
    assert (decided.watermark, decided.wake_at) == (at("09:59:59"), at("10:00"))


@pytest.mark.parametrize(
    ("recovery", "runs"),
    [
        ("execute_all", ["10:00", "11:00", "12:00", "13:00", "14:00"]),
        ("execute_last", ["14:00"]),
        ("mark_as_missed", []),
        ("compressed", ["14:00"]),
        (bounded_window(), ["10:00", "11:00", "12:00", "13:00", "14:00"]),
        (bounded_window(max_occurrences=2), ["13:00", "14:00"]),
        (bounded_window(max_duration="3h"), ["12:00", "13:00", "14:00"]),
        (bounded_window(max_occurrences=2, max_duration="3h"), ["13:00", "14:00"]),
        (bounded_window(max_occurrences=9, max_duration="1h"), ["14:00"]),
    ],
    ids=str,
)
def test_five_hours_down_hourly(recovery: object, runs: list[str]) -> None:
    """S0-092, S0-093, S0-094, S0-095, D8: 5, 1 and 0 runs, and what the window holds."""
    decided = plan(snapshot_of(job(recovery=recovery, overlap="allow"), at("09:00")), at("14:30"))

    assert instants(decided) == [at(each) for each in runs]
    assert all(each.late for each in decided.creations)
    assert sum(each.count or 0 for each in decided.spans) == 5 - len(runs)


def test_execute_all_lets_the_late_ones_run_one_after_another() -> None:
    """S0-092, C-12: in order of time, also under overlap skip."""
    decided = plan(snapshot_of(job(recovery="execute_all"), at("09:00")), at("12:30"))

    assert created(decided) == [(at("10:00"), "pending"), (at("11:00"), "queued"), (at("12:00"), "queued")]
    assert {str(each.why) for each in decided.creations} == {"late, kept by recovery"}
    assert decided.creations[1].detail == f"behind {decided.creations[0].id}"


def test_execute_last_records_the_earlier_ones_as_one_span() -> None:
    """S0-093, C-36."""
    decided = plan(snapshot_of(job(), at("09:00")), at("14:30"))

    assert created(decided) == [(at("14:00"), "pending")]
    assert skipped(decided) == [(at("09:00"), at("13:00"), "skipped: not last", 4)]
    assert (decided.watermark, decided.wake_at) == (at("14:30"), at("15:00"))


def test_execute_last_keeps_no_late_one_beside_the_one_on_time() -> None:
    """After a restart one run, not two."""
    decided = plan(snapshot_of(job(), at("09:00")), at("14:00:30"))

    assert created(decided) == [(at("14:00"), "pending")]
    assert decided.creations[0].late is False
    assert skipped(decided) == [(at("09:00"), at("13:00"), "skipped: not last", 4)]


def test_four_instants_in_the_hour_that_was_missed_give_one_run() -> None:
    """S2-011."""
    decided = plan(snapshot_of(job("15,30,45,0 * * * *"), at("09:00")), at("10:00:20"))

    assert created(decided) == [(at("10:00"), "pending")]
    assert skipped(decided) == [(at("09:00"), at("09:45"), "skipped: not last", 3)]


def test_three_days_down_daily_are_three_missed() -> None:
    """S0-094, C-36."""
    daily = job("0 6 * * *", recovery="mark_as_missed")

    decided = plan(snapshot_of(daily, at("-3 12:00")), at("12:00"))

    assert decided.creations == ()
    assert skipped(decided) == [(at("-3 12:00"), at("06:00"), "missed: missed", 3)]
    assert decided.watermark == at("12:00")


def test_what_is_marked_as_missed_does_not_take_the_one_on_time_along() -> None:
    decided = plan(snapshot_of(job(recovery="mark_as_missed"), at("09:00")), at("11:00:59"))

    assert created(decided) == [(at("11:00"), "pending")]
    assert skipped(decided) == [(at("09:00"), at("10:00"), "missed: missed", 1)]


def test_two_hundred_hours_down_with_a_window_of_a_day() -> None:
    """S0-095, S4-036: 24 run and 176 are recorded as skipped."""
    hourly = job(recovery=bounded_window(max_duration="24h"), overlap="allow")
    now = at("12:00:00") + timedelta(minutes=5)

    decided = plan(snapshot_of(hourly, now - timedelta(hours=200)), now)

    assert len(decided.creations) == 24
    assert instants(decided)[0] == at("-1 13:00")
    assert skipped(decided) == [(now - timedelta(hours=200), at("-1 12:00"), "skipped: window", 176)]


def test_a_window_never_reaches_behind_what_was_decided() -> None:
    """S4-036: the later of its beginning and the watermark counts."""
    hourly = job(recovery=bounded_window(max_duration="24h"), overlap="allow")

    decided = plan(snapshot_of(hourly, at("10:00")), at("12:05"))

    assert instants(decided) == [at("11:00"), at("12:00")]
    assert skipped(decided) == []


def test_a_window_is_open_at_its_old_end() -> None:
    """In (now - max_duration, now]: an instant exactly that old is outside."""
    decided = plan(
        snapshot_of(job(recovery=bounded_window(max_duration="2h"), overlap="allow"), at("09:00")), at("14:00")
    )

    assert instants(decided) == [at("13:00"), at("14:00")]


def test_the_one_on_time_is_not_counted_by_a_window() -> None:
    two = job(recovery=bounded_window(max_occurrences=2), overlap="allow")

    decided = plan(snapshot_of(two, at("09:00")), at("14:00:01"))

    assert instants(decided) == [at("12:00"), at("13:00"), at("14:00")]
    assert [each.late for each in decided.creations] == [True, True, False]


def test_a_window_by_age_and_by_count_tells_both_the_same() -> None:
    both = job(recovery=bounded_window(max_occurrences=2, max_duration="4h"), overlap="allow")

    decided = plan(snapshot_of(both, at("02:00")), at("12:30"))

    assert instants(decided) == [at("11:00"), at("12:00")]
    assert skipped(decided) == [(at("02:00"), at("10:00"), "skipped: window", 8)]


# ------------------------------------------------------------------------------------------------------ the cap


def test_the_cap_keeps_the_newest_and_records_the_rest() -> None:
    """C-06: never silent."""
    capped = job(recovery="execute_all", late_cap=3, overlap="allow")

    decided = plan(snapshot_of(capped, at("02:00")), at("12:30"))

    assert instants(decided) == [at("10:00"), at("11:00"), at("12:00")]
    assert skipped(decided) == [(at("02:00"), at("09:00"), "skipped: cap", 7)]


@pytest.mark.parametrize(
    ("recovery", "spans"),
    [
        (bounded_window(), [("02:00", "10:00", "cap", 8)]),
        (bounded_window(max_occurrences=5), [("02:00", "10:00", "cap", 8)]),
        (bounded_window(max_occurrences=2), [("02:00", "10:00", "window", 8)]),
        (bounded_window(max_duration="5h"), [("02:00", "07:00", "window", 5), ("07:30", "10:00", "cap", 3)]),
        (
            bounded_window(max_occurrences=9, max_duration="5h"),
            [("02:00", "07:00", "window", 5), ("07:30", "10:00", "cap", 3)],
        ),
    ],
    ids=str,
)
def test_what_the_window_keeps_and_the_cap_does_not_is_told_so(
    recovery: object, spans: list[tuple[str, str, str, int]]
) -> None:
    """C-06: first the window, then the cap."""
    capped = job(recovery=recovery, late_cap=2, overlap="allow")

    decided = plan(snapshot_of(capped, at("02:00")), at("12:30"))

    assert instants(decided) == [at("11:00"), at("12:00")]
    assert skipped(decided) == [
        (at(after), at(through), f"skipped: {why}", count) for after, through, why, count in spans
    ]


# ------------------------------------------------------------------------------------------------------- late


@pytest.mark.parametrize(
    ("grace", "now", "late"),
    [
        ("60s", "10:00:59", False),
        ("60s", "10:01:00", True),
        ("1s", "10:00:01", True),
        ("3h", "10:59:59", False),
    ],
)
def test_an_instant_is_late_once_its_grace_is_over(grace: str, now: str, late: bool) -> None:
    """S4-007, S0-099: told on the occurrence; nothing is dropped for being late."""
    decided = plan(snapshot_of(job(grace=grace), at("09:00")), at(now))

    assert [(each.scheduled_for, each.late) for each in decided.creations] == [(at("10:00"), late)]


def test_an_instant_is_late_once_its_successor_is_due() -> None:
    """At most one due instant is on time, however long the grace."""
    decided = plan(snapshot_of(job(grace="3h", overlap="allow", recovery="execute_all"), at("09:00")), at("11:00"))

    assert [(each.scheduled_for, each.late) for each in decided.creations] == [
        (at("10:00"), True),
        (at("11:00"), False),
    ]


# -------------------------------------------------------------------------------------------------- compressed


def test_one_compressed_run_covers_the_whole_outage() -> None:
    """S0-096: the task is told the span."""
    hourly = job(recovery="compressed")

    decided = plan(snapshot_of(hourly, at("09:00")), at("14:30"))

    [only] = decided.creations
    assert (only.scheduled_for, only.late) == (at("14:00"), True)
    assert (only.covers_after, only.covers_through) == (at("09:00"), at("14:00"))
    assert skipped(decided) == [(at("09:00"), at("13:00"), f"skipped: compressed, into {only.id}", 4)]


def test_a_compressed_run_is_the_one_on_time_and_comes_in_as_a_late_one() -> None:
    """It covers late instants, so `late_overlap` admits it: under skip it would be dropped, under queue it waits."""
    hourly = job(recovery="compressed", overlap="skip", late_overlap="queue")
    decided = plan(snapshot_of(hourly, at("09:00"), active=(active("x", at("09:00")),)), at("12:00:05"))

    assert created(decided) == [(at("12:00"), "queued")]
    assert decided.creations[0].covers_after == at("09:00")


def test_one_due_instant_alone_is_an_ordinary_one_under_compressed() -> None:
    decided = plan(snapshot_of(job(recovery="compressed"), at("09:00")), at("10:30"))

    [only] = decided.creations
    assert (only.covers_after, only.late, decided.spans) == (at("09:00"), True, ())


def test_a_compressed_run_of_a_job_without_a_past_covers_from_its_first_instant() -> None:
    young = job("every: 1h; start=2026-11-16T10:00:00Z", recovery="compressed")

    decided = plan(snapshot_of(young, at("09:00")), at("12:30"))

    assert decided.creations[0].covers_after == at("10:00") - timedelta(microseconds=1)


def test_the_first_instant_of_all_covers_from_nowhere() -> None:
    young = job("every: 1h; start=2026-11-16T10:00:00Z")

    decided = plan(snapshot_of(young, at("09:00")), at("10:00"))

    assert (decided.creations[0].covers_after, decided.creations[0].covers_through) == (None, at("10:00"))


# ------------------------------------------------------------------------------------------------------- spans


def test_ten_thousand_are_counted_and_more_are_not() -> None:
    """C-36: nothing walks an outage to count it; D4."""
    each_second = job("every: 1s", recovery="mark_as_missed")
    now = at("12:00:00")

    def down(seconds: int) -> list[tuple[datetime, int | None]]:
        decided = plan(snapshot_of(each_second, now - timedelta(seconds=seconds)), now)
        return [(each.through, each.count) for each in decided.spans]

    assert down(10_001) == [(at("11:59:59"), 10_000)]
    assert down(10_002) == [(at("11:59:59"), None)]
    assert down(1_000_000) == [(at("11:59:59"), None)]


def test_two_schedules_of_one_job_are_one_line_of_instants() -> None:
    """S4-018, S4-019: all due ones are candidates, by time, and what both name is one."""
    both = job("(every: 1h) | (0,20 * * * *)", recovery="execute_all", overlap="allow")

    decided = plan(snapshot_of(both, at("09:30")), at("11:30"))

    assert instants(decided) == [at("10:00"), at("10:20"), at("11:00"), at("11:20")]


def test_instants_outside_start_and_end_are_not_decided() -> None:
    """S0-045: active means inside the window."""
    bounded = job(start=at("10:00"), end=at("12:00"), recovery="execute_all", overlap="allow")

    decided = plan(snapshot_of(bounded, at("07:00")), at("15:00"))

    assert instants(decided) == [at("10:00"), at("11:00"), at("12:00")]
    assert (decided.spans, decided.wake_at) == ((), None)


def test_the_clock_of_the_store_may_go_back() -> None:
    """The watermark stays, and nothing is decided twice."""
    decided = plan(snapshot_of(job(), at("10:00:10")), at("09:59"))

    assert (decided.creations, decided.watermark, decided.wake_at) == ((), at("10:00:10"), at("11:00"))
