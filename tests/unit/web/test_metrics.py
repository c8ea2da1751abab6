"""`/metrics` over HTTP: readable by Prometheus' own parser, guarded, and honest while the store is away."""

import asyncio
from typing import TypeVar

import httpx2
import pytest

from everytick import Everytick
from everytick.access.people import Person, Role
from everytick.domain.question import Question
from everytick.errors import StoreUnavailable
from everytick.metrics.catalogue import METRICS
from everytick.stores.base import Nodes
from everytick.web.asking import role_needed
from everytick.web.known_jobs import KnownJobs
from everytick.web.metrics import router
from tests.unit.metrics.reading import read

A = TypeVar("A")


async def test_prometheus_can_read_the_answer(client: httpx2.AsyncClient, tick: Everytick) -> None:
    await tick.pause("nightly")
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = read(answer.text)
    assert found.of("everytick_store_up") == 1
    assert found.of("scheduler_jobs_paused_total") == 1
    assert found.of("everytick_job_paused", job="nightly") == 1
    assert found.of("everytick_job_paused", job="orders/daily") == 0
    assert found.labels("everytick_build_info")[0].keys() == {"version", "python", "zone_data"}
    named = {line.split(" ")[2] for line in answer.text.splitlines() if line.startswith("# TYPE")}
    assert named <= METRICS.keys()


async def test_while_the_store_is_away_the_node_still_tells_its_own_numbers(
    client: httpx2.AsyncClient, tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_: object) -> None:
        raise StoreUnavailable("memory://", "it is away")

    monkeypatch.setattr(await tick._opened(), "ask", away)
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    found = read(answer.text)
    assert found.of("everytick_store_up") == 0
    assert found.labels("everytick_build_info")
    assert found.labels("scheduler_jobs_running_total") == []


async def test_two_scrapes_in_a_row_ask_the_store_once(
    client: httpx2.AsyncClient, tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, asked = await tick._opened(), []
    ask = store.ask

    async def counting(question: Question[A]) -> A:
        asked.extend([question] if isinstance(question, Nodes) else [])
        return await ask(question)

    monkeypatch.setattr(store, "ask", counting)
    for _ in range(3):
        await client.get("/metrics")
    assert len(asked) == 1


async def test_scrapes_at_the_same_time_share_one_reading_and_one_that_is_given_up_ends_none(
    client: httpx2.AsyncClient, tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, asked = await tick._opened(), []
    ask, is_asked, may_answer = store.ask, asyncio.Event(), asyncio.Event()

    async def waiting(question: Question[A]) -> A:
        asked.extend([question] if isinstance(question, Nodes) else [])
        is_asked.set()
        await may_answer.wait()
        return await ask(question)

    monkeypatch.setattr(store, "ask", waiting)
    first, *others = [asyncio.create_task(tick.metrics()) for _ in range(4)]
    await is_asked.wait()
    first.cancel()
    may_answer.set()
    told = await asyncio.gather(*others)
    assert first.cancelled()
    assert len(asked) == 1
    assert {read(text).of("everytick_store_up") for text in told} == {1}


def test_it_needs_a_person_that_may_look() -> None:
    [route] = router.routes
    assert role_needed(route) is Role.VIEWER
    assert Person("prometheus", Role.VIEWER).may(Role.VIEWER)


async def test_a_job_that_the_node_begins_to_count_has_its_own_label_at_once(
    client: httpx2.AsyncClient, tick: Everytick
) -> None:
    """S0-107: what is written of a reading is kept with it, and the meter decides which jobs have a label."""
    meter = tick._listeners.meter
    meter.limit = 1
    first = {each["job"] for each in read((await client.get("/metrics")).text).labels("everytick_job_paused")}
    meter.lost((await tick.job("orders/daily")).job)
    then = {each["job"] for each in read((await client.get("/metrics")).text).labels("everytick_job_paused")}

    assert "orders/daily" not in first
    assert "orders/daily" in then


async def test_a_scrape_uses_the_jobs_that_pages_have_had_read(
    client: httpx2.AsyncClient, tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S0-107: of ten thousand jobs the list takes a tenth of a second to read."""
    known = KnownJobs(tick, cheap=0.0)
    await known.listed()
    store, asked = await tick._opened(), []

    async def refused(**given: object) -> object:
        asked.append(given)
        return []

    monkeypatch.setattr(store, "list", refused)
    monkeypatch.setattr(client._transport.app.app.state, "known_jobs", known)  # type: ignore[attr-defined]
    found = read((await client.get("/metrics")).text)
    known.forget()

    assert not asked
    assert found.of("everytick_job_paused", job="nightly") == 0
