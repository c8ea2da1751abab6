"""Chronicle: what ran, what did not, why, and assertions that say what happened instead."""

from datetime import UTC, datetime, timedelta

import pytest

from everytick.domain.decisions import Plan, Span, Why
from everytick.domain.outcome import Failed
from everytick.domain.statuses import OccurrenceStatus
from everytick.testing import Chronicle, Entry, ManualClock, MemoryStore, chronicle_of
from tests.stores.acting import FAILED, AnyStore, everything, job, plan_once, put, remove, run_one

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)


def at(hour: int) -> datetime:
    return NINE.replace(hour=hour)


RAN = Entry("backup", at(9), "completed", "on time", started_at=at(9), ended_at=at(9), attempts={"main": 1})
BROKE = Entry(
    "backup",
    at(10),
    "failed",
    "on time",
    started_at=at(10),
    error="aborting",
    attempts={"main": 3},
    errors={"main": "Traceback (most recent call last):\n  File …\nOSError: disk full\n"},
)
SKIPPED = Entry("backup", at(11), "skipped", "overlap behind occ_1")
MISSED = Entry("backup", at(12), "missed", "missed")
WAITS = Entry("backup", at(13), "queued", "on time")
CHRONICLE = Chronicle([WAITS, SKIPPED, RAN, BROKE, MISSED], jobs=["idle"])


def test_entries_come_in_order_of_time() -> None:
    assert list(CHRONICLE) == [RAN, BROKE, SKIPPED, MISSED, WAITS]
    assert len(CHRONICLE) == 5
    assert repr(CHRONICLE) == "Chronicle(5 entries of 2 jobs)"


def test_what_ran_and_what_did_not_are_apart_and_what_waits_is_neither() -> None:
    assert CHRONICLE.ran("backup") == (RAN, BROKE)
    assert CHRONICLE.skipped("backup") == (SKIPPED, MISSED)
    assert CHRONICLE.of("idle") == ()


def test_a_name_that_no_job_has_is_refused() -> None:
    with pytest.raises(LookupError, match=r"no job is named 'bakup' \(did you mean 'backup'\?\)"):
        CHRONICLE.ran("bakup")
    with pytest.raises(LookupError, match="no job is named 'x'; there are: backup, idle"):
        CHRONICLE.of("x")
    with pytest.raises(LookupError, match="no job is named 'x'; there are: none"):
        Chronicle([]).of("x")


def test_what_is_true_passes() -> None:
    CHRONICLE.assert_ran("backup")
    CHRONICLE.assert_ran("backup", "2026-11-16T09:00:00Z", at(10))
    CHRONICLE.assert_ran("backup", times=2)
    CHRONICLE.assert_ran("idle", times=0)
    CHRONICLE.assert_skipped("backup")
    CHRONICLE.assert_skipped("backup", at(11), at(12))
    CHRONICLE.assert_skipped("backup", at(11), why="overlap")
    CHRONICLE.assert_skipped("backup", times=1, why="missed")
    CHRONICLE.assert_skipped("backup", times=0, why="paused")
    CHRONICLE.assert_failed("backup")
    CHRONICLE.assert_failed("backup", error="disk full")
    CHRONICLE.assert_failed("backup", error="aborting")
    Chronicle([RAN]).assert_ran("backup", status="completed")


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (lambda: CHRONICLE.assert_ran("idle"), "idle: should run, and never did\nwhat happened to idle:\n  nothing"),
        (lambda: CHRONICLE.assert_ran("backup", at(9)), "backup: should run exactly at 2026-11-16 09:00:00"),
        (lambda: CHRONICLE.assert_ran("backup", times=3), "backup: should run 3 times, and it was 2 times"),
        (
            lambda: CHRONICLE.assert_ran("backup", status="completed"),
            "every run should have ended completed, and 1 did",
        ),
        (lambda: CHRONICLE.assert_skipped("backup", why="paused"), "should be skipped (paused), and never did"),
        (lambda: CHRONICLE.assert_skipped("backup", at(12), why="overlap"), "should be skipped (overlap) exactly at"),
        (lambda: CHRONICLE.assert_failed("backup", error="net"), "no run failed with 'net' in its error"),
        (lambda: CHRONICLE.assert_failed("idle"), "idle: no run failed\n"),
    ],
)
def test_what_is_not_true_fails_with_what_happened(claim: object, said: str) -> None:
    assert callable(claim)
    with pytest.raises(AssertionError) as failure:
        claim()

    assert said in str(failure.value)
    if "idle" not in said:
        assert (
            "  2026-11-16 10:00:00  failed                 on time; aborting; main: OSError: disk full; main tried 3×\n"
            in str(failure.value)
        )


def test_many_instants_in_one_entry_are_counted() -> None:
    rows = Chronicle(
        [Entry("a", at(9), "missed", "missed", count=400), Entry("b", at(9), "missed", "missed", count=None)]
    )

    rows.assert_skipped("a", times=400)
    assert str(rows).splitlines()[0].endswith("missed (400)")
    assert str(rows).splitlines()[1].endswith("missed (more than 10000)")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NINE)


async def test_a_store_tells_all_it_knows(store: AnyStore, clock: ManualClock) -> None:
    """S0-093, S0-094, C-36: what was skipped is shown as single entries."""
    await put(store, job("hourly"))
    await put(store, job("lax", recovery="mark_as_missed"))
    clock.advance("3h30m")
    await plan_once(store)
    await run_one(store, FAILED)

    told = await chronicle_of(store)

    told.assert_ran("hourly", at(12))
    told.assert_failed("hourly", error="boom")
    told.assert_skipped("hourly", at(10), at(11), why="not last")
    told.assert_skipped("lax", at(10), at(11), at(12), why="missed")
    told.assert_ran("lax", times=0)
    [ran] = told.ran("hourly")
    assert (ran.late, ran.cause, ran.attempts, ran.started_at) == (True, "schedule", {"main": 1}, clock())


async def test_removed_and_changed_jobs_are_told_too(store: AnyStore, clock: ManualClock) -> None:
    gone = await put(store, job("gone"))
    changed = await put(store, job("changed", recovery="mark_as_missed"))
    clock.advance("2h30m")
    await plan_once(store)
    await run_one(store, Failed("x"))
    await remove(store, gone.job_id)
    await put(store, job("changed", "*/15 * * * *", recovery="mark_as_missed"))
    assert changed.changed

    told = await chronicle_of(store)

    told.assert_ran("gone", times=1)
    told.assert_skipped("changed", times=2)
    assert [entry.count for entry in told.skipped("changed")] == [2], "its definition is another by now"


async def test_a_long_past_is_read_page_by_page(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job("often", "every 1s", recovery="execute_all", overlap="allow"))
    await plan_once(store)
    for _ in range(12):
        clock.advance(timedelta(seconds=100))
        await plan_once(store)

    assert len((await chronicle_of(store)).of("often")) == 1200


async def test_a_span_whose_instants_the_schedule_does_not_name_is_one_entry(everytick_store: MemoryStore) -> None:
    """Of seven that were counted the schedule names three: which they were cannot be told."""
    stored = await put(everytick_store, job("hourly"))
    begun = await everytick_store.now()
    span = Span(OccurrenceStatus.MISSED, Why.MISSED, "", begun, begun + timedelta(hours=3), 1, 7)
    async with everytick_store.due(await everything(everytick_store), 1) as batch:
        made = Plan(stored.job_id, batch.snapshots[0].revision, batch.snapshots[0].woken, begun, None, spans=(span,))
        await everytick_store.commit_plans(batch, [made])

    [entry] = (await chronicle_of(everytick_store)).skipped("hourly")

    assert (entry.scheduled_for, entry.count) == (begun + timedelta(hours=3), 7)
