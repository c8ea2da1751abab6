"""What is kept of every task, run and attempt, and of the config that an occurrence ran with."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from everytick import schedule
from everytick.deciding.plan import plan
from everytick.domain.config import Level, overrides
from everytick.domain.facts import Pause, Trigger
from everytick.domain.ids import attempt_id, occurrence_id, run_id, task_id
from everytick.domain.job import define_job, define_task
from everytick.domain.outcome import Failed
from everytick.errors import EverytickError
from everytick.stores.base import Commit, NodeScope
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import (
    AnyStore,
    batch_of,
    began,
    claim_one,
    ended,
    job,
    occurrences,
    plan_once,
    put,
    remove,
    rename,
    run_one,
)
from tests.stores.clock import ManualClock
from tests.stores.people import Person, SqlStore, on_postgres, on_sqlite, read

FAR = "once: 2090-01-01T00:00:00Z"
"""Nothing of it is due while a test runs on the real clock."""


async def test_a_task_record_holds_all_that_is_asked_of_it(store: AnyStore, clock: ManualClock) -> None:
    """S0-003, S0-059: id, job, name, order, and of its config only what it sets itself."""
    own = {"failure": "continue", "task_timeout": "1m"}
    tasks = [define_task("etl", "extract"), define_task("etl", "load", policies=own)]
    stored = await put(store, define_job("etl", schedule("0 * * * *"), policies={"priority": 3}, tasks=tasks))

    extract, load = (await store.get([stored.job_id]))[stored.job_id].job.tasks

    assert (extract.id, load.id) == (task_id(stored.job_id, "extract"), task_id(stored.job_id, "load"))
    assert {extract.job_id, load.job_id} == {stored.job_id}
    assert [(each.name, each.order) for each in (extract, load)] == [("extract", 1), ("load", 2)]
    assert (extract.overrides, load.overrides) == (overrides(Level.TASK, {}), overrides(Level.TASK, own))
    assert {(each.created_at, each.updated_at) for each in (extract, load)} == {(clock.time, clock.time)}


async def test_runs_and_attempts_hold_all_that_is_asked_of_them(store: AnyStore, clock: ManualClock) -> None:
    """S0-005, S0-006, S0-014, S0-089: each retry adds a record; the run counts them and keeps the last error."""
    stored = await put(store, job(retry={"max": 2, "interval": "1m"}))
    clock.move(hours=1)
    await plan_once(store)
    moments = []
    kept: tuple[object, ...] = ()
    for number in (1, 2, 3):
        claim = await claim_one(store)
        begun = clock.time
        clock.move(seconds=5)
        step = ended(claim, began(claim, begun), clock.time, Failed(f"error {number}"))
        assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]
        moments.append((begun, clock.time))
        whole = await store.whole(claim.occurrence.id)
        assert whole.attempts[:-1] == kept, "a retry leaves the records before it alone"
        kept = whole.attempts
        [run] = whole.runs
        assert (run.attempts, run.retry_count, run.error) == (number, number - 1, f"error {number}")
        clock.move(minutes=1)

    [run] = whole.runs
    main = task_id(stored.job_id, "main")
    assert (run.id, run.occurrence_id, run.task_id) == (run_id(claim.occurrence.id, main), claim.occurrence.id, main)
    assert (run.status, run.started_at, run.ended_at) == ("failed", moments[0][0], moments[-1][1])
    attempts = [each for _, each in whole.attempts]
    assert [each.id for each in attempts] == [attempt_id(run.id, number) for number in (1, 2, 3)]
    assert {each.run_id for each in attempts} == {run.id}
    assert [(each.number, each.status, each.error) for each in attempts] == [
        (number, "failed", f"error {number}") for number in (1, 2, 3)
    ]
    assert [(each.started_at, each.ended_at) for each in attempts] == moments


async def test_a_crashed_recovery_that_is_begun_again_makes_the_same_occurrences_once(
    store: AnyStore, clock: ManualClock
) -> None:
    """S0-090, S0-098, S0-013, S1-033: five missed hours, each under its own id, whichever node commits."""
    stored = await put(store, job(recovery="execute_all"))
    missed = [clock.time + timedelta(hours=number) for number in range(1, 6)]
    clock.move(hours=5, minutes=30)
    async with store.due(NodeScope("crashes"), 1) as batch:
        [snapshot] = batch.snapshots
        decided = plan(snapshot, batch.now)
    assert await occurrences(store) == [], "the node that decided has died before it committed"

    assert await plan_once(store) == [Commit.COMMITTED]
    made = await occurrences(store)
    late = await store.commit_plans(batch_of(clock.time, snapshot), [decided])
    assert list(late.answers) == [Commit.STALE]
    await plan_once(store)

    assert await occurrences(store) == made
    assert [each.id for each in made] == [occurrence_id(stored.job_id, instant) for instant in missed]
    assert [each.id for each in decided.creations] == [each.id for each in made], "both nodes made the same ids"
    assert all(each.is_recovery_run for each in made)


@pytest.fixture(params=["sqlite", "postgres"])
async def beside(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[SqlStore, Person]]:
    if request.param == "sqlite":
        async with on_sqlite(tmp_path) as both:
            yield both
        return
    async with on_postgres(request.getfixturevalue("postgres")) as both:
        yield both


async def test_an_ended_occurrence_keeps_the_config_it_ran_with(beside: tuple[SqlStore, Person]) -> None:
    """S0-080, S0-004: whatever the job is made afterwards."""
    store, person = beside
    for priority in (3, 4):
        written = job(when=FAR, priority=priority, retry={"max": priority, "interval": "1m"})
        stored = await put(store, written)
        await store.request(stored.job_id, Trigger(str(priority)))
        await plan_once(store)
        await run_one(store)
    await put(store, job(when=FAR, priority=9))

    rows = await person.ask("select version, config from effective_config order by version")

    assert [row["version"] for row in rows] == [1, 2]
    assert [read(row["config"])["priority"] for row in rows] == [3, 4]
    assert [read(row["config"])["retry"]["max"] for row in rows] == [3, 4]


async def test_the_row_of_a_schedule_holds_all_that_is_asked_of_it(beside: tuple[SqlStore, Person]) -> None:
    """S1-003: id, name, kind, expression, next and last run, last enqueue, enabled, and its times; one row a name."""
    store, person = beside
    begun = await store.now()
    stored = await put(store, job("one", FAR))
    await put(store, job("flow", FAR, tasks=("a", "b"), enabled=False))
    await store.request(stored.job_id, Trigger("k"))
    await plan_once(store)
    await run_one(store)

    columns = "id, name, kind, schedule, next_run, last_run, last_enqueued, enabled, created_at, updated_at"
    flow, one = await person.ask(f"select {columns} from jobs order by name")

    assert (one["id"], one["name"], one["kind"]) == (stored.job_id, "one", "task")
    assert (one["schedule"], bool(one["enabled"])) == (FAR, True)
    assert (flow["kind"], bool(flow["enabled"])) == ("flow", False)
    assert (flow["last_run"], flow["last_enqueued"], flow["next_run"]) == (None, None, None)
    for moment in ("next_run", "last_run", "last_enqueued", "created_at", "updated_at"):
        found = await person.time(f"select {moment} from jobs where name = 'one'")
        assert found is not None
        assert found >= begun
    with pytest.raises(EverytickError):
        await rename(store, stored.job_id, "flow")
    assert [row["name"] for row in await person.ask("select name from jobs order by name")] == ["flow", "one"]


async def test_a_purged_job_leaves_no_row_in_any_table(beside: tuple[SqlStore, Person]) -> None:
    """S0-133: neither tasks nor versions, occurrences, runs, attempts, spans, requests or wakes."""
    store, person = beside
    before = await _rows(store, person)
    stored = await put(store, job(when=FAR, tasks=("main",)))
    await put(store, job(when=FAR, priority=2))
    for outcome in (Failed("boom"), None):
        await store.request(stored.job_id, Trigger(str(outcome)))
        await plan_once(store)
        await run_one(store, outcome)
    await store.request(stored.job_id, Pause(reason="gone"))
    await store.request(stored.job_id, Trigger("unanswered"))
    assert await _rows(store, person) != before
    await remove(store, stored.job_id)

    while not await store.purge(stored.job_id):
        pass

    assert await _rows(store, person) == before
    # What a band did is told for good; of what can still be looked up, nothing is counted.
    assert await person.one("select coalesce(sum(kept), 0) from bucket") == 0


async def _rows(store: SqlStore, person: Person) -> dict[str, int]:
    """Return how many rows every table holds, but for those about nodes and for the texts of needs that jobs share.

    The counts of bands name no job, and go on telling how much ran.
    """
    if isinstance(store, SqliteStore):
        listing = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
    else:
        listing = "select tablename as name from pg_tables where schemaname = current_schema()"
    tables = sorted(
        row["name"] for row in await person.ask(listing) if not row["name"].startswith(("node", "needs", "bucket"))
    )
    return {table: await person.one(f"select count(*) from {table}") for table in tables}
