"""Runs asked for later through the public API, on memory and on SQLite (A9)."""

from datetime import datetime, timedelta

import pytest

from everytick.app import Everytick
from everytick.errors import InvalidDuration, InvalidInstant
from everytick.schedules.once import on_request
from everytick.stores.addresses import AnyStore
from tests.stores.acting import occurrences, plan_once, run_one, statuses
from tests.stores.clock import START, ManualClock

TEN_MINUTES = timedelta(minutes=10)
SOON = START + TEN_MINUTES


def remind(user: int, text: str = "hello") -> None:
    """Do nothing."""


def meet(at: str) -> None:
    """Do nothing; `at` is its own."""


@pytest.fixture
def yearly(tick: Everytick) -> Everytick:
    """An application whose job the schedule hardly ever runs."""
    tick.job("0 0 1 1 *", name="remind", payload={"user": 1})(remind)
    return tick


async def test_a_function_is_called_later_with_its_arguments(
    tick: Everytick, store: AnyStore, clock: ManualClock
) -> None:
    """A9: `at` and `after` say when, everything else is the function's."""
    job = tick.job(on_request(), name="remind")(remind)
    first = await job.trigger(user=7, at=SOON)
    second = await job.trigger(8, after="20m")
    await plan_once(store)
    assert await occurrences(store) == []
    clock.move(minutes=10)
    await plan_once(store)
    await run_one(store)
    ended = await first.wait(timeout="60s")
    assert (ended.status, ended.scheduled_for) == ("completed", SOON)
    assert ended.overrides.get("payload").read() == {"user": 7}
    clock.move(minutes=10)
    await plan_once(store)
    await run_one(store)
    assert (await second.wait(timeout="60s")).scheduled_for == SOON + TEN_MINUTES


async def test_a_parameter_of_this_name_is_the_functions_own(tick: Everytick, store: AnyStore) -> None:
    """A9: then `tick.trigger` says when."""
    job = tick.job("on request", name="meet")(meet)
    await job.trigger(at="noon")
    handle = await tick.trigger("meet", {"at": "noon"}, at=SOON)
    await plan_once(store)
    assert await statuses(store) == ["pending"]
    assert [run.id for run in await tick.upcoming("meet", 1)] == [handle.id]


async def test_upcoming_lists_it_beside_the_schedule_and_marks_it(yearly: Everytick) -> None:
    """A9: with the id to cancel it by, and who asked; next_run of the job stays the schedule's."""
    handle = await yearly.trigger("remind", {"user": 7}, after="10m", by="ada", reason="call back")
    new_year = datetime.fromisoformat("2027-01-01T00:00:00+00:00")
    asked, scheduled = await yearly.upcoming("remind", 2)
    assert (asked.at, asked.id, asked.detail, asked.is_asked_for) == (SOON, handle.id, "by ada, call back", True)
    assert (scheduled.at, scheduled.id, scheduled.is_asked_for) == (new_year, None, False)
    assert await yearly.next_runs("remind", 2) == [SOON, new_year]
    assert (await yearly.status("remind")).next_run == new_year


async def test_its_handle_cancels_it(yearly: Everytick, store: AnyStore, clock: ManualClock) -> None:
    """A9: before its time; then it never runs."""
    handle = await yearly.trigger("remind", {"user": 7}, at=SOON.isoformat())
    assert await handle.cancel("not needed")
    assert not await handle.cancel()
    clock.move(minutes=30)
    await plan_once(store)
    ended = await handle.wait(timeout="60s")
    assert (ended.status, ended.started_at) == ("canceled", None)
    assert ended.error == "canceled by code:shop: not needed"


async def test_explain_tells_it_before_and_after(yearly: Everytick, store: AnyStore, clock: ManualClock) -> None:
    """A9: that it will run and as what, that no node has planned it, and that it ran."""
    handle = await yearly.trigger("remind", {"user": 7}, at=SOON)
    to_come = await yearly.explain("remind", SOON)
    assert to_come.verdict == "will run"
    assert to_come.text.endswith(f"it will run then as {handle.id}; it was triggered")
    clock.move(minutes=10)
    waits = await yearly.explain("remind", SOON)
    assert (waits.verdict, "no node has planned it yet" in waits.text) == ("not decided yet", True)
    await plan_once(store)
    await run_one(store)
    ran = await yearly.explain("remind", SOON)
    assert (ran.verdict, "it was triggered" in ran.text) == ("ran", True)
    assert [each.id async for each in await yearly.history("remind")] == [handle.id]


async def test_what_makes_no_sense_is_refused(yearly: Everytick) -> None:
    """A9: both, a time without a zone, and no duration."""
    with pytest.raises(InvalidInstant, match="at and after both say when it runs: give one of them"):
        await yearly.trigger("remind", {"user": 7}, at=SOON, after="10m")
    with pytest.raises(InvalidInstant, match="zone"):
        await yearly.trigger("remind", {"user": 7}, at=SOON.replace(tzinfo=None))
    with pytest.raises(InvalidDuration):
        await yearly.trigger("remind", {"user": 7}, after="soon")


async def test_a_key_makes_it_once(yearly: Everytick) -> None:
    """A9: a repeated request of a web client asks for the same run."""
    first = await yearly.trigger("remind", {"user": 7}, after="10m", key="order-7")
    again = await yearly.trigger("remind", {"user": 7}, after="15m", key="order-7")
    assert first.id == again.id
    assert [run.at for run in await yearly.upcoming("remind", 1)] == [SOON]
