"""An unreadable state of a task: it is named, left as it is, and can be repaired."""

import pickle
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from everytick.declarative import (
    TaskInvalidStructureError,
    TaskInvalidValueError,
    TaskMissingFieldError,
    TaskTryDeserializeError,
    task_states,
    write_state_document,
)
from everytick.stores.postgres.store import PostgresStore
from everytick.stores.sqlite.store import SqliteStore
from tests.acceptance.declarative.world import Counting, World

DOCUMENT = {
    "version": 1,
    "name": "a",
    "cronExpression": "* * * * *",
    "retryDelayMs": 300_000,
    "schedulerIdentifier": "somebody",
}


@pytest.fixture
def address(store: SqliteStore | PostgresStore, request: pytest.FixtureRequest) -> str:
    """The address of the store, for a new store object without caches."""
    if isinstance(store, SqliteStore):
        return f"sqlite:///{store.address.file}"
    return f"{request.getfixturevalue('postgres').address}?schema={store.schema}"


async def cut_off(address: str) -> None:
    """Leave only the beginning of the definition of task `a`."""
    if address.startswith("sqlite"):
        with closing(sqlite3.connect(address.removeprefix("sqlite:///"))) as file, file:
            cut = "update job_version set definition = substr(definition, 1, 40) where definition like '%default:a\"%'"
            assert file.execute(cut).rowcount == 1
        return
    url, _, schema = address.partition("?schema=")
    db = await asyncpg.connect(url)
    cut = f"update {schema}.job_version set definition = left(definition, 40) where definition like '%default:a\"%'"
    assert await db.execute(cut) == "UPDATE 1"
    await db.close()


@asynccontextmanager
async def on_clock_of(world: World, address: str) -> AsyncIterator[Any]:
    """A store that has read nothing yet: a file's is on the world's clock, a server has its own."""
    if not address.startswith("sqlite"):
        yield address
        return
    store = SqliteStore(Path(address.removeprefix("sqlite:///")), clock=world.clock)
    await store.open()
    yield store
    await store.close()


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
async def test_a_definition_that_cannot_be_read_is_named_and_harms_nothing_else(world: World, address: str) -> None:
    """S2-054, S2-059, S2-062: it is not taken for a new task; mended, it goes on with its history."""
    a, b = Counting(), Counting()
    registrations = [("a", "* * * * *", a, "5m"), ("b", "* * * * *", b, "5m")]
    first = world.scheduler()
    await first.initialize(registrations)
    await world.until("TaskRunCompleted b")
    await world.until("TaskRunCompleted a")
    await first.stop()
    await cut_off(address)

    world.at("12:01:10")
    second = world.scheduler(address)
    with pytest.raises(TaskInvalidStructureError) as caught:
        await second.initialize(registrations)
    assert "declarative:default:a" in str(caught.value)
    assert set(caught.value.details) == {"value", "taskName"}
    assert (second.state, a.calls, b.calls) == ("Uninitialized", 1, 1)

    await second.initialize(registrations[1:])
    await world.until("TaskRunCompleted b", 2)
    await second.stop()

    async with on_clock_of(world, address) as mending:
        await write_state_document(mending, "a", DOCUMENT)
    await second.initialize(registrations)
    assert (await task_states(address))["a"].lastSuccessAt is not None
    world.at("12:02:00")
    await world.until("TaskRunCompleted a", 2)
    await second.stop()


@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_a_state_that_cannot_be_read_names_its_task(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """S2-057, M4: of many registrations, in details, note, log and event; the message is the specification's."""
    names = [f"task {number}" for number in range(20)]
    registrations = [(name, "0 0 1 1 *", Counting(), "5m") for name in names]
    first = world.scheduler()
    await first.initialize(registrations)
    await first.stop()
    await write_state_document(world.store, "task 7", {"version": 1})

    with pytest.raises(TaskMissingFieldError) as caught:
        await world.scheduler().initialize(registrations)
    assert str(caught.value) == "Missing required field: name"
    assert caught.value.details == {"field": "name", "taskName": "task 7"}
    assert caught.value.__notes__ == ["in the persisted state of task 'task 7'"]
    assert "task 'task 7': Missing required field: name" in caplog.text
    assert world.told[-1].error == "task 'task 7': Missing required field: name"
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (copied.details, copied.__notes__) == (caught.value.details, caught.value.__notes__)
    with pytest.raises(TaskMissingFieldError) as asked:
        await task_states(world.store)
    assert asked.value.details["taskName"] == "task 7"


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        ("update job_state set watermark = 999999999999999999 where job_key = :a", TaskInvalidValueError),
        ("update job_state set wake_at = 999999999999999999 where job_key = :a", TaskInvalidValueError),
        ("delete from job_version where job_key = :a", TaskInvalidStructureError),
        ("delete from job_state where job_key = :a", TaskInvalidStructureError),
    ],
)
async def test_rows_that_cannot_be_read_are_errors_of_the_taxonomy(
    world: World, address: str, damage: str, kind: type[TaskTryDeserializeError]
) -> None:
    """S2-053, S2-057: timestamps are persisted fields too; the failure that the store met is the cause."""
    registrations = [(name, "* * * * *", Counting(), "5m") for name in ("b", "a")]
    first = world.scheduler()
    await first.initialize(registrations)
    await world.until("TaskRunCompleted a")
    await world.until("TaskRunCompleted b")
    await first.stop()
    with closing(sqlite3.connect(address.removeprefix("sqlite:///"))) as file, file:
        [key] = file.execute("select job_key from job where name = 'declarative:default:a'").fetchone()
        file.execute("pragma foreign_keys = off")
        assert file.execute(damage, {"a": key}).rowcount == 1

    second = world.scheduler(address)
    with pytest.raises(kind) as caught:
        await second.initialize(registrations)
    assert caught.value.details["taskName"] == "a"
    assert caught.value.__cause__ is not None
    assert second.state == "Uninitialized"


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
async def test_a_timestamp_of_the_past_that_cannot_be_read_names_its_task_too(world: World, address: str) -> None:
    """S2-053: where only a question meets it."""
    first = world.scheduler()
    await first.initialize([(name, "* * * * *", Counting(), "5m") for name in ("b", "a")])
    await world.until("TaskRunCompleted a")
    await world.until("TaskRunCompleted b")
    await first.stop()
    with closing(sqlite3.connect(address.removeprefix("sqlite:///"))) as file, file:
        ours = "job_key = (select job_key from job where name = 'declarative:default:a')"
        assert file.execute(f"update occurrence set started_at = 999999999999999999 where {ours}").rowcount == 1
    with pytest.raises(TaskInvalidValueError) as caught:
        await task_states(address)
    assert caught.value.details["taskName"] == "a"
