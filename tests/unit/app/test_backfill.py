"""Backfills: the past by the definitions of its time, and what was moved is not filled again."""

from datetime import UTC, datetime, timedelta

import pytest

from everytick.app import Everytick
from everytick.errors import Conflict, NotFound
from everytick.schedules.codec import schedule
from everytick.stores.addresses import AnyStore
from tests.stores.acting import began, ended, everything, occurrences, plan_once, run_one
from tests.stores.clock import ManualClock


def at(hour: int, minute: int = 0, day: int = 16) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


@pytest.fixture
async def hourly(tick: Everytick, store: AnyStore) -> str:
    """An hourly job, known since 09:00 or so."""
    tick.job("0 * * * *", name="hourly")(lambda: None)
    await tick.sync()
    await plan_once(store)
    return "hourly"


async def pass_to(store: AnyStore, clock: ManualClock, moment: datetime) -> None:
    """Let time pass until then, planning and running what is due every ten minutes, a run a second."""
    while clock.time < moment:
        clock.time = min(clock.time + timedelta(minutes=10), moment)
        await plan_once(store)
        idle = 0
        while idle < 3:
            for claim in await store.claim(await everything(store), 1):
                idle = 0
                await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time))])
            clock.move(seconds=1)
            await plan_once(store)
            idle += 1


async def ran(store: AnyStore) -> list[str]:
    """When what ran was scheduled for, in order."""
    return [f"{each.scheduled_for:%d %H:%M}" for each in await occurrences(store) if each.status == "completed"]


# ------------------------------------------------------------------------------------------------ move and backfill


async def test_an_instant_that_is_still_to_run_elsewhere_is_not_filled(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str
) -> None:
    """Neither promised nor made, and it runs where it was moved to."""
    await tick.move(hourly, at(11), at(13, 30))
    await pass_to(store, clock, at(12, 10))
    asked = await tick.backfill(hourly, at(8, 30), at(11, 30))
    assert [f"{each:%H}" for each in asked.instants] == ["09"]
    await pass_to(store, clock, at(13, 40))
    assert await ran(store) == ["16 09:00", "16 10:00", "16 12:00", "16 13:00", "16 13:30"]
    assert (await tick.explain(hourly, at(13, 30))).verdict == "ran"


@pytest.mark.parametrize("to", [at(13, 30), at(10, 20)])
async def test_an_instant_that_ran_elsewhere_is_not_promised(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str, to: datetime
) -> None:
    """Whether it ran later or earlier than it was named for."""
    await tick.move(hourly, at(11), to)
    await pass_to(store, clock, at(13, 40))
    before = await ran(store)
    for dry in (True, False):
        asked = await tick.backfill(hourly, at(10, 30), at(11, 30), dry_run=dry)
        assert asked.instants == ()
    await pass_to(store, clock, at(13, 50))
    assert await ran(store) == before
    again = await tick.backfill(hourly, at(10, 30), at(11, 30), again=True, dry_run=True)
    assert again.instants == (at(11),)


async def test_what_was_skipped_by_hand_can_be_filled(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str
) -> None:
    await tick.skip(hourly, at(11))
    await pass_to(store, clock, at(12, 10))
    asked = await tick.backfill(hourly, at(10, 30), at(11, 30))
    assert asked.instants == (at(11),)
    await pass_to(store, clock, at(12, 20))
    assert "16 11:00" in await ran(store)


# --------------------------------------------------------------------------------------- the definition of its time


async def test_a_backfill_names_instants_by_the_definition_of_their_time(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str
) -> None:
    """Planning.md, Ids: before the first version by the first; an instant at the moment of an edit is the old one's."""
    await tick.pause(hourly)
    clock.time = at(12)
    await tick.update(hourly, schedule=schedule("*/20 * * * *"), detach=True)
    clock.time = at(13)
    await tick.update(hourly, schedule=schedule("15 * * * *"), detach=True)
    clock.time = at(14, 30)
    await tick.resume(hourly)
    await plan_once(store)
    wanted = ["07:00", "08:00", "09:00", "10:00", "11:00", "12:00", "12:20", "12:40", "13:00", "13:15", "14:15"]
    asked = await tick.backfill(hourly, at(6, 30), at(14, 30))
    assert [f"{each:%H:%M}" for each in asked.instants] == wanted
    await pass_to(store, clock, at(14, 50))
    assert [each.removeprefix("16 ") for each in await ran(store)] == wanted
    covers = {each.scheduled_for: each.covers_after for each in await occurrences(store)}
    assert (covers[at(12)], covers[at(12, 20)], covers[at(13, 15)]) == (at(11), at(12), at(12, 15))


async def test_a_backfill_names_them_by_the_newest_definition_if_asked_to(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str
) -> None:
    clock.time = at(12)
    await tick.update(hourly, schedule=schedule("30 * * * *"), detach=True)
    clock.time = at(12, 10)
    await plan_once(store)
    asked = await tick.backfill(hourly, at(7), at(9), as_of="now")
    assert [f"{each:%H:%M}" for each in asked.instants] == ["07:30", "08:30"]
    await pass_to(store, clock, at(12, 20))
    assert [each for each in await ran(store) if each < "16 09"] == ["16 07:30", "16 08:30"]
    with pytest.raises(ValueError, match="as_of"):
        await tick.backfill(hourly, at(7), at(9), as_of="tomorrow")  # type: ignore[arg-type]


async def test_a_backfill_reaches_across_more_versions_than_a_plan_sees(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str
) -> None:
    """Each of forty versions names one instant of its own hour; the plan takes them a few at a time."""
    await tick.pause(hourly)
    wanted = []
    clock.time = at(10)
    for hour in range(40):
        await tick.update(hourly, schedule=schedule(f"{hour + 5} * * * *"), detach=True)
        clock.move(minutes=hour + 5)
        wanted.append(clock.time)
        clock.move(minutes=55 - hour)
        await plan_once(store)
    await tick.resume(hourly)
    await plan_once(store)
    asked = await tick.backfill(hourly, at(10, 1), clock.time)
    assert list(asked.instants) == wanted
    await pass_to(store, clock, clock.time + timedelta(minutes=3))
    assert [each.scheduled_for for each in await occurrences(store) if each.cause == "backfill"] == wanted


# ------------------------------------------------------------------------------------------- history and what is in it


async def _down(tick: Everytick, store: AnyStore, clock: ManualClock) -> None:
    """An outage from 09:00 until 14:10: of the late instants only the last one runs."""
    clock.time = at(10, 10)
    await plan_once(store)
    await run_one(store)
    clock.time = at(14, 10)
    await plan_once(store)
    await run_one(store)


async def test_history_lists_what_was_filled_once(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str
) -> None:
    """F17: the occurrence, not what was said of the instant before; also where only skipped ones are asked for."""
    await _down(tick, store, clock)
    assert [f"{each.scheduled_for:%H}" for each in await tick.history(hourly, status="skipped")] == ["13", "12", "11"]
    await tick.backfill(hourly, at(11, 30), at(12, 30))
    await pass_to(store, clock, at(14, 20))
    found = [(f"{each.scheduled_for:%H}", str(each.status)) for each in await tick.history(hourly)]
    assert found == [
        ("14", "completed"),
        ("13", "skipped"),
        ("12", "completed"),
        ("11", "skipped"),
        ("10", "completed"),
    ]
    assert [f"{each.scheduled_for:%H}" for each in await tick.history(hourly, status="skipped")] == ["13", "11"]
    pages = [f"{each.scheduled_for:%H}" async for each in await tick.history(hourly, limit=1)]
    assert pages == ["14", "13", "12", "11", "10"]


async def test_history_goes_on_past_what_was_filled(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str
) -> None:
    """F17: the newest ten of a long outage were filled; the older ones are still shown, page by page."""
    clock.time = at(10, 10, day=18)
    await plan_once(store)
    asked = await tick.backfill(hourly, at(0, 0, day=18), at(9, 30, day=18))
    assert len(asked.instants) == 9
    await pass_to(store, clock, at(10, 30, day=18))
    found = [each async for each in await tick.history(hourly, status="skipped", limit=3)]
    assert len(found) == len({each.id for each in found}) == 39
    assert found[0].scheduled_for == at(0, day=18)


async def test_a_moved_instant_is_listed_where_it_ran(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str
) -> None:
    """F17: until then its old place says where it will."""
    await tick.move(hourly, at(10), at(11, 30))
    await pass_to(store, clock, at(10, 30))
    [gone] = [each for each in await tick.history(hourly) if each.scheduled_for == at(10)]
    assert gone.reason is not None
    assert gone.reason.startswith("moved, to ")
    await pass_to(store, clock, at(11, 40))
    found = [(f"{each.scheduled_for:%H:%M}", each.id) for each in await tick.history(hourly)]
    assert [when for when, _ in found] == ["11:30", "11:00"]
    assert found[0][1] == gone.id


@pytest.mark.parametrize("how", ["skipped", "missed"])
async def test_replaying_what_did_not_run_fills_it(
    tick: Everytick, store: AnyStore, clock: ManualClock, how: str
) -> None:
    """F19: it does what a backfill of that instant does, and answers with that instant's own occurrence."""
    tick.job("0 * * * *", name="hourly", recovery="execute_last" if how == "skipped" else "mark_as_missed")(
        lambda: None
    )
    await tick.sync()
    await plan_once(store)
    await _once_then_down(store, clock)
    [entry] = [each for each in await tick.history("hourly", status=how) if each.scheduled_for == at(12)]
    handle = await tick.replay(entry.id, reason="it matters after all", by="ada")
    assert handle.id == entry.id
    seen = (await tick.occurrence(handle.id)).occurrence
    assert (seen.status, seen.scheduled_for, seen.cause) == ("pending", at(12), "backfill")
    await pass_to(store, clock, at(14, 20))
    made = (await tick.occurrence(handle.id)).occurrence
    assert (made.status, made.cause) == ("completed", "backfill")
    assert (made.reason or "").startswith("asked for, by ada, it matters after all")
    assert (made.covers_after, made.covers_through) == (at(11), at(12))


async def _once_then_down(store: AnyStore, clock: ManualClock) -> None:
    clock.time = at(10)
    await plan_once(store)
    await run_one(store)
    clock.time = at(14, 10)
    await plan_once(store)


async def test_replaying_what_did_not_run_can_be_canceled_before_it_is_planned(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str
) -> None:
    """F19."""
    await _down(tick, store, clock)
    [entry] = [each for each in await tick.history(hourly, status="skipped") if each.scheduled_for == at(12)]
    handle = await tick.replay(entry.id)
    assert await tick.cancel(handle.id)
    assert (await handle.wait(timeout="60s")).status == "canceled"
    [other] = [each for each in await tick.history(hourly, status="skipped") if each.scheduled_for == at(13)]
    with pytest.raises(Conflict, match="has not run"):
        await tick.replay(other.id, from_task="main")


async def test_replaying_what_a_pause_holds_back_fills_it(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str
) -> None:
    """F19: the pause goes on, and no plan has written its instants down yet."""
    await tick.pause(hourly)
    clock.time = at(12, 10)
    await plan_once(store)
    [entry] = [each for each in await tick.history(hourly) if each.scheduled_for == at(11)]
    handle = await tick.replay(entry.id)
    await plan_once(store)
    assert (await run_one(store)).occurrence.id == handle.id == entry.id


async def test_what_was_moved_and_is_still_to_run_is_not_replayed(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str
) -> None:
    """F19."""
    await tick.move(hourly, at(10), at(13, 30))
    await pass_to(store, clock, at(12, 10))
    [entry] = [each for each in await tick.history(hourly) if each.scheduled_for == at(10)]
    with pytest.raises(Conflict, match="moved to 2026-11-16T13:30"):
        await tick.replay(entry.id)


async def test_an_id_that_nothing_has_is_not_found(tick: Everytick, hourly: str) -> None:
    with pytest.raises(NotFound):
        await tick.replay("occ_00000000-0000-5000-8000-000000000000")
