"""Ids of occurrences that are typed as tables show them (A10)."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from everytick import Everytick, every
from everytick.cli.ids import whole_id
from everytick.domain.ids import occurrence_id
from everytick.domain.lookups import ExistingIds
from everytick.stores.memory import MemoryStore
from everytick.testing import drain
from tests.stores.acting import plan_once, run_one
from tests.stores.clock import ManualClock
from tests.unit.cli.conftest import Cli, ran, stored


@pytest.fixture
def id_(shop: Everytick) -> str:
    """The id of an occurrence that has ended."""
    [found] = ran(shop, "nightly")
    return found


@pytest.mark.parametrize("beginning", [slice(4, 12), slice(0, 12), slice(4, 20), slice(4, 40), slice(0, 40)])
def test_a_beginning_of_an_id_names_its_occurrence(cli: Cli, id_: str, beginning: slice) -> None:
    """A10: with or without `occ_`, from eight characters on."""
    done = cli("show", id_[beginning], "--json")

    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["id"] == id_


def test_every_verb_that_takes_an_id_takes_its_beginning(cli: Cli, id_: str) -> None:
    """A10: `show`, `logs`, `cancel` and `replay`."""
    beginning = id_[4:12]

    assert cli("logs", beginning).err == "no output was kept: the tasks wrote none, or it is not on this host\n"
    assert cli("cancel", beginning, "--yes").err == "it had ended before: completed\n"
    replayed = cli("replay", "--job-occurrence", beginning, "--reason", "again")
    assert replayed.code == 0
    assert json.loads(cli("show", id_, "--json").out)["id"] == id_


def test_a_pipe_and_json_keep_whole_ids(cli: Cli, id_: str) -> None:
    assert [row[5] for row in cli("history").rows] == [id_]
    assert [each["id"] for each in json.loads(cli("history", "--json").out)] == [id_]


def test_a_beginning_of_no_id_is_refused_with_where_whole_ids_stand(cli: Cli, id_: str) -> None:
    unknown = "0" * 8 if not id_.startswith("occ_0") else "1" * 8

    for verb in (["show"], ["logs"], ["cancel", "--yes"], ["replay", "--reason", "x", "--job-occurrence"]):
        done = cli(*verb, unknown)
        assert done.code == 3, verb
        assert f"no occurrence has an id that begins with {unknown}" in done.err
        assert "everytick history --json lists whole ids" in done.err


def test_what_is_too_short_for_an_id_is_no_beginning(cli: Cli, id_: str) -> None:
    """Seven characters are the name of a job that there is not."""
    done = cli("show", id_[4:11])

    assert done.code == 3
    assert "there is no job" in done.err or "job not found" in done.err


def test_a_job_of_that_name_comes_first(cli: Cli, address: str) -> None:
    """A name may look like the beginning of an id."""
    app = Everytick(address, name="hex")
    app.define("deadbeef", every("1h")).command("work", ["true"])
    asyncio.run(stored(app))

    assert json.loads(cli("show", "deadbeef", "--json").out)["name"] == "deadbeef"
    assert "no occurrence of 'deadbeef' has started yet" in cli("logs", "deadbeef").err


def twins(job_id: str) -> tuple[datetime, datetime]:
    """Two instants of a job whose ids begin with the same eight characters."""
    seen: dict[str, datetime] = {}
    at = datetime(2020, 1, 1, tzinfo=UTC)
    while (beginning := occurrence_id(job_id, at)[:12]) not in seen:
        seen[beginning] = at
        at += timedelta(seconds=1)
    return seen[beginning], at


def test_a_beginning_of_two_ids_is_refused_with_both(cli: Cli, shop: Everytick) -> None:
    """A10: nothing is guessed, and a longer beginning tells them apart."""

    async def filled() -> list[str]:
        job_id = (await shop.job("pulse")).job.id
        first, second = twins(job_id)
        for at in (first, second):
            await shop.backfill("pulse", at - timedelta(microseconds=1), at, as_of="now")
        await drain(shop)
        await shop.close()
        return sorted(occurrence_id(job_id, at) for at in (first, second))

    # It is over: else it would be due again as long as a second passes while one of its runs does.
    pulse = every("1s", start="2020-01-01T00:00:00Z", end="2021-01-01T00:00:00Z")
    shop.define("pulse", pulse).command("work", ["true"])
    asyncio.run(stored(shop))
    ids = asyncio.run(filled())

    done = cli("cancel", ids[0][4:12], "--yes")

    assert done.code == 2
    assert f"begins the ids {ids[0]} and {ids[1]}: type more of the one you mean" in done.err
    assert json.loads(cli("show", ids[0][4:20], "--json").out)["id"] == ids[0]


async def test_what_did_not_run_is_found_by_the_beginning_of_its_id() -> None:
    """A10, F19: `history JOB` shows it and `replay` takes it, though the store holds no row for it."""
    clock = ManualClock()
    store = MemoryStore(clock)
    await store.open()
    tick = Everytick(store, name="shop")
    tick.job("0 * * * *", name="hourly", recovery="execute_last")(lambda: None)
    await tick.sync()
    await plan_once(store)
    clock.time = datetime(2026, 11, 16, 10, tzinfo=UTC)
    await plan_once(store)
    await run_one(store)
    clock.time = datetime(2026, 11, 16, 14, 10, tzinfo=UTC)
    await plan_once(store)
    skipped = [each.id for each in await tick.history("hourly", status="skipped")]

    assert skipped
    assert [await whole_id(tick, each[4:12]) for each in skipped] == skipped
    assert not await store.ask(ExistingIds(skipped)), "nothing was created by looking"
    await store.close()
