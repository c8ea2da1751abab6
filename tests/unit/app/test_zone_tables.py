"""Zone tables that change: runs to come that move are reported, and their jobs follow at once (B8, A6)."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from everytick.app import Everytick
from everytick.deciding.zone_moves import zone_move
from everytick.domain.lookups import ComingRuns
from everytick.domain.nodes import NodeFacts
from everytick.node.clock import NodeClock
from everytick.node.events import Event, Listeners
from everytick.node.settings import NodeSettings
from everytick.node.zone_watch import ZoneWatch, moved_runs
from everytick.schedules.cron import cron
from everytick.schedules.timezones import zone, zone_data
from everytick.stores.addresses import AnyStore
from tests.stores.acting import occurrences, plan_once
from tests.stores.clock import START, ManualClock

SOFIA = "Europe/Sofia"
HOUR = timedelta(hours=1)
OLD = NodeFacts("1.0", "3.11", "2019a (system)", "h", 7, 50, ("default",), START)
NEXT = datetime.fromisoformat("2026-11-17T00:30:00+00:00")


def work() -> None:
    """Do nothing."""


@pytest.fixture
def sofia() -> Iterator[None]:
    """Whatever a test does to the tables of Sofia is undone."""
    yield
    zone(SOFIA).take(ZoneInfo(SOFIA))


@pytest.fixture
async def stored(tick: Everytick, store: AnyStore, sofia: None) -> None:
    """Two jobs of a node with old tables, planned: at 02:30 in Sofia, which was half past midnight."""
    tick.job(cron("30 2 * * *", tz=SOFIA), name="nightly")(work)
    tick.job(cron("30 2 * * *", tz=SOFIA), name="shown", horizon=3)(work)
    tick.job("0 * * * *", name="hourly")(work)
    await tick.sync()
    await store.beat("old", [], OLD)
    await plan_once(store)


def watch(store: AnyStore, events: list[Event]) -> ZoneWatch:
    listeners = Listeners()
    listeners.listen(events.append)
    clock = NodeClock(lambda: 0.0)
    clock.learn(START, 0.0)
    return ZoneWatch(store, "new", clock, listeners, NodeSettings())


async def test_runs_that_other_tables_move_are_reported_and_followed_at_once(
    tick: Everytick, store: AnyStore, clock: ManualClock, stored: None, caplog: pytest.LogCaptureFixture
) -> None:
    """B8, A6: an hour earlier; by the wake of the old tables it would be an hour late."""
    assert await moved_runs(store) == []
    zone(SOFIA).take(ZoneInfo("Europe/Moscow"))
    events: list[Event] = []
    await watch(store, events).look()

    assert [(event.kind, event.job) for event in events] == [("runs_moved", "nightly"), ("runs_moved", "shown")]
    moved = f"from 2019a (system) to {zone_data().version}: {NEXT.isoformat()} moved to {(NEXT - HOUR).isoformat()}"
    assert moved in events[0].text
    assert "2026-11-19T00:30:00+00:00 moved to" in events[1].text
    assert "job 'nightly': the zone tables changed" in caplog.text
    assert (await tick.status("nightly")).next_run == NEXT - HOUR
    await plan_once(store)
    shown = (await store.ask(ComingRuns([(await tick.job("shown")).job.id]))).values()
    assert next(run.at for some in shown for run in some.runs) == NEXT - HOUR
    clock.time = NEXT - HOUR
    await plan_once(store)
    assert [each.late for each in await occurrences(store) if each.scheduled_for == NEXT - HOUR] == [False, False]
    assert await moved_runs(store) == []


async def test_a_graceful_job_runs_next_as_it_was(
    tick: Everytick, store: AnyStore, clock: ManualClock, stored: None
) -> None:
    """B8, S0-118: the next run at its old time, as a move that people see and may undo; the later ones by the new."""
    tick.job(cron("30 2 * * *", tz=SOFIA), name="calm", horizon=3, update_policy="graceful")(work)
    await tick.sync()
    await plan_once(store)
    zone(SOFIA).take(ZoneInfo("Europe/Moscow"))
    events: list[Event] = []
    await watch(store, events).look()

    [event] = [event for event in events if event.job == "calm"]
    assert event.text.endswith("by its update policy it runs at 2026-11-17T00:30:00+00:00 all the same")
    [first, second] = await tick.upcoming("calm", 2)
    assert (first.at, first.mark, first.detail) == (NEXT, "moved", "by new (the zone tables changed)")
    assert (second.at, second.mark) == (NEXT + 23 * HOUR, None)
    await plan_once(store)
    assert await moved_runs(store) == []


async def test_it_is_reported_once_and_again_only_if_a_living_node_has_other_tables(
    tick: Everytick, store: AnyStore, stored: None
) -> None:
    """A node with the old tables plans by them as long as it lives; the last look comes after its end."""
    zone(SOFIA).take(ZoneInfo("Europe/Moscow"))
    events: list[Event] = []
    watching = watch(store, events)
    await watching.look()
    zone(SOFIA).take(ZoneInfo(SOFIA))
    await plan_once(store)
    zone(SOFIA).take(ZoneInfo("Europe/Moscow"))
    await watching.round()
    assert len(events) == 2
    assert (await tick.status("nightly")).next_run == NEXT - HOUR
    await store.leave("old")
    await watching.round()
    zone(SOFIA).take(ZoneInfo(SOFIA))
    await plan_once(store)
    zone(SOFIA).take(ZoneInfo("Europe/Moscow"))
    await watching.round()
    assert (await store.get([(await tick.job("nightly")).job.id])).popitem()[1].next_run == NEXT


async def test_equal_tables_compare_nothing(store: AnyStore, clock: ManualClock, stored: None) -> None:
    """A start with the tables of all others asks for the nodes and no more."""
    same = replace(OLD, zone_data=f"{zone_data().version} (package)")
    await store.beat("old", [], same)
    zone(SOFIA).take(ZoneInfo("Europe/Moscow"))
    events: list[Event] = []
    await watch(store, events).look()
    assert events == []


async def test_a_job_that_is_due_or_knows_no_zone_is_left_out(
    tick: Everytick, store: AnyStore, clock: ManualClock, stored: None
) -> None:
    zone(SOFIA).take(ZoneInfo("Europe/Moscow"))
    await tick.skip("nightly", START.replace(hour=23, minute=30))
    assert [move.job for move in await moved_runs(store)] == ["shown"]
    hourly = (await tick.job("hourly")).job.id
    seen = (await store.look([hourly]))[hourly]
    assert zone_move(seen, [START + timedelta(minutes=7)], START) is None
