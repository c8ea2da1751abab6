"""The runs to come of jobs with a horizon: written by each plan, for people and SQL; no plan reads them."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from everytick.domain.changes import Put, Remove
from everytick.domain.config import Level, overrides
from everytick.domain.facts import Amend, Fact, Move, Pause, Reschedule, Resume, Skip, Undo, UndoReschedule
from everytick.domain.lookups import ComingRuns
from everytick.domain.upcoming import Coming, ComingRun, Mark, coming, coming_runs
from everytick.errors import InvalidPolicies
from tests.stores.acting import AnyStore, job, occurrences, plan_once, put, remove, run_one
from tests.stores.clock import START, ManualClock

HOUR = timedelta(hours=1)


def at(hour: int, minute: int = 0) -> datetime:
    return START.replace(hour=hour, minute=minute)


async def shown(store: AnyStore, job_id: str) -> list[datetime]:
    found = (await store.ask(ComingRuns([job_id]))).get(job_id, Coming(()))
    return [run.at for run in found.runs]


async def test_a_plan_writes_down_so_many_runs_to_come(store: AnyStore, clock: ManualClock) -> None:
    """Each tick drops the one that is decided and adds one; they are no occurrences."""
    stored = await put(store, job(horizon=3))
    assert await shown(store, stored.job_id) == []
    await plan_once(store)
    assert await shown(store, stored.job_id) == [at(10), at(11), at(12)]
    assert await occurrences(store) == []
    clock.move(hours=1)
    await plan_once(store)
    assert await shown(store, stored.job_id) == [at(11), at(12), at(13)]
    [made] = await occurrences(store)
    assert made.scheduled_for == at(10)


async def test_a_horizon_of_a_time_is_counted_from_the_next_run(store: AnyStore, clock: ManualClock) -> None:
    """Until the next plan all that lies within that time from now is there."""
    stored = await put(store, job(horizon="2h"))
    await plan_once(store)
    assert await shown(store, stored.job_id) == [at(10), at(11), at(12)]
    yearly = await put(store, job("yearly", "0 0 1 1 *", horizon="2h"))
    await plan_once(store)
    assert len(await shown(store, yearly.job_id)) == 1


async def test_a_job_without_a_horizon_writes_nothing(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job())
    await plan_once(store)
    assert await store.ask(ComingRuns([stored.job_id, "job_none"])) == {}


async def test_the_runs_follow_what_people_say(store: AnyStore, clock: ManualClock) -> None:
    """B20: skips, moves, amendments, reschedules and pauses, each after the next plan, with who and why."""
    stored = await put(store, job(horizon=3))
    own = overrides(Level.OCCURRENCE, {"payload": {"pages": 3}, "priority": 5})
    day = timedelta(days=1)
    said: list[tuple[Fact, list[datetime]]] = [
        (Skip(at(10), "release", "ada"), [at(11), at(12), at(13)]),
        (Move(at(11), at(11, 20), "backup", "ada"), [at(11, 20), at(12), at(13)]),
        (Amend(at(12), own, "audit", "ada"), [at(11, 20), at(12), at(13)]),
        (Undo(at(10), by="ada"), [at(10), at(11, 20), at(12)]),
        (Pause(by="ada"), []),
        (Resume("ada"), [at(10), at(11, 20), at(12)]),
        (Pause(START + day), [at(10) + day, at(11) + day, at(12) + day]),
        (Resume(), [at(10), at(11, 20), at(12)]),
        (Reschedule(at(10, 30), "bob"), [at(10, 30), at(11), at(11, 20)]),
        (UndoReschedule(at(10, 30)), [at(10), at(11, 20), at(12)]),
    ]
    for fact, expected in said:
        assert (await store.request(stored.job_id, fact)).changed
        await plan_once(store)
        if not isinstance(fact, Reschedule):
            assert await shown(store, stored.job_id) == expected, fact
    [_, moved, amended] = (await store.ask(ComingRuns([stored.job_id])))[stored.job_id].runs
    assert moved == ComingRun(at(11, 20), at(11), Mark.MOVED, "by ada (backup)")
    assert amended == ComingRun(at(12), at(12), Mark.AMENDED, "by ada (audit)", own)


async def test_the_runs_follow_edits_and_go_with_the_horizon_or_the_job(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job(horizon=2))
    await plan_once(store)
    await store.apply([Put(job("report", "30 * * * *", horizon=2))])
    await plan_once(store)
    assert await shown(store, stored.job_id) == [at(9, 30), at(10, 30)]
    await store.apply([Put(job("report", "30 * * * *", horizon=1, enabled=False))])
    await plan_once(store)
    assert await shown(store, stored.job_id) == []
    await store.apply([Put(job("report", "30 * * * *", horizon=1))])
    await plan_once(store)
    assert await shown(store, stored.job_id) == [at(9, 30)]
    await store.apply([Put(job("report", "30 * * * *"))])
    assert await store.ask(ComingRuns([stored.job_id])) == {}, "the edit itself forgets them"
    await store.apply([Put(job("report", horizon=1))])
    await plan_once(store)
    await store.apply([Remove("report")])
    await plan_once(store)
    assert await shown(store, stored.job_id) == []


async def test_a_purged_job_leaves_no_run_to_come(store: AnyStore, clock: ManualClock) -> None:
    """S0-133."""
    stored = await put(store, job(horizon=2))
    await plan_once(store)
    await remove(store, stored.job_id)
    assert await store.purge(stored.job_id)
    assert await store.ask(ComingRuns([stored.job_id])) == {}


async def test_what_follows_an_end_is_written_when_it_has_ended(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job(when="after: 10m", on_create="immediately", horizon=5))
    await plan_once(store)
    assert await shown(store, stored.job_id) == []
    await run_one(store)
    await plan_once(store)
    assert (await shown(store, stored.job_id))[0] == clock.time + timedelta(minutes=10)


async def test_the_edition_of_the_zone_tables_is_kept(store: AnyStore, clock: ManualClock) -> None:
    """B8: by which the instants were named."""
    from everytick.schedules.timezones import zone_data

    stored = await put(store, job(horizon=1))
    await plan_once(store)
    assert (await store.ask(ComingRuns([stored.job_id])))[stored.job_id].zone_data == zone_data().version


@pytest.mark.parametrize("horizon", [0, 1001, -1, "0s", True, "often", 1.5])
def test_a_horizon_that_makes_no_sense_is_refused(horizon: Any) -> None:
    with pytest.raises((InvalidPolicies, ValueError), match="horizon"):
        job(horizon=horizon)


async def test_the_longest_horizon_is_cut(store: AnyStore, clock: ManualClock) -> None:
    """At most 1,000 rows a job, and a tick writes few of them."""
    stored = await put(store, job(when="every 1s", horizon="30d"))
    await plan_once(store)
    assert len(await shown(store, stored.job_id)) == 1000
    snapshot = (await store.look([stored.job_id]))[stored.job_id]
    assert list(coming(snapshot, clock.time, timedelta(days=30))) == coming_runs(snapshot, clock.time, 1000)
