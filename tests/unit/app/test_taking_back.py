"""A skip or a move of one instant is taken back by moving it to its own time."""

from datetime import UTC, datetime

import pytest

from everytick.app import Everytick
from everytick.errors import InvalidInstant
from everytick.stores.addresses import AnyStore
from tests.stores.acting import occurrences, plan_once, run_one
from tests.stores.clock import ManualClock

ELEVEN = datetime(2026, 11, 16, 11, tzinfo=UTC)


@pytest.fixture
async def hourly(tick: Everytick, store: AnyStore, clock: ManualClock) -> str:
    tick.job("0 * * * *", name="hourly")(lambda: None)
    await tick.sync()
    clock.time = ELEVEN.replace(hour=10)
    await plan_once(store)
    await run_one(store)
    return "hourly"


@pytest.mark.parametrize("first", ["skip", "move", "move early"])
async def test_a_skip_or_a_move_is_taken_back(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str, first: str
) -> None:
    """M6: the instant runs in its own place, once."""
    if first == "skip":
        await tick.skip(hourly, ELEVEN)
    else:
        await tick.move(hourly, ELEVEN, ELEVEN.replace(hour=10 if first == "move early" else 11, minute=30))
    await tick.move(hourly, ELEVEN, ELEVEN)
    assert (await tick.next_runs(hourly, 2)) == [ELEVEN, ELEVEN.replace(hour=12)]
    assert (await tick.explain(hourly, ELEVEN)).verdict == "will run"
    for minute in (30, 60, 90):
        clock.time = ELEVEN.replace(hour=10 + minute // 60, minute=minute % 60)
        await plan_once(store)
    await run_one(store)
    assert [f"{each.scheduled_for:%H:%M} {each.status}" for each in await occurrences(store)] == [
        *("10:00 completed", "11:00 completed"),
    ]


async def test_what_stands_where_it_was_is_not_moved_there(tick: Everytick, hourly: str) -> None:
    with pytest.raises(InvalidInstant, match="stands already"):
        await tick.move(hourly, ELEVEN, ELEVEN)
    await tick.skip(hourly, ELEVEN)
    await tick.move(hourly, ELEVEN, ELEVEN)
    with pytest.raises(InvalidInstant, match="stands already"):
        await tick.move(hourly, ELEVEN, ELEVEN)
