"""reschedule: the next run, which may be now."""

from datetime import timedelta

import pytest

from everytick.app import Everytick
from everytick.errors import InvalidInstant
from everytick.stores.addresses import AnyStore
from tests.stores.acting import occurrences, plan_once, run_one
from tests.stores.clock import ManualClock


@pytest.fixture
async def hourly(tick: Everytick, store: AnyStore, clock: ManualClock) -> str:
    clock.move(minutes=10)
    tick.job("0 * * * *", name="hourly")(lambda: None)
    await tick.sync()
    await plan_once(store)
    return "hourly"


@pytest.mark.parametrize("ago", [timedelta(0), timedelta(microseconds=1), timedelta(seconds=59)])
async def test_the_next_run_can_be_now(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str, ago: timedelta
) -> None:
    """S1-036, M7: a clock that is a little behind the store's means now, too."""
    now = clock.time
    await tick.reschedule(hourly, now - ago)
    for _ in range(2):
        await plan_once(store)
        clock.move(microseconds=1)
    made = (await run_one(store)).occurrence
    assert now <= made.scheduled_for <= now + timedelta(microseconds=1)
    assert (await tick.next_runs(hourly, 1))[0] == now.replace(hour=10, minute=0)


async def test_now_is_now_at_an_instant_that_has_run(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str
) -> None:
    """M7: it is one more run."""
    clock.time = clock.time.replace(hour=10, minute=0)
    await plan_once(store)
    await run_one(store)
    await tick.reschedule(hourly, clock.time)
    for _ in range(2):
        clock.move(microseconds=1)
        await plan_once(store)
    await run_one(store)
    assert [str(each.status) for each in await occurrences(store)] == ["completed", "completed"]


async def test_what_is_long_past_is_refused(tick: Everytick, clock: ManualClock, hourly: str) -> None:
    with pytest.raises(InvalidInstant, match="the next run"):
        await tick.reschedule(hourly, clock.time - timedelta(seconds=61))


@pytest.mark.parametrize("is_moved", [False, True])
async def test_the_next_run_can_be_at_an_instant_that_was_skipped_or_moved_away(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str, is_moved: bool
) -> None:
    """Its id is that of the instant, so the run that was asked for never came, or the moved one did not."""
    ten = clock.time.replace(hour=10, minute=0)
    if is_moved:
        await tick.move(hourly, ten, ten + timedelta(minutes=20))
    else:
        await tick.skip(hourly, ten)
    await tick.reschedule(hourly, ten)
    for minutes in (0, 20):
        clock.time = ten + timedelta(minutes=minutes, seconds=1)
        while await plan_once(store):
            pass
        if minutes == 0 or is_moved:
            await run_one(store)
    instants = [ten + timedelta(microseconds=1), ten + timedelta(minutes=20)][: 1 + is_moved]
    assert sorted(each.scheduled_for for each in await occurrences(store)) == instants


async def test_such_a_next_run_is_taken_back_by_the_time_that_was_said(
    tick: Everytick, clock: ManualClock, hourly: str
) -> None:
    """People do not know that it comes a microsecond later."""
    ten = clock.time.replace(hour=10, minute=0)
    await tick.skip(hourly, ten)
    await tick.reschedule(hourly, ten)
    assert (await tick.preview_undo(hourly, ten)).runs.added[0] == ten
    assert await tick.undo(hourly, ten) == ("skip", "reschedule")
    assert (await tick.next_runs(hourly, 1))[0] == ten
