"""A plan is one transaction: what was decided and how far it was decided are written together, or neither is."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everytick.domain.facts import Trigger
from everytick.domain.policies import Overlap
from everytick.stores.base import CommitAway, CommitFailed
from tests.stores.acting import claim_one, job, occurrences, plan_once, put, statuses
from tests.stores.people import Person, SqlStore, on_postgres, on_sqlite

# Each half of a plan, and how a server and a file refuse to write it.
HALVES = ("occurrence", "job_state")
REFUSALS = {
    "postgres": (
        "alter table {} add constraint broken check (false) not valid",
        "alter table {} drop constraint broken",
    ),
    "sqlite": (
        "create trigger broken before {} begin select raise(abort, 'broken'); end",
        "drop trigger broken",
    ),
}
DEEDS = {"occurrence": "insert on occurrence", "job_state": "update on job_state"}


@pytest.fixture(params=["sqlite", "postgres", "postgres held"])
async def beside(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[str, SqlStore, Person]]:
    if request.param == "sqlite":
        async with on_sqlite(tmp_path) as (store, person):
            yield request.param, store, person
        return
    async with on_postgres(request.getfixturevalue("postgres")) as (store, person):
        if request.param == "postgres held":
            store.jobs_due.unheld = 0
        yield "postgres", store, person


@pytest.mark.parametrize("half", HALVES)
async def test_where_one_half_of_a_plan_is_refused_the_other_is_not_written(
    beside: tuple[str, SqlStore, Person], half: str
) -> None:
    """S1-009, S0-055: creating and moving on are one transaction; the next look makes the plan again, once."""
    kind, store, person = beside
    stored = await put(store, job(when="0 0 1 1 *"))
    await store.request(stored.job_id, Trigger("now"))
    before = (await store.get([stored.job_id]))[stored.job_id]
    refuse, mend = REFUSALS[kind]
    await person.ask(refuse.format(DEEDS[half] if kind == "sqlite" else half))

    await _refused(store, half)
    await person.ask(mend.format(half))

    assert await occurrences(store) == []
    assert (await store.get([stored.job_id]))[stored.job_id].watermark == before.watermark
    await store.request(stored.job_id, Trigger("look again"))
    await _plan_again(store)
    assert await statuses(store) == ["pending", "queued"]


@pytest.mark.parametrize("half", HALVES)
async def test_a_plan_that_also_changes_what_runs_is_written_whole_or_not_at_all(
    beside: tuple[str, SqlStore, Person], half: str
) -> None:
    """S1-009: such a plan is written by several statements."""
    kind, store, person = beside
    stored = await put(store, job(when="0 0 1 1 *"))
    await store.request(stored.job_id, Trigger("first"))
    await plan_once(store)
    claim = await claim_one(store)
    await store.request(stored.job_id, Trigger("second", overlap=Overlap.CANCEL_RUNNING))
    before = (await store.get([stored.job_id]))[stored.job_id].watermark, await occurrences(store)
    refuse, mend = REFUSALS[kind]
    await person.ask(refuse.format(DEEDS[half] if kind == "sqlite" else half))

    await _refused(store, half)
    await person.ask(mend.format(half))

    assert ((await store.get([stored.job_id]))[stored.job_id].watermark, await occurrences(store)) == before
    assert (await store.beat("node-1", [claim.key])).cancel == ()
    await store.request(stored.job_id, Trigger("look again"))
    await _plan_again(store)
    assert await statuses(store) == ["running", "queued", "queued"]
    assert len((await store.beat("node-1", [claim.key])).cancel) == 1


async def _refused(store: SqlStore, half: str) -> None:
    """Plan, and be told that it cannot be written; where not even the job can be set aside, it is tried again later."""
    [answer] = await plan_once(store)
    assert isinstance(answer, CommitAway if half == "job_state" else CommitFailed)
    assert "broken" in answer.reason


async def _plan_again(store: SqlStore) -> None:
    """Plan once the store gives the job again: PostgreSQL leaves it out for two seconds if it cannot be set aside."""
    async with asyncio.timeout(60):
        while not await plan_once(store):
            await store.bell(0.05)
