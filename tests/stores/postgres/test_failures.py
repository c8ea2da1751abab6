"""Which errors of a server say "not now", "another was in the way" or "broken", and which are an item's fault."""

import pickle

import asyncpg
import pytest

from everytick.errors import Contended, StoreBroken, StoreUnavailable
from everytick.stores.base import NodeScope
from everytick.stores.postgres.failures import named
from everytick.stores.postgres.store import PostgresStore
from tests.servers.launch import Server
from tests.stores.acting import job, put
from tests.stores.clock import ManualClock
from tests.stores.postgres.kit import opened

MEANINGS: dict[type[StoreUnavailable], tuple[str, ...]] = {
    StoreUnavailable: (
        *("08000", "08001", "08003", "08006", "25006", "53000", "53100", "53200", "53300", "57P01", "57P02", "57P03"),
        *("57P04", "57P05", "58000", "58030"),
    ),
    Contended: ("40001", "40P01", "55P03", "57014"),
    StoreBroken: ("28000", "28P01", "3D000", "3F000", "42P01", "42703", "42883", "42501", "XX001", "XX002"),
}


@pytest.mark.parametrize(("state", "meaning"), [(state, kind) for kind, states in MEANINGS.items() for state in states])
def test_a_state_of_the_server_has_one_meaning(state: str, meaning: type[StoreUnavailable]) -> None:
    """C-46: by the SQLSTATE alone, whatever the language of the server."""
    error = asyncpg.PostgresError.new({"C": state, "M": "so ist es", "S": "FEHLER"})
    found = named(error, "the store")
    assert type(found) is meaning


@pytest.mark.parametrize(
    ("state", "advice"),
    [
        ("28P01", "correct the user or the password in the address"),
        ("28000", "correct the user in the address, or let the server's pg_hba.conf admit it"),
        ("3D000", "create it with `createdb shop`, or name another one in the address"),
        ("42501", "everytick makes a schema and tables: grant create on database shop to this user"),
    ],
)
def test_mistakes_of_a_first_connection_say_what_to_do(state: str, advice: str) -> None:
    """A5: also in another process, to which errors are pickled."""
    error = asyncpg.PostgresError.new({"C": state, "M": "so ist es", "S": "FEHLER"})
    found = named(error, "PostgreSQL at localhost:5432/shop")
    assert str(found).startswith(f"PostgreSQL at localhost:5432/shop cannot be used: so ist es: {advice}")
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


@pytest.mark.parametrize("state", ["22001", "22P05", "23505", "23514", "54000", "P0001", "XX000"])
def test_what_is_wrong_with_one_item_is_not_about_the_store(state: str) -> None:
    assert named(asyncpg.PostgresError.new({"C": state, "M": "x", "S": "ERROR"}), "the store") is None


async def test_a_table_that_is_missing_is_a_broken_store(postgres: Server, clock: ManualClock) -> None:
    """C-46, W5: told apart from one that is away, and well again once it is there."""
    async with opened(postgres, clock) as store:
        await put(store, job())
        await store.check_writable()
        db = await asyncpg.connect(store.url)
        try:
            await db.execute(f"alter table {store.schema}.job_state rename to elsewhere")
            with pytest.raises(StoreBroken, match=r"job_state.* does not exist.*: mend it"):
                await store.check_writable()
            with pytest.raises(StoreBroken, match="job_state"):
                await store.ahead(NodeScope("node-1"))
            await db.execute(f"alter table {store.schema}.elsewhere rename to job_state")
        finally:
            await db.close()
        await store.check_writable()
        await store.ahead(NodeScope("node-1"))


async def test_a_wrong_password_or_database_is_no_outage(postgres: Server) -> None:
    """It does not pass by itself."""
    store = PostgresStore(f"{postgres.address}_that_is_not_there")
    with pytest.raises(StoreBroken, match="does not exist"):
        await store.open()


def test_a_session_that_was_cut_is_said_to_be_and_not_in_the_words_of_the_driver() -> None:
    cut = asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress")

    assert "does not answer: the session was cut" in str(named(cut, "PostgreSQL at db"))
