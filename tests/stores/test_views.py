"""The views for people: the same names and columns on both SQL stores, true answers, and what may be written."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from everytick.deciding.plan import plan
from everytick.domain.backfills import BackfillOrder
from everytick.domain.decisions import Why
from everytick.domain.facts import Move, Pause, PlanBackfill, Reschedule, Resume, Skip, Trigger
from everytick.domain.ids import occurrence_id
from everytick.domain.job import Job
from everytick.domain.lookups import Promises
from everytick.domain.policies import Overlap
from everytick.domain.promise_policies import PromiseKind
from everytick.domain.promises import Breach, Judgement
from everytick.domain.snapshots import Missed
from everytick.domain.upcoming import next_run
from everytick.stores.base import Commit, JobRecord, NodeScope
from everytick.stores.definitions import write_definition
from tests.servers.launch import Server
from tests.stores.acting import FAILED, everything, job, plan_once, put, remove, run_one
from tests.stores.people import Person, SqlStore, on_postgres, on_sqlite, read

VIEWS = (
    "jobs",
    "occurrences",
    "task_runs",
    "attempts",
    "skipped_spans",
    "coming_runs",
    "adjustments",
    "effective_config",
    "nodes",
    "promises",
    "breaches",
)
HOUR = timedelta(hours=1)


@pytest.fixture(params=["sqlite", "postgres"])
async def beside(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[SqlStore, Person]]:
    if request.param == "sqlite":
        async with on_sqlite(tmp_path) as both:
            yield both
        return
    async with on_postgres(request.getfixturevalue("postgres")) as both:
        yield both


@cache
def _minute() -> int:
    """Return the minute that is half an hour away; it stays the same throughout a test."""
    return (datetime.now(UTC) + timedelta(minutes=30)).minute


@pytest.fixture(autouse=True)
def _this_minute() -> None:
    _minute.cache_clear()


def hourly(name: str = "report", **policies: Any) -> Job:
    """Due once an hour, half an hour from now: nothing of it is due while a test runs."""
    return job(name, f"{_minute()} * * * *", **policies)


async def test_the_views_have_the_same_names_and_columns_on_both_stores(tmp_path: Path, postgres: Server) -> None:
    """W2, C-44: what is learned on one of them holds on the other."""
    async with on_sqlite(tmp_path) as (_, beside_sqlite), on_postgres(postgres) as (_, beside_postgres):
        for view in VIEWS:
            columns = await beside_sqlite.columns(view)
            assert columns == await beside_postgres.columns(view), view
            assert columns
        jobs = await beside_sqlite.columns("jobs")
    assert {"created_at", "updated_at", "last_success", "last_enqueued", "paused", "paused_since"} <= {*jobs}


async def test_sql_says_when_a_job_runs_next_as_the_scheduler_does(beside: tuple[SqlStore, Person]) -> None:
    """W1, S1-023, S1-025: after every verb, without a node and without a plan in between."""
    store, person = beside
    id_ = (await put(store, hourly())).job_id

    async def agreed() -> datetime | None:
        said = await person.time("select next_run from jobs")
        assert said == next_run((await store.look([id_]))[id_], await store.now())
        return said

    first = await agreed()
    assert first is not None
    await store.request(id_, Skip(first))
    assert await agreed() == first + HOUR
    await store.request(id_, Move(first, first + timedelta(minutes=40)))
    assert await agreed() == first + timedelta(minutes=40)
    await store.request(id_, Reschedule(first + timedelta(minutes=330)))
    assert await agreed() == first + timedelta(minutes=40)
    await store.request(id_, Pause(until=first + timedelta(minutes=400)))
    assert await agreed() == first + 7 * HOUR
    await store.request(id_, Pause())
    assert await agreed() is None
    await store.request(id_, Resume())
    await put(store, hourly(enabled=False))
    assert await agreed() is None
    await remove(store, id_)
    assert await agreed() is None
    assert not await person.one("select enabled from jobs")


async def test_a_job_says_whether_it_is_paused_and_since_when(beside: tuple[SqlStore, Person]) -> None:
    """W2, C-18: a pause that is over is none."""
    store, person = beside
    id_ = (await put(store, hourly())).job_id
    assert [*(await person.ask("select paused, paused_since, paused_until from jobs"))[0].values()] == [0, None, None]
    begun = await store.now()
    until = (begun + HOUR).replace(microsecond=250)
    await store.request(id_, Pause(until=until))
    since = await person.time("select paused_since from jobs")
    assert since is not None
    assert begun <= since <= await store.now()
    assert await person.time("select paused_until from jobs") == until
    assert await person.one("select paused from jobs")
    await store.request(id_, Resume())
    assert not await person.one("select paused from jobs")


async def test_the_last_run_enqueued_is_the_newest_by_its_making(beside: tuple[SqlStore, Person]) -> None:
    """W2, S1-003: after a backfill that is an older instant; created_at and updated_at are the job's own."""
    store, person = beside
    id_ = (await put(store, hourly())).job_id
    made = await store.now()
    await store.request(id_, Trigger("now"))
    await plan_once(store)
    first = await person.time("select last_enqueued from jobs")
    order = BackfillOrder("fill", made - 2 * HOUR, made - HOUR, overlap=Overlap.ALLOW)
    await store.request(id_, PlanBackfill(order, approved=True))
    await plan_once(store)
    newest = await person.time("select max(created_at) from occurrences where cause = 'backfill'")
    assert first is not None
    assert newest is not None
    assert first < newest == await person.time("select last_enqueued from jobs")
    await put(store, hourly(priority=1))
    created, updated = [await person.time(f"select {name} from jobs") for name in ("created_at", "updated_at")]
    assert created is not None
    assert updated is not None
    assert created <= made <= updated


async def test_runs_attempts_and_config_are_told_in_words(beside: tuple[SqlStore, Person]) -> None:
    """S0-003, S0-005, S0-006, S0-080: with the times of their making."""
    store, person = beside
    id_ = (await put(store, hourly(priority=3))).job_id
    await store.request(id_, Trigger("k"))
    await plan_once(store)
    await run_one(store, FAILED)
    [run] = await person.ask("select status, attempts, created_at, updated_at from task_runs")
    assert (run["status"], run["attempts"]) == ("failed", 1)
    assert run["created_at"] == await person.one("select created_at from occurrences")
    assert run["updated_at"] >= run["created_at"]
    [attempt] = await person.ask("select number, status, created_at, started_at from attempts")
    assert (attempt["number"], attempt["status"]) == (1, "failed")
    assert attempt["created_at"] == attempt["started_at"]
    [config] = await person.ask("select config, effective from effective_config")
    assert read(config["config"])["priority"] == 3
    assert read(config["effective"])["priority"] == {"origin": "job", "value": 3}
    assert await person.one("select holds from nodes") == 0


# ------------------------------------------------------------------------------------------------------------ writing


def _stood(record: JobRecord) -> tuple[object, ...]:
    """How a job stands, without its name and times."""
    pause = record.pause and (record.pause.until, record.pause.missed)
    same = replace(record.job, name="same")
    return write_definition(same), record.job.version, record.revision, pause, record.wake_at is not None


async def _is_due(store: SqlStore, job_id: str) -> list[object]:
    """What becomes of the next two hours of a job, were a node to look then."""
    snapshot = (await store.look([job_id]))[job_id]
    made = plan(snapshot, await store.now() + 2 * HOUR)
    return [*(each.status for each in made.creations), *(each.why for each in made.spans)]


@pytest.mark.parametrize("policies", [{}, {"priority": 4, "max_queued": 5}, {"enabled": True, "tags": ["a", "ä"]}])
async def test_enabled_is_written_as_disable_and_enable_do_it(
    beside: tuple[SqlStore, Person], policies: dict[str, Any]
) -> None:
    """C-44, S1-024, the first seed's own way to pause: a new version, the same rows as the verb leaves."""
    store, person = beside
    by_verb, by_sql = [(await put(store, hourly(name, **policies))).job_id for name in ("verb", "sql")]
    for id_ in (by_verb, by_sql):
        await store.request(id_, Trigger("waits"))
    await plan_once(store)
    for enabled in (False, True):
        await put(store, hourly("verb", **{**policies, "enabled": enabled}))
        await person.ask(f"update jobs set enabled = {enabled} where name = 'sql'")
        found = await store.get([by_verb, by_sql])
        assert _stood(found[by_sql]) == _stood(found[by_verb])
        assert await _is_due(store, by_sql) == await _is_due(store, by_verb)
        shown = await person.ask("select enabled, version, revision from jobs order by name")
        assert shown[0] == shown[1]
        assert bool(shown[0]["enabled"]) is enabled
        taken = await person.ask("select version, status, priority, queue from occurrences order by job")
        assert taken[0] == taken[1]
    assert (await put(store, hourly("sql", **{**policies, "enabled": True}))).changed is False, "written as we write it"


async def test_a_retry_waits_while_its_job_is_disabled_by_sql(beside: tuple[SqlStore, Person]) -> None:
    """C-44, F8: what waits for a retry can be claimed only once the job is enabled again."""
    store, person = beside
    stored = await put(store, job(retry={"max": None, "interval": "1h"}))
    await store.request(stored.job_id, Trigger("fails"))
    await plan_once(store)
    await run_one(store, FAILED)
    assert (await store.ahead(NodeScope("node-1"))).ready_at is not None

    await person.ask("update jobs set enabled = false")
    assert (await store.ahead(NodeScope("node-1"))).ready_at is None
    await person.ask("update jobs set enabled = true")
    assert (await store.ahead(NodeScope("node-1"))).ready_at is not None


async def test_paused_is_written_as_pause_and_resume_do_it(beside: tuple[SqlStore, Person]) -> None:
    """C-44, C-18: what the schedule made and no node claimed waits, and goes on afterwards."""
    store, person = beside
    begun = [await put(store, job(name, "* * * * *", on_create="if_matching_now")) for name in ("verb", "sql")]
    by_verb, by_sql = (each.job_id for each in begun)
    await plan_once(store)
    await store.request(by_verb, Pause())
    await person.ask("update jobs set paused = true where name = 'sql'")
    found = await store.get([by_verb, by_sql])
    assert _stood(found[by_sql]) == _stood(found[by_verb])
    held = found[by_sql].pause
    assert held is not None
    assert held.missed is Missed.SKIP
    assert {each["status"] for each in await person.ask("select status from occurrences")} == {"queued"}
    await store.request(by_verb, Resume())
    await person.ask("update jobs set paused = false where name = 'sql'")
    found = await store.get([by_verb, by_sql])
    assert _stood(found[by_sql]) == _stood(found[by_verb])
    assert found[by_sql].pause is None
    assert Why.PAUSED not in await _is_due(store, by_sql)


async def test_what_is_promised_and_broken_is_told_in_words(beside: tuple[SqlStore, Person]) -> None:
    """A18: and what people write by SQL lets the promises of the job be looked at."""
    store, person = beside
    await put(store, hourly(start_by="5m", finish_by="06:00"))
    due = await store.promises(await everything(store), 10)
    begin = due.now - HOUR
    late = [replace(each, state=replace(each.state, judged_through=begin)) for each in due.snapshots]
    breach = Breach(
        PromiseKind.START_BY, begin, begin + HOUR / 2, due.now, begin, 3, "it waits", occurrence_id("j", begin)
    )
    states = [replace(each.state, breach=breach if each.state.kind == breach.kind else None) for each in late]
    broken = [Judgement(late[0].job_id, each, (breach,) if each.breach else ()) for each in states]
    assert await store.commit_promises(broken) == [Commit.COMMITTED] * 2
    said = await person.ask("select job, promise, promised, reason from promises order by promise")
    assert [tuple(row.values()) for row in said] == [
        ("report", "finish_by", "06:00", None),
        ("report", "start_by", "5m", "it waits"),
    ]
    assert await person.time("select broken_since from promises where promise = 'start_by'") == breach.due_at
    [row] = await person.ask("select job, promise, count, reason, occurrence_id, ended_at, withdrawn from breaches")
    assert tuple(row.values())[:5] == ("report", "start_by", 3, "it waits", breach.occurrence_id)
    assert (row["ended_at"], bool(row["withdrawn"])) == (None, False)

    for written in ("paused = true", "paused = false", "enabled = false", "enabled = true"):
        states = [each.state for each in await store.ask(Promises())]
        await store.commit_promises([Judgement(late[0].job_id, replace(each, check_at=None)) for each in states])
        assert await person.one("select count(*) from promises where check_at is not null") == 0
        await person.ask(f"update jobs set {written}")
        assert await person.one("select count(*) from promises where check_at is not null") == 2


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("update jobs set next_run = created_at where name = 'report'", "only enabled and paused"),
        ("update jobs set name = 'other'", "only enabled and paused"),
        ("update jobs set enabled = false, priority = 1", "priority"),
        ("update jobs set enabled = null", "true or false"),
        ("update jobs set enabled = false where name = 'gone'", "is removed"),
        ("delete from jobs", "everytick remove"),
        ("insert into jobs (name) values ('x')", "not by an insert"),
        ("update occurrences set status = 'completed'", "view"),
    ],
)
async def test_whatever_else_is_written_is_refused_with_a_sentence(
    beside: tuple[SqlStore, Person], sql: str, sentence: str
) -> None:
    """C-44: never accepted and ignored."""
    store, person = beside
    await put(store, hourly())
    await remove(store, (await put(store, hourly("gone"))).job_id)
    await store.request((await put(store, hourly())).job_id, Trigger("k"))
    await plan_once(store)
    before = [await person.ask(f"select * from {view} order by 1") for view in VIEWS]
    with pytest.raises(Exception, match=sentence):
        await person.ask(sql)
    assert [await person.ask(f"select * from {view} order by 1") for view in VIEWS] == before


async def test_writing_what_is_so_already_changes_nothing(beside: tuple[SqlStore, Person]) -> None:
    """C-44: a statement over all jobs makes no version of those that are so already."""
    store, person = beside
    id_ = (await put(store, hourly())).job_id
    await plan_once(store)
    before = await store.get([id_])
    await person.ask("update jobs set enabled = true, paused = false")
    assert await store.get([id_]) == before


async def test_too_many_versions_that_wait_are_refused_by_sql_too(beside: tuple[SqlStore, Person]) -> None:
    """S0-115: no node looks here, so every version waits to be decided."""
    store, person = beside
    await put(store, hourly())
    for _ in range(14):
        await person.ask("update jobs set enabled = not enabled")
    assert await person.one("select version from jobs") == 15
    with pytest.raises(Exception, match="try again once a node has looked"):
        await person.ask("update jobs set enabled = not enabled")


# -------------------------------------------------------------------------------------------------------- constraints


async def test_what_is_not_so_cannot_be_stored(beside: tuple[SqlStore, Person]) -> None:
    """S1-004, S0-055: kinds, statuses and causes are checked; the base tables do not lie about enabled either."""
    store, person = beside
    id_ = (await put(store, hourly())).job_id
    await store.request(id_, Trigger("k"))
    await plan_once(store)
    for sql, sentence in (
        ("update occurrence set status = 18", "check|CHECK"),
        ("update occurrence set cause = 6", "check|CHECK"),
        ("update job_version set enabled = not enabled", "a version never changes"),
        ("insert into job_version select * from job_version", "unique|UNIQUE"),
    ):
        with pytest.raises(Exception, match=sentence):
            await person.ask(sql)
    kept = "schedule, enabled, definition, effective, reports, edited_at, edited_by"
    with pytest.raises(Exception, match="kind_valid"):
        await person.ask(
            f"insert into job_version (job_key, version, kind, {kept}) select job_key, 9, 'z', {kept} from job_version"
        )


async def test_nothing_is_left_behind_that_belongs_to_nothing(tmp_path: Path) -> None:
    """S0-055: SQLite's foreign keys are declared, switched on, and hold after prune and purge."""
    async with on_sqlite(tmp_path) as (store, person):
        id_ = (await put(store, hourly())).job_id
        for key in "abc":
            await store.request(id_, Trigger(key))
            await plan_once(store)
            await run_one(store, FAILED)
        assert len(await person.ask("pragma foreign_key_list(task_run)")) == 1
        assert await store._writer.write(lambda writing: writing.execute("pragma foreign_keys").fetchone()) == (1,)
        assert await person.ask("pragma foreign_key_check") == []
        await remove(store, id_)
        await plan_once(store)
        while not await store.purge(id_, 1):
            assert await person.ask("pragma foreign_key_check") == []
        assert await person.one("select count(*) from task_run") == 0
        assert await person.ask("pragma foreign_key_check") == []


async def test_sql_shows_what_is_to_come_and_what_people_said_of_it(beside: tuple[SqlStore, Person]) -> None:
    """B20, W2: runs of a horizon, an added one and an adjustment; who, when and why are there."""
    store, person = beside
    id_ = (await put(store, hourly(horizon=2))).job_id
    first = next_run((await store.look([id_]))[id_], await store.now())
    assert first is not None
    added = first + timedelta(minutes=7)
    await store.request(id_, Move(first, first + timedelta(minutes=5), "backup", "ada"))
    receipt = await store.request(id_, Trigger(f"added:{added.isoformat()}", by="bob", reason="more", at=added))
    await plan_once(store)

    rows = await person.ask("select id, job, cause, mark, detail from coming_runs order by scheduled_for")
    assert [[*row.values()] for row in rows] == [
        [occurrence_id(id_, first), "report", "schedule", "moved", "by ada (backup)"],
        [receipt.id, "report", "trigger", "added", "by bob (more)"],
        [occurrence_id(id_, first + HOUR), "report", "schedule", None, ""],
    ]
    assert await person.time("select min(scheduled_for) from coming_runs") == first + timedelta(minutes=5)
    [said] = await person.ask("select job, kind, adjusted_by, reason from adjustments")
    assert [*said.values()] == ["report", "move", "ada", "backup"]
    told = await person.time("select told_at from adjustments")
    assert told is not None
    assert told <= await store.now()
