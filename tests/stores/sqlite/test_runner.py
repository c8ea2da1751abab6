"""A shared verb in SQLite's threads: what it is sent, what its errors are, and what a savepoint takes back."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event

import pytest

from everytick.domain.changes import Put, Remove
from everytick.domain.lookups import Editions
from everytick.errors import NotFound
from everytick.stores.sql.commands import Ask, KeyTaken, Referenced, Rows, Verb, many, together
from everytick.stores.sql.statements import Statement
from everytick.stores.sqlite import apsw_driver
from everytick.stores.sqlite.definition_cache import FileDefinitions
from everytick.stores.sqlite.dialect import SQLITE
from everytick.stores.sqlite.rows import micros
from everytick.stores.sqlite.runner import SyncRunner
from everytick.stores.sqlite.store import SqliteStore
from everytick.stores.sqlite.writer import Transaction
from tests.stores.acting import job, put

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ADD = Statement("add", "insert into parent (id, made_at) values (:id, :made_at)", SQLITE)
ALL = Statement("all", "select id, made_at from parent order by id", SQLITE)
BELONG = Statement("belong", "insert into child (parent) values (:id)", SQLITE)
FORGET = Statement("forget", "delete from parent where id = :id", SQLITE)


@pytest.fixture(params=["sqlite3", "apsw"])
def transaction(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Transaction]:
    path = tmp_path / "some.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute("create table parent (id integer primary key, made_at integer)")
        made.execute("create table child (parent integer references parent)")
    if request.param == "apsw":
        connection = apsw_driver.connect(path)
    else:
        connection = sqlite3.connect(path, isolation_level=None)
    with closing(connection):
        connection.execute("pragma foreign_keys = on")
        connection.execute("begin immediate")
        yield Transaction(connection, micros(NOON))


@pytest.fixture
def runner(transaction: Transaction) -> SyncRunner:
    return SyncRunner(transaction, FileDefinitions())


def test_rows_come_by_name_and_in_values_of_the_domain(runner: SyncRunner, transaction: Transaction) -> None:
    def verb() -> Verb[Rows]:
        now = yield Ask.NOW
        yield many(ADD, [{"id": id_, "made_at": now} for id_ in (1, 2)])
        assert not (yield ADD(id=3, made_at=None))
        yield Ask.RING
        found: Rows = yield ALL()
        return found

    assert runner.run(verb) == [{"id": 1, "made_at": NOON}, {"id": 2, "made_at": NOON}, {"id": 3, "made_at": None}]
    assert transaction.rang


def test_a_verb_hears_what_its_statement_violates(runner: SyncRunner) -> None:
    def verb() -> Verb[list[str]]:
        heard = []
        yield ADD(id=1, made_at=None)
        yield BELONG(id=1)
        for violating in (ADD(id=1, made_at=None), FORGET(id=1)):
            try:
                yield violating
            except (KeyTaken, Referenced) as error:
                heard.append(type(error).__name__)
        return heard

    assert runner.run(verb) == ["KeyTaken", "Referenced"]


def test_what_a_verb_does_not_expect_comes_out_as_the_drivers_own_error(runner: SyncRunner) -> None:
    def verb(id_: object) -> Verb[None]:
        yield ADD(id=1, made_at=None)
        yield ADD(id=id_, made_at=None)

    for id_ in (1, "no number"):
        with pytest.raises(sqlite3.IntegrityError):
            runner.run(partial(verb, id_))


def test_what_stands_together_is_undone_together(runner: SyncRunner) -> None:
    def verb() -> Verb[list[int]]:
        yield ADD(id=1, made_at=None)
        yield BELONG(id=1)
        try:
            yield together([ADD(id=2, made_at=None), FORGET(id=1)])
        except Referenced:
            yield ADD(id=3, made_at=None)
        return [row["id"] for row in (yield ALL())]

    assert runner.run(verb) == [1, 3]


async def test_a_version_that_is_written_twice_is_known_as_it_was_written_last(path: Path) -> None:
    """A group of calls in which one is refused is undone and done again, at a later time by the store's clock."""
    seconds = count()
    clock = lambda: NOON + timedelta(seconds=next(seconds))  # noqa: E731
    store, other = SqliteStore(path, clock=clock), SqliteStore(path, clock=clock)
    await store.open()
    await other.open()
    stored = await put(store, job())
    entered, release = Event(), Event()

    def hold(_: Transaction) -> None:
        entered.set()
        release.wait(20)

    held = asyncio.create_task(store._writer.write(hold))
    await asyncio.to_thread(entered.wait, 20)
    # What comes while the writer's thread is busy is the next group.
    edited = asyncio.create_task(store.apply([Put(job(when="30 * * * *"))]))
    refused = asyncio.create_task(store.apply([Remove("no job")]))
    await asyncio.sleep(0)
    release.set()
    await asyncio.gather(held, edited)
    with pytest.raises(NotFound):
        await refused
    assert await store.ask(Editions(stored.job_id, [2])) == await other.ask(Editions(stored.job_id, [2]))
    await store.close()
    await other.close()
