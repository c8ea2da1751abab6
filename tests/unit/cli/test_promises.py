"""Promises on the command line: which are broken, which were, and what will be (A18)."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from everytick.deciding.promises import judge
from everytick.domain.facts import Cancel
from everytick.domain.lookups import Breaches
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import everything, job, occurrences, plan_once, put, run_one
from tests.stores.clock import ManualClock
from tests.unit.cli.conftest import Cli


async def _past(path: Path) -> datetime:
    """Keep a store in which an hourly job ran late yesterday, one of its runs canceled. Return its first instant."""
    clock = ManualClock()
    clock.time = (datetime.now(UTC) - timedelta(days=1)).replace(minute=30, second=0, microsecond=0)
    store = SqliteStore(path, clock=clock)
    await store.open()
    await put(store, job("hourly", start_by="5m", success_within="3h", overlap="queue", recovery="execute_all"))
    first = clock.time + timedelta(minutes=30)
    for nth in range(3):
        clock.move(minutes=40 if not nth else 60)
        await plan_once(store)
        if nth == 1:
            [_, second] = await occurrences(store)
            await store.request(second.id, Cancel())
        else:
            await run_one(store)
        due = await store.promises(await everything(store), 10)
        await store.commit_promises([judge(each, due.now) for each in due.snapshots])
    assert len(await store.ask(Breaches(is_open=True))) == 1
    await store.close()
    return first


@pytest.fixture
def first(address: str, tmp_path: Path) -> datetime:
    return asyncio.run(_past(tmp_path / "shop.db"))


def test_list_says_which_promises_are_broken_and_chooses_by_them(plain: Cli, address: str, first: datetime) -> None:
    said = plain("list", "--store", address, "--broken")
    assert [row[0] for row in said.rows[1:]] == ["hourly"] or "hourly" in said.out
    since = (first + timedelta(minutes=5)).isoformat(timespec="seconds")
    assert f"hourly: start_by broken since {since}, 2 instants: it started at" in said.err
    [data] = json.loads(plain("list", "--store", address, "--json").out)
    [breach] = data["broken_promises"]
    assert (breach["promise"], breach["count"], breach["ended_at"]) == ("start_by", 2, None)


def test_show_tells_of_promises_breaches_and_forecasts(plain: Cli, address: str, first: datetime) -> None:
    said = plain("show", "hourly", "--store", address).out
    assert "start_by 5m: broken" in said
    assert "success_within 3h: kept" in said
    assert "start_by broken since" in said
    data = json.loads(plain("show", "hourly", "--store", address, "--json").out)
    assert {each["promise"]: each["is_broken"] for each in data["promises"]} == {
        "success_within": False,
        "start_by": True,
    }
    assert [each["promise"] for each in data["breaches"]] == ["start_by"]


def test_history_and_explain_mark_what_was_not_kept_and_nothing_else(plain: Cli, address: str, first: datetime) -> None:
    """What people canceled between two late runs is no breach."""
    data = json.loads(plain("history", "hourly", "--store", address, "--json").out)
    told = {each["scheduled_for"]: each["broken_promises"] for each in data}
    assert [told[key] for key in sorted(told)][:3] == [["start_by"], [], ["start_by"]]
    assert "start_by broken" in plain("history", "hourly", "--store", address).out
    at = first.isoformat()
    said = plain("explain", "hourly", "--at", at, "--store", address, "--json").out
    explained = json.loads(said)
    assert explained["broken_promises"] == ["start_by"]
    assert "start_by was broken: it was promised by" in explained["text"]
    canceled = (first + timedelta(hours=1)).isoformat()
    other = json.loads(plain("explain", "hourly", "--at", canceled, "--store", address, "--json").out)
    assert other["broken_promises"] == []


def test_doctor_finds_what_is_broken_and_warns_of_what_cannot_be_kept(
    plain: Cli, address: str, first: datetime, tmp_path: Path
) -> None:
    async def doubtful() -> None:
        store = SqliteStore(tmp_path / "shop.db")
        await store.open()
        await put(store, job("daily", "0 3 * * *", success_within="1h"))
        await store.close()

    asyncio.run(doubtful())
    done = plain("doctor", "--store", address, "--json")
    told = {
        (each["result"], each["text"].split(":")[0]) for each in json.loads(done.out) if each["check"] == "promises"
    }
    assert told == {("finding", "'hourly'"), ("warning", "'daily'")}
    assert done.code == 1
