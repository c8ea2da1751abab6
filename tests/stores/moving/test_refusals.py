"""What cannot be moved is refused with a reason, before anything is written."""

import os
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from everytick import InvalidSetting, MoveRefused, StoreArriving, StoreBroken, StoreMoved, StoreUnavailable
from everytick.domain.facts import Trigger
from everytick.domain.ids import job_id
from everytick.errors import SchemaMismatch
from everytick.stores.following import FollowingStore
from everytick.stores.moving import move
from everytick.stores.moving.move import Stage, give_up, move_store
from everytick.stores.sqlite.opening import prepare
from everytick.stores.sqlite.store import SqliteStore
from tests.servers.launch import Server
from tests.stores.acting import job, put
from tests.stores.moving.rows import fill
from tests.stores.postgres.kit import schema


def address(path: Path) -> str:
    return f"sqlite:///{path}"


def schema_of(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as it:
        return [row[0] for row in it.execute("select sql from sqlite_schema order by 1")]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    fill(tmp_path / "old.db")
    return tmp_path / "old.db"


async def test_a_store_is_not_moved_into_itself(old: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(old)
    before = schema_of(old)
    with pytest.raises(MoveRefused, match="are the same store: name two"):
        await move_store(address(old), address(tmp_path / "link.db"))
    assert schema_of(old) == before


async def test_the_same_schema_by_two_addresses_is_one_store(postgres: Server) -> None:
    async with schema(postgres) as name:
        one = f"{postgres.address}?schema={name}"
        await move.side_of(one, "from").make()
        with pytest.raises(MoveRefused, match="are the same store"):
            await move_store(one, one.replace("127.0.0.1", "localhost"))


async def test_a_store_that_is_not_empty_is_not_written_over(old: Path, tmp_path: Path) -> None:
    fill(tmp_path / "new.db")
    before = schema_of(old)
    with pytest.raises(MoveRefused, match=r"new.db is not empty \(adjustment, attempt, .*name an empty store"):
        await move_store(address(old), address(tmp_path / "new.db"))
    assert schema_of(old) == before


async def test_a_store_in_memory_is_not_moved(old: Path) -> None:
    with pytest.raises(MoveRefused, match="the store to move to is memory://: a store in memory ends with its process"):
        await move_store(address(old), "memory://")
    with pytest.raises(MoveRefused, match="the store to move from is memory://"):
        await move_store("memory://", address(old))


async def test_a_store_in_redis_is_not_moved(old: Path) -> None:
    with pytest.raises(MoveRefused, match=r"the store to move to is in Redis: .* cannot be moved yet"):
        await move_store(address(old), "redis://127.0.0.1:1/0")


async def test_there_must_be_a_store_to_move(tmp_path: Path) -> None:
    with pytest.raises(MoveRefused, match=r"there is no store at .*old.db"):
        await move_store(address(tmp_path / "old.db"), address(tmp_path / "new.db"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("number", "advice"), [(2, "install the newer everytick"), (0, "everytick db migrate first")])
@pytest.mark.parametrize("role", ["old", "new"])
async def test_tables_of_another_everytick_are_refused(tmp_path: Path, number: int, advice: str, role: str) -> None:
    for name in ("old", "new"):
        prepare(tmp_path / f"{name}.db")
    with closing(sqlite3.connect(tmp_path / f"{role}.db")) as it, it:
        if number:
            it.execute("insert into migration values (2, 'later', '', '')")
        else:
            it.execute("update migration set number = -1")
    with pytest.raises(MoveRefused, match=rf"the tables of .*{role}.db are at schema .*{advice}"):
        await move_store(address(tmp_path / "old.db"), address(tmp_path / "new.db"))


async def test_files_of_other_programs_are_refused(old: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "new.db")) as it, it:
        it.execute("create table theirs (id)")
    with pytest.raises(SchemaMismatch, match="holds tables of another program"):
        await move_store(address(old), address(tmp_path / "new.db"))


async def test_a_server_that_does_not_answer_leaves_the_old_store_alone(old: Path) -> None:
    before = schema_of(old)
    with pytest.raises(StoreUnavailable):
        await move_store(address(old), "postgresql://nobody@127.0.0.1:1/none")
    assert schema_of(old) == before


async def test_a_text_that_the_new_store_cannot_hold_is_named(old: Path, postgres: Server) -> None:
    with closing(sqlite3.connect(old)) as it, it:
        it.execute("update pause set reason = 'a' || char(0) || 'b'")
    async with schema(postgres) as name:
        new = f"{postgres.address}?schema={name}"
        with pytest.raises(
            MoveRefused, match=r"it takes no row of pause as the old store has it: .*old.db stays in use"
        ):
            await move_store(address(old), new)
        with closing(sqlite3.connect(old)) as it, it:
            it.execute("update pause set reason = 'mended'")
        await move_store(address(old), new)


async def test_clocks_that_are_apart_are_refused(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(move, "CLOCKS_APART", timedelta(seconds=-1))
    with pytest.raises(MoveRefused, match=r"the clock of .*new.db is .* that of .*: set both clocks right first"):
        await move_store(address(old), address(tmp_path / "new.db"))


async def test_nodes_must_be_allowed_to_wait_for_some_time(old: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="must be longer than nothing"):
        await move_store(address(old), address(tmp_path / "new.db"), held="0s")


class Interrupted(Exception):
    """The mover was stopped."""


def at(wanted: Stage) -> move.Told:
    def tell(stage: Stage, rows: int) -> None:
        if stage is wanted:
            raise Interrupted

    return tell


async def test_a_move_that_would_hold_nodes_for_too_long_leaves_the_old_store_in_use(old: Path, tmp_path: Path) -> None:
    stages = list[Stage]()
    with pytest.raises(MoveRefused, match=r"the last changes took longer than 0.00001s, .* allow more with --held"):
        await move_store(
            address(old), address(tmp_path / "new.db"), held="10us", told=lambda stage, _: stages.append(stage)
        )
    assert Stage.SHUT not in stages
    assert stages.count(Stage.HELD) == 5
    store = SqliteStore(old)
    await store.open()
    await store.close()
    await move_store(address(old), address(tmp_path / "new.db"))


async def test_a_store_that_is_not_there_has_no_move_to_give_up(tmp_path: Path, postgres: Server) -> None:
    """B16: a mistyped address is named as such."""
    with pytest.raises(MoveRefused, match=r"there is no store at .*none\.db"):
        await give_up(address(tmp_path / "none.db"))
    with pytest.raises(MoveRefused, match=r"there is no store at .* schema nowhere"):
        await give_up(f"{postgres.address}?schema=nowhere")


async def test_a_move_into_another_store_is_refused_until_the_first_is_given_up(old: Path, tmp_path: Path) -> None:
    new, other = address(tmp_path / "new.db"), address(tmp_path / "other.db")
    with pytest.raises(MoveRefused, match="is not being moved: there is nothing to give up"):
        await give_up(address(old))
    before = schema_of(old)
    with pytest.raises(Interrupted):
        await move_store(address(old), new, told=at(Stage.FILLED))
    with pytest.raises(MoveRefused, match=r"is being moved to .*new.db: go on with that, or give it up"):
        await move_store(address(old), other)
    await give_up(address(old))
    assert [sql for sql in schema_of(old) if sql not in before and "store_move" not in sql] == []
    with pytest.raises(StoreArriving, match=r"old.db is being moved into it"):
        await SqliteStore(tmp_path / "new.db").open()
    await move_store(address(old), new)  # a copy that was given up is filled anew
    with pytest.raises(MoveRefused, match=r"has moved to .* already: that store is in use"):
        await give_up(address(old))


async def test_a_store_that_has_moved_says_where_and_takes_nothing(old: Path, tmp_path: Path) -> None:
    store = SqliteStore(old)
    await store.open()
    await put(store, job("late"))
    await move_store(address(old), address(tmp_path / "new.db"))
    for _ in range(2):
        with pytest.raises(StoreMoved, match=r"old.db has moved to sqlite:///.*new.db: nothing more is written here"):
            await store.request(job_id("late"), Trigger("asked"))
    await store.close()
    with pytest.raises(StoreMoved, match="name the new address as the store"):
        await SqliteStore(old).open()
    with pytest.raises(StoreMoved):
        await move_store(address(old), address(tmp_path / "third.db"))


async def test_a_wrong_next_store_is_not_followed(old: Path, tmp_path: Path) -> None:
    await move_store(address(old), address(tmp_path / "new.db"))
    prepare(tmp_path / "empty.db")
    for name in ("empty.db", "absent.db"):
        store = FollowingStore(lambda: SqliteStore(old), lambda name=name: SqliteStore(tmp_path / name))  # type: ignore[misc]
        with pytest.raises(StoreBroken, match=r"next_store.*is another one.*has moved to .*new.db"):
            await store.open()
    assert not (tmp_path / "absent.db").exists()


async def test_a_node_that_follows_lets_the_new_store_arrive_if_the_mover_was_killed(old: Path, tmp_path: Path) -> None:
    new = address(tmp_path / "new.db")
    with pytest.raises(Interrupted):
        await move_store(address(old), new, told=at(Stage.SHUT))
    with pytest.raises(StoreArriving):
        await SqliteStore(tmp_path / "new.db").open()
    store = FollowingStore(lambda: SqliteStore(old), lambda: SqliteStore(tmp_path / "new.db"))
    await store.open()
    assert store.address.file == tmp_path / "new.db"
    await store.close()
    with pytest.raises(MoveRefused, match="there is nothing left to do"):
        await move_store(address(old), new)


async def test_the_mover_ends_what_it_could_not_end_before(old: Path, tmp_path: Path) -> None:
    new = address(tmp_path / "new.db")
    with pytest.raises(Interrupted):
        await move_store(address(old), new, told=at(Stage.SHUT))
    stages = list[Stage]()
    moved = await move_store(address(old), new, told=lambda stage, _: stages.append(stage))
    assert (stages, moved.jobs, moved.held) == ([Stage.ARRIVED], 3, timedelta())


async def test_a_move_from_postgres_is_given_up_and_begun_again_beside_a_reader(
    postgres: Server, tmp_path: Path
) -> None:
    """An open transaction that has read the tables, as that of a planner, holds up neither."""
    async with schema(postgres) as name:
        old = f"{postgres.address}?schema={name}"
        fill(tmp_path / "first.db")
        await move_store(address(tmp_path / "first.db"), old)
        reader = await asyncpg.connect(postgres.address)
        async with reader.transaction():
            await reader.fetch(f"select * from {name}.job for update")
            await reader.fetch(f"select count(*) from {name}.occurrence")
            with pytest.raises(Interrupted):
                await move_store(old, address(tmp_path / "new.db"), told=at(Stage.FILLED))
            await give_up(old)
            await move_store(old, address(tmp_path / "new.db"))
        await reader.close()
