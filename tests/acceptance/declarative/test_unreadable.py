"""What the store holds of a task and nobody can read any more: it is named, left as it is, and can be mended."""

import sqlite3
from contextlib import closing

import asyncpg
import pytest

from everytick.declarative import TaskInvalidStructureError, task_states, write_state_document
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
    """Where the store is, for whoever opens it anew and has not read anything of it yet."""
    if isinstance(store, SqliteStore):
        return f"sqlite:///{store.file}"
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
    cut = f"update {schema}.definition set definition = left(definition, 40) where definition like '%default:a\"%'"
    assert await db.execute(cut) == "UPDATE 1"
    await db.close()


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
    assert set(caught.value.details) == {"value"}
    assert (second.state, a.calls, b.calls) == ("Uninitialized", 1, 1)

    await second.initialize(registrations[1:])
    await world.until("TaskRunCompleted b", 2)
    await second.stop()

    await write_state_document(address, "a", DOCUMENT)
    await second.initialize(registrations)
    assert (await task_states(address))["a"].lastSuccessAt is not None
    world.at("12:02:00")
    await world.until("TaskRunCompleted a", 2)
    await second.stop()
