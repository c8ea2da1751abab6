"""A store that says nothing: one request waits for it, the others are told at once, and all is well when it is back."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime

import httpx2
import pytest

from everytick import Everytick
from everytick.domain.people import CameBy, Doer, Role
from everytick.errors import Contended, StoreBroken, StoreUnavailable
from everytick.web import identity
from everytick.web.pulse import StorePulse
from tests.unit.web.conftest import client_of


class Frozen:
    """A store as it is behind a network that swallows everything: questions are neither answered nor refused."""

    def __init__(self, tick: Everytick, monkeypatch: pytest.MonkeyPatch) -> None:
        self._thawed, self.asked = asyncio.Event(), 0
        self._thawed.set()
        opened = tick._opened

        async def waiting() -> object:
            self.asked += not self._thawed.is_set()
            await self._thawed.wait()
            return await opened()

        monkeypatch.setattr(tick, "_opened", waiting)
        monkeypatch.setattr(tick.people, "_opened", waiting)

    def freeze(self) -> None:
        self._thawed.clear()

    def thaw(self) -> None:
        self._thawed.set()


@pytest.fixture
async def frozen(tick: Everytick, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Frozen]:
    await tick.sync()
    monkeypatch.setattr(identity, "_ANSWER_SECONDS", 0.05)
    found = Frozen(tick, monkeypatch)
    yield found
    found.thaw()
    await tick.close()


@pytest.fixture
async def ann(tick: Everytick, frozen: Frozen) -> httpx2.AsyncClient:
    """A client with a token, known to the service."""
    with tick.acting_as(Doer("setup", CameBy.COMMAND)):
        await tick.people.add_user("root", Role.ADMIN)
        made = await tick.people.add_token("ann", Role.ADMIN)
    service = tick.asgi()
    service.app.state.pulse._moment = 0.01
    asking = client_of(tick, service=service)
    asking.headers["authorization"] = f"Bearer {made.text}"
    assert (await asking.get("/")).status_code == 200
    return asking


async def test_pages_of_a_frozen_store_say_so_at_once_and_come_back_with_it(
    frozen: Frozen, ann: httpx2.AsyncClient
) -> None:
    """V5: every route that needs the store, without a question of its own to a store that does not answer."""
    frozen.freeze()
    await ann.get("/jobs")
    before = frozen.asked
    answers = {path: await ann.get(path) for path in ("/", "/jobs", "/history", "/api/jobs", "/api/jobs/nightly")}
    changed = await ann.post("/api/jobs/nightly/pause", json={})
    after = frozen.asked

    assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(answers, 503)
    assert changed.status_code == 503
    assert after - before <= 1, "one question at a time is asked"
    frozen.thaw()
    assert {path: (await ann.get(path)).status_code for path in answers} == dict.fromkeys(answers, 200)


async def test_metrics_say_that_the_store_is_away_for_as_long_as_it_is(
    frozen: Frozen, ann: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alert of a store that is away ended after five minutes, when the token was no longer known."""
    now = asyncio.get_running_loop().time()
    frozen.freeze()
    first = await ann.get("/metrics")
    monkeypatch.setattr("everytick.web.identity.time.monotonic", lambda: now + 86_400)
    later = await ann.get("/metrics")

    for answer in (first, later):
        assert (answer.status_code, "everytick_store_up 0" in answer.text) == (200, True)


async def test_who_was_not_known_before_is_not_let_in(frozen: Frozen, ann: httpx2.AsyncClient) -> None:
    """A proof that cannot be looked at is none."""
    frozen.freeze()
    stranger = {"authorization": f"Bearer etk_{'0' * 12}_{'a' * 43}"}

    for path in ("/", "/metrics", "/api/jobs"):
        assert (await ann.get(path, headers=stranger)).status_code == 503


async def test_a_store_that_is_busy_is_not_silent(tick: Everytick) -> None:
    pulse = StorePulse(tick)
    pulse.missed(Contended("the store", "two wrote at once"))

    await pulse.feel()
    pulse.missed(StoreUnavailable("the store", "refused"))
    await pulse.feel()
    assert isinstance(await tick.now(), datetime)
    await tick.close()


async def test_what_to_do_about_a_broken_store_is_told_to_every_reader(
    tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second request is told what the first one was told: the password is wrong, and where to correct it."""
    broken = StoreBroken("PostgreSQL at db", "password authentication failed", "correct the password in the address")

    async def refusing() -> object:
        raise broken

    monkeypatch.setattr(tick, "_opened", refusing)
    pulse = StorePulse(tick)
    pulse.missed(broken)
    for _ in range(2):
        with pytest.raises(StoreBroken) as told:
            await pulse.feel()
        assert str(told.value) == str(broken)
        assert told.value is not broken
