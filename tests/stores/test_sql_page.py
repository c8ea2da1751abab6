"""The questions of the page about SQL are asked, on both stores, and the page names every column there is."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from everytick.domain.facts import Trigger
from tests.stores.acting import FAILED, job, plan_once, put, run_one
from tests.stores.people import Person, SqlStore, on_postgres, on_sqlite

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sql.md"
BLOCKS = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
VIEW = re.compile(r"^\| `(?P<view>\w+)` \| [^|]+ \| (?P<columns>[^|]+) \|$", re.MULTILINE)


@pytest.fixture(params=["SQLite", "PostgreSQL"])
async def asked(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[str, SqlStore, Person]]:
    if request.param == "SQLite":
        async with on_sqlite(tmp_path) as (store, person):
            yield request.param, store, person
        return
    async with on_postgres(request.getfixturevalue("postgres")) as (store, person):
        yield request.param, store, person


async def _lived(store: SqlStore) -> None:
    """A job that ran well and failed."""
    minute = (datetime.now(UTC) + timedelta(minutes=30)).minute
    id_ = (await put(store, job("report", f"{minute} * * * *"))).job_id
    for key, outcome in (("well", None), ("not", FAILED)):
        await store.request(id_, Trigger(key))
        await plan_once(store)
        await run_one(store, outcome)


async def test_every_question_of_the_page_can_be_asked(asked: tuple[str, SqlStore, Person]) -> None:
    """S1-025, C-44: as they stand on the page; those that begin with a store's name are that store's."""
    name, store, person = asked
    await _lived(store)
    other = {"SQLite": "PostgreSQL", "PostgreSQL": "SQLite"}[name]
    for block in BLOCKS:
        if not block.startswith(f"-- {other}"):
            for statement in filter(str.strip, block.split(";\n")):
                await person.ask(statement)
    [found] = await person.ask("select name, run_count, last_error, enabled, paused from jobs")
    assert (found["name"], found["run_count"], found["last_error"]) == ("report", 2, "boom")
    assert (bool(found["enabled"]), bool(found["paused"])) == (True, False)
    answered = next(block for block in BLOCKS if "a.error" in block)
    assert [row["error"] for row in await person.ask(answered)] == ["boom"]


async def test_each_claim_is_a_row_with_its_node_its_times_and_its_end(asked: tuple[str, SqlStore, Person]) -> None:
    """S1-043: schedule, worker, when it was enqueued and claimed, how long it took, success and error."""
    name, store, person = asked
    await _lived(store)
    [question] = [block for block in BLOCKS if block.startswith(f"-- {name}") and "claimed_at" in block]
    failed, well = await person.ask(question)
    assert [(row["job"], row["node"], bool(row["succeeded"]), row["error"]) for row in (well, failed)] == [
        ("report", "node-1", True, None),
        ("report", "node-1", False, "boom"),
    ]
    for row in (well, failed):
        assert row["ready_at"] <= row["claimed_at"]
        assert row["waited_seconds"] >= 0
        assert row["took_seconds"] >= 0


async def test_the_page_names_every_column(asked: tuple[str, SqlStore, Person]) -> None:
    """C-44: what is not on the page is not there, and the other way round."""
    _, _, person = asked
    told = {found["view"]: found["columns"].split(", ") for found in VIEW.finditer(PAGE.read_text())}
    assert len(told) == 16
    for view, columns in told.items():
        assert [each.strip() for each in columns] == await person.columns(view), view
