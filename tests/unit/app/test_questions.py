"""Questions through the public API, on memory and on SQLite."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from everytick.app import Everytick
from everytick.domain.decisions import Why
from everytick.domain.outcome import Failed
from everytick.errors import InvalidPolicies, NotFound
from everytick.schedules.cron import cron
from everytick.schedules.interval import every
from everytick.schedules.once import after_completion, once
from everytick.stores.addresses import AnyStore
from tests.stores.acting import began, claim_one, ended, everything, plan_once, remove, run_one
from tests.stores.clock import START, ManualClock


def work() -> None:
    """Do nothing."""


def at(hour: int, minute: int = 0, day: int = 0) -> datetime:
    return START.replace(hour=hour, minute=minute) + timedelta(days=day)


async def stored(tick: Everytick, schedule: Any = "0 * * * *", **policies: Any) -> None:
    tick.job(schedule, name="report", **policies)(work)
    await tick.sync()


# --------------------------------------------------------------------------------------------------- what is defined


async def test_jobs_are_those_of_the_store_of_all_owners(tick: Everytick, store: AnyStore) -> None:
    """S1-021: name, kind, schedule, when next, when last, enabled; S1-003: `flow` for more than one task."""
    await stored(tick)
    other = Everytick(store, name="bakery")
    bread = other.define("bread", every("1d"), enabled=False)
    bread.task(work)
    bread.task(name="again")(work)
    await other.sync()
    found = await tick.jobs()
    assert [(each.job.name, each.job.kind, each.job.enabled) for each in found] == [
        ("bread", "flow", False),
        ("report", "task", True),
    ]
    assert str((await tick.job("report")).job.schedule) == "cron: 0 * * * *; tz=UTC"
    with pytest.raises(NotFound, match="there is no job 'nobody'"):
        await tick.job("nobody")


async def test_many_jobs_stand_together_as_each_stands_alone(
    tick: Everytick, store: AnyStore, clock: ManualClock
) -> None:
    """Running, paused, disabled, over and fresh; one that was removed meanwhile is left out."""
    for name in ("runs", "held", "off", "fresh", "gone"):
        tick.job("0 * * * *", name=name, enabled=name != "off")(work)
    tick.job(once("2020-01-01T00:00:00Z"), name="over")(work)
    await tick.sync()
    await tick.pause("held")
    clock.move(hours=1)
    await tick.trigger("runs")
    await plan_once(store)
    claims = await store.claim(await everything(store), 10)
    assert "runs" in {each.job.name for each in claims}
    records = await tick.jobs()
    alone = {record.job.id: await tick.status(record.job.name) for record in records}

    assert await tick.statuses(records) == alone
    assert any(each.is_running for each in alone.values())
    await tick.remove("gone")
    assert len(await tick.statuses(records)) == len(records) - 1


async def test_a_status_is_read_from_the_store(tick: Everytick, store: AnyStore, clock: ManualClock) -> None:
    """S0-040, S0-046: is_running is a query of the store, never a flag in memory."""
    await stored(tick)
    before = await tick.status("report")
    assert (before.is_active, before.is_paused, before.is_enabled, before.is_running) == (True, False, True, False)
    assert (before.next_run, before.last_run, before.version) == (at(10), None, 1)
    clock.move(hours=1)
    await plan_once(store)
    assert not (await tick.status("report")).is_running
    claim = await claim_one(store)
    elsewhere = Everytick(store, name="another process")
    assert (await elsewhere.status("report")).is_running
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time))])
    assert not (await elsewhere.status("report")).is_running


async def test_the_last_run_and_the_next_are_told(tick: Everytick, store: AnyStore, clock: ManualClock) -> None:
    """S1-025."""
    await stored(tick)
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)
    status = await tick.status("report")
    assert (status.last_run, status.next_run, status.is_running) == (at(10), at(11), False)


async def test_a_paused_job_is_active_and_not_enabled(tick: Everytick) -> None:
    """S0-045: enabled is active and not paused; S0-043: its upcoming times are still known."""
    await stored(tick)
    await tick.pause("report", until=at(12))
    status = await tick.status("report")
    assert (status.is_active, status.is_paused, status.is_enabled) == (True, True, False)
    assert status.next_run == at(13)
    assert await tick.instants("report", at(9), at(12)) == [at(10), at(11), at(12)]
    await tick.pause("report")
    assert (await tick.status("report")).next_run is None
    await tick.resume("report")
    assert (await tick.status("report")).next_run == at(10)


async def test_a_disabled_job_is_not_enabled_and_has_no_next_run(tick: Everytick) -> None:
    """C-39."""
    await stored(tick)
    await tick.disable("report")
    status = await tick.status("report")
    assert (status.is_enabled, status.is_paused, status.next_run) == (False, False, None)


@pytest.mark.parametrize("how", ["policy", "schedule"])
async def test_a_job_is_active_inside_its_window(tick: Everytick, clock: ManualClock, how: str) -> None:
    """S0-045, S0-048: the start is when it becomes active, not the first run."""
    window: dict[str, Any] = {"start": at(11, 30), "end": at(13)}
    if how == "policy":
        await stored(tick, **window)
    else:
        await stored(tick, cron("0 * * * *", **window))
    assert not (await tick.status("report")).is_active
    assert await tick.next_runs("report") == [at(12), at(13)]
    clock.time = at(11, 30)
    assert (await tick.status("report")).is_active
    clock.time = at(13, 1)
    status = await tick.status("report")
    assert (status.is_active, status.is_enabled, status.next_run) == (False, False, None)


async def test_once_is_inactive_when_it_is_over_until_it_is_rescheduled(
    tick: Everytick, store: AnyStore, clock: ManualClock
) -> None:
    """S0-052: it fires once, and once more at the time it is rescheduled to."""
    await stored(tick, once(at(10)))
    assert (await tick.status("report")).is_active
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)
    assert not (await tick.status("report")).is_active
    await tick.reschedule("report", at(12))
    status = await tick.status("report")
    assert (status.is_active, status.next_run) == (True, at(12))
    for _ in range(2):
        clock.move(hours=2)
        await plan_once(store)
    assert [each.scheduled_for for each in (await tick.history("report")).occurrences] == [at(12), at(10)]
    await run_one(store)
    assert not (await tick.status("report")).is_active


async def test_what_follows_a_completion_is_active_and_its_next_run_depends_on_the_end(
    tick: Everytick, store: AnyStore, clock: ManualClock
) -> None:
    """C-07."""
    await stored(tick, after_completion("10m"))
    assert await tick.next_runs("report", 1) == [at(9, 10)]
    clock.move(minutes=10)
    await plan_once(store)
    await claim_one(store)
    status = await tick.status("report")
    assert (status.is_active, status.is_running, status.next_run) == (True, True, None)


async def test_next_runs_see_what_people_have_said(tick: Everytick) -> None:
    """Skips, moves, a reschedule and a pause with an end."""
    await stored(tick)
    await tick.skip("report", at(13))
    await tick.move("report", at(14), at(17, 30))
    await tick.reschedule("report", at(11, 30))
    await tick.pause("report", until=at(12))
    assert await tick.next_runs("report", 5) == [at(15), at(16), at(17), at(17, 30), at(18)]


async def test_a_removed_job_has_no_next_run(tick: Everytick, store: AnyStore) -> None:
    """Also while it may still come back."""
    await stored(tick)
    Everytick(store, name="shop").define("other", every("1h")).task(work)
    job_id = (await tick.job("report")).job.id
    await remove(store, job_id, retire_after=timedelta(minutes=10))
    with pytest.raises(NotFound):
        await tick.next_runs("report")


async def test_instants_exclude_their_start_and_include_their_end(tick: Everytick) -> None:
    """S0-040, S0-049, C-39: GetOccurrencesBetween."""
    await stored(tick)
    assert await tick.instants("report", at(10), at(12)) == [at(11), at(12)]
    assert await tick.instants("report", "2026-11-16T10:00:00Z", at(23), limit=1) == [at(11)]


async def test_an_occurrence_is_read_whole_and_nodes_are_told(
    tick: Everytick, store: AnyStore, clock: ManualClock
) -> None:
    """With its runs and attempts."""
    await stored(tick)
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store, Failed("boom"), node="node-7")
    [occurrence] = await tick.history("report")
    whole = await tick.occurrence(occurrence.id)
    assert [(task, attempt.number, attempt.error) for task, attempt in whole.attempts] == [("report", 1, "boom")]
    assert [node.id for node in await tick.nodes()] == ["node-7"]
    with pytest.raises(NotFound):
        await tick.occurrence("occ_00000000-0000-5000-8000-000000000000")


# ----------------------------------------------------------------------------------------------------- what has been


async def test_three_days_down_are_three_missed_entries(tick: Everytick, store: AnyStore, clock: ManualClock) -> None:
    """C-36, S0-021, S0-094: each is shown, though they are stored as one span."""
    await stored(tick, "0 10 * * *", recovery="mark_as_missed")
    clock.move(days=3, hours=2)
    await plan_once(store)
    page = await tick.history("report")
    assert [(each.scheduled_for, each.status) for each in page] == [(at(10, day=day), "missed") for day in (3, 2, 1, 0)]
    assert len(await tick.history("report", status="missed", through=at(10, day=1))) == 2
    assert len(await tick.history("report", status=["failed", "completed"])) == 0
    assert len(await tick.history("report", cause="trigger")) == 0
    assert len(await tick.history()) == 0


async def history_of_a_day(tick: Everytick, store: AnyStore, clock: ManualClock) -> None:
    """Every full hour: even ones run, odd ones are skipped behind the even ones."""
    await stored(tick)
    for _ in range(12):
        clock.move(hours=1)
        await plan_once(store)
        if claims := await store.claim(await everything(store), 1):
            clock.move(hours=1)
            await plan_once(store)
            now = await store.now()
            await store.commit_steps([(claims[0], ended(claims[0], began(claims[0], now), now))])


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 24, 100])
async def test_pages_of_the_history_hold_everything_once_and_in_order(
    tick: Everytick, store: AnyStore, clock: ManualClock, limit: int
) -> None:
    """Occurrences and single skipped instants, whatever the size of a page."""
    await history_of_a_day(tick, store, clock)
    first = await tick.history("report", limit=limit)
    assert len(first) == min(limit, 24)
    told = [(each.scheduled_for, str(each.status)) async for each in first]
    kinds = ("completed", "skipped")
    expected = [(START + timedelta(hours=hour), kinds[(hour + 1) % 2]) for hour in range(24, 0, -1)]
    assert told == expected
    assert (await tick.history("report", limit=100)).cursor is None
    assert repr(first).startswith("History(")


async def test_a_page_can_be_asked_for_by_its_cursor(tick: Everytick, store: AnyStore, clock: ManualClock) -> None:
    """As a web page does; one that names no page is refused."""
    await history_of_a_day(tick, store, clock)
    first = await tick.history("report", limit=10)
    second = await tick.history("report", limit=10, cursor=first.cursor)
    assert [each.scheduled_for for each in second] == [START + timedelta(hours=hour) for hour in range(14, 4, -1)]
    assert all(str(Why.OVERLAP) in (each.reason or "") for each in first if each.status == "skipped")
    with pytest.raises(NotFound, match="page of the history"):
        await tick.history("report", cursor="nonsense")
    with pytest.raises(InvalidPolicies, match="limit '0' must be from 1 to 1,000"):
        await tick.history("report", limit=0)
    with pytest.raises(InvalidPolicies, match="status 'done' is not known"):
        await tick.history("report", status="done")


async def test_a_pause_that_lasts_is_shown_before_it_is_written_down(tick: Everytick, clock: ManualClock) -> None:
    """S0-043: what falls in the pause is skipped, at once."""
    await stored(tick)
    await tick.pause("report", by="ada")
    clock.move(hours=3)
    page = await tick.history("report")
    assert [(each.scheduled_for, each.status, each.reason) for each in page] == [
        (at(hour), "skipped", "paused, by ada") for hour in (12, 11, 10)
    ]


async def test_the_history_of_a_removed_job_stays(tick: Everytick, store: AnyStore, clock: ManualClock) -> None:
    """C-22."""
    await stored(tick)
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)
    await tick.remove("report")
    await plan_once(store)
    assert [each.status for each in await tick.history("report")] == ["completed"]


async def test_the_history_names_every_instant_of_an_old_span_by_the_definition_it_was_skipped_under(
    tick: Everytick, store: AnyStore, clock: ManualClock
) -> None:
    tick.job("0 * * * *", name="report", recovery="mark_as_missed")(work)
    await tick.sync()
    begun = clock.time
    clock.move(hours=4, minutes=10)
    await plan_once(store)
    await tick.update("report", "0 0 1 1 *", detach=True)
    clock.move(hours=1)
    await plan_once(store)

    found = [each.scheduled_for for each in await tick.history("report", status="missed")]
    assert found == [begun + timedelta(hours=hours) for hours in (4, 3, 2, 1)]


async def test_a_job_that_was_stopped_is_not_called_failed(tick: Everytick) -> None:
    """Ctrl-C in the middle of a run cancels it: `list`, `show` and the API say what the history says."""
    begun = asyncio.Event()

    @tick.job("0 0 1 1 *")
    async def endless() -> None:
        begun.set()
        await asyncio.Event().wait()

    @tick.job("0 0 1 1 *")
    async def broken() -> None:
        raise ValueError("no")

    async with tick:
        assert (await tick.status("endless")).last_result is None
        failed = await tick.trigger("broken")
        await failed.wait(timeout="60s")
        await tick.trigger("endless")
        await begun.wait()
    results = {each.name: each.last_result for each in (await tick.statuses(await tick.jobs())).values()}
    assert results == {"endless": "canceled", "broken": "failed"}
    assert (await tick.status("endless")).last_result == "canceled"
