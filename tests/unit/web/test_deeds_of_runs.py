"""Cancel, replay and backfill from pages; brakes and limits."""

import asyncio
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from everytick import Context, Everytick, every
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.memory import MemoryStore
from everytick.testing import ManualClock
from tests.unit.web.conftest import client_of
from tests.unit.web.forms_of_pages import FormOnPage, sent, sent_again, text_of, told


@pytest.fixture
def started() -> asyncio.Event:
    """Set once the long job runs."""
    return asyncio.Event()


@pytest.fixture
def tick(started: asyncio.Event) -> Everytick:
    made = Everytick("memory://", name="shop", poll="100ms")
    etl = made.define("etl", every("1h"), tags=["billing"])

    @etl.task
    def extract() -> int:
        return 3

    @etl.task
    def load(ctx: Context) -> None:
        if ctx.cause == "trigger":
            raise ValueError("<b>no such table</b>")

    @made.job(every("1d"))
    async def long() -> None:
        started.set()
        await asyncio.Event().wait()

    return made


async def test_a_failed_occurrence_is_replayed_from_a_task(client: httpx2.AsyncClient, tick: Everytick) -> None:
    async with tick:
        failed = await (await tick.trigger("etl")).wait("30s")
        path = f"/occurrences/{failed.id}/do/replay"
        page = await client.get(path, params={"from_task": "load"})
        said = text_of(page)
        assert "It is failed" in said
        assert "no such table" in said
        assert "Tasks before load keep their results" in said
        answer = await sent_again(client, path, page, reason="table made")

        assert "Asked for a replay of etl." in await told(client, answer)
        [replay] = await tick.history("etl", cause="replay")
        assert replay.replay_of == failed.id
        assert "table made" in str(replay.reason)


async def test_a_running_occurrence_is_canceled(
    client: httpx2.AsyncClient, tick: Everytick, started: asyncio.Event
) -> None:
    async with tick:
        handle = await tick.trigger("long")
        await asyncio.wait_for(started.wait(), 30)
        path = f"/occurrences/{handle.id}/do/cancel"
        assert "It runs on" in text_of(await client.get(path))
        assert not FormOnPage((await client.get(f"/occurrences/{handle.id}/do/replay")).text).is_there
        answer = await sent(client, path, reason="too long")

        assert "of long." in await told(client, answer)
        ended = await handle.wait("30s")
        assert ended.status is OccurrenceStatus.CANCELED
        assert "there is nothing to cancel" in text_of(await client.get(path))


async def test_an_instant_that_did_not_run_is_run_after_all() -> None:
    clock = ManualClock("2026-05-04T12:00:00Z")
    made = Everytick(MemoryStore(clock=clock), name="paused")

    @made.job(every("1h"))
    def hourly() -> None: ...

    await made.sync()
    await made.pause("hourly")
    clock.advance(timedelta(hours=2))
    [missed, *_] = await made.history("hourly")
    async with client_of(made) as client:
        path = f"/occurrences/{missed.id}/do/replay"
        assert "The instant runs for the first time" in text_of(await client.get(path))
        answer = await sent(client, path)

    assert answer.status_code == 303, text_of(answer)
    store = await made._opened()
    [snapshot] = (await store.look([missed.job_id])).values()
    assert [request.scheduled_for for request in snapshot.requests] == [missed.scheduled_for]


async def test_an_occurrence_that_is_not_there_is_a_page_that_says_so(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/occurrences/occ_nothing/do/cancel")).status_code == 404


# ----------------------------------------------------------------------------------------------------------- backfills


def past(hours: int) -> str:
    """Return an hour of yesterday and before, as an address names it."""
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return (now - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


async def test_a_backfill_is_counted_before_it_is_planned(client: httpx2.AsyncClient, tick: Everytick) -> None:
    path = f"/jobs/etl/do/backfill?after={past(30)}&through={past(20)}"
    page = await client.get(path)
    said = text_of(page)
    assert "10 instants run" in said
    assert "At most 60 starts a minute" in said
    assert await tick.backfills() == []

    answer = await sent_again(client, path, page, rate="5", begin="later", reason="lost disk")
    twice = await sent_again(client, path, page, rate="5", begin="later", reason="lost disk")
    assert answer.status_code == twice.status_code == 303
    [record] = await tick.backfills("etl")
    assert (record.order.count, record.order.rate, record.order.reason) == (10, 5, "lost disk")
    assert record.status == "planned"


async def test_an_address_ticks_a_box(client: httpx2.AsyncClient) -> None:
    page = await client.get(f"/jobs/etl/do/backfill?after={past(30)}&through={past(20)}&again=1")
    assert FormOnPage(page.text).typed["again"] == "true"


async def test_a_backfill_is_approved_paused_resumed_and_canceled(client: httpx2.AsyncClient, tick: Everytick) -> None:
    made = await tick.backfill("etl", past(30), past(20), approve=False)
    for deed, status in (("approve", "running"), ("pause", "paused"), ("resume", "running"), ("cancel", "canceled")):
        answer = await sent(client, f"/backfills/{made.id}/do/{deed}")
        assert answer.headers["location"] == "/jobs/etl"
        assert (await made.progress()).status == status
    assert not FormOnPage((await client.get(f"/backfills/{made.id}/do/cancel")).text).is_there


@pytest.mark.parametrize(
    ("field", "typed", "why"),
    [("rate", "0", "0 is less than 1"), ("rate", "9999", "more than 6000"), ("through", "never", "no date and time")],
)
async def test_wrong_input_for_a_backfill_is_told(
    client: httpx2.AsyncClient, tick: Everytick, field: str, typed: str, why: str
) -> None:
    path = f"/jobs/etl/do/backfill?after={past(30)}&through={past(20)}"
    answer = await sent(client, path, **{field: typed})
    assert answer.status_code == 422
    assert f'id="f-{field}-wrong"' in answer.text
    assert why in text_of(answer)
    assert await tick.backfills() == []


async def test_a_large_backfill_is_asked_about_with_its_cost(
    client: httpx2.AsyncClient, tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick, "confirm_above", 5)
    path = f"/jobs/etl/do/backfill?after={past(30)}&through={past(20)}"
    asked = await sent(client, path)
    assert asked.status_code == 409
    assert "10 runs, of unknown length" in text_of(asked)
    assert await tick.backfills() == []

    answer = await sent_again(client, path, asked)
    assert answer.status_code == 303, text_of(answer)
    assert len(await tick.backfills()) == 1


async def test_an_address_cannot_confirm_what_is_guarded(
    client: httpx2.AsyncClient, tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick, "confirm_above", 5)
    path = f"/jobs/etl/do/backfill?after={past(30)}&through={past(20)}&confirmed=1"
    assert (await sent(client, path)).status_code == 409


# --------------------------------------------------------------------------------------------------- brakes and limits


async def test_a_brake_is_put_on_and_released(client: httpx2.AsyncClient, tick: Everytick) -> None:
    page = await client.get("/do/brake", params={"reach": "tag:billing"})
    assert "tag:billing is 1 job etl" in text_of(page)
    answer = await sent_again(client, "/do/brake", page, reason="bank is down")
    assert await told(client, answer) == "The brake of tag:billing holds."
    [record] = (await tick.limits()).reaches
    assert record.reach.brakes[0].reason == "bank is down"

    assert "bank is down" in text_of(await client.get("/do/release", params={"reach": "tag:billing"}))
    answer = await sent(client, "/do/release?reach=tag:billing", rate="60/1m")
    assert await told(client, answer) == "Released tag:billing."
    assert not (await tick.limits()).reaches[0].reach.brakes


async def test_a_limit_is_set_and_taken_away(client: httpx2.AsyncClient, tick: Everytick) -> None:
    answer = await sent(client, "/do/limit", reach="queue:default", most="3", rate="10/1m")
    assert answer.status_code == 303, text_of(answer)
    [record] = (await tick.limits()).reaches
    assert str(record.reach.limit) == "3 at once, 10/1m"

    form = FormOnPage((await client.get("/do/limit", params={"reach": "queue:default"})).text)
    assert {"reach": "queue:default", "most": "3", "rate": "10/1m"}.items() <= form.typed.items()
    assert "burst" not in form.typed
    await tick.set_limit("queue:default", rate="5/1s", burst_allowed=True)
    form = FormOnPage((await client.get("/do/limit", params={"reach": "queue:default"})).text)
    assert {"rate": "5/1s", "burst": "true", "most": ""}.items() <= form.typed.items()

    answer = await sent(client, "/do/limit", reach="queue:default", lift="true")
    assert await told(client, answer) == "queue:default has no limit now."
    assert not (await tick.limits()).reaches


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"reach": "tags:x", "most": "1"}, "reach"),
        ({"reach": "all", "rate": "many"}, "rate"),
        ({"reach": "all", "most": "0"}, "most"),
        ({"reach": "all"}, "reach"),
    ],
)
async def test_wrong_input_for_a_limit_is_told_beside_its_field(
    client: httpx2.AsyncClient, tick: Everytick, typed: dict[str, str], field: str
) -> None:
    answer = await sent(client, "/do/limit", **typed)
    assert answer.status_code == 422
    assert f'id="f-{field}-wrong"' in answer.text
    assert not (await tick.limits()).reaches
