"""Pages about people and about what does not work, in a browser: every person can read them, in both themes.

Sign-in, the first admin, users, tokens, sessions; not allowed, not found, changed meanwhile, and the store away.
"""

import asyncio
from typing import Any

import pytest
from playwright.async_api import Page

from everytick import Everytick, every
from everytick.domain.people import CameBy, Doer, Role
from everytick.errors import StoreUnavailable
from everytick.stores.host_clock import HostClock
from everytick.stores.memory import MemoryStore
from tests.acceptance.web.accessible import faults
from tests.acceptance.web.browsing import DESK, PHONE, Reader, served

PASSWORD = "correct horse battery"

EVERY_LOOK = pytest.mark.parametrize(
    ("theme", "width"), [("light", DESK), ("dark", DESK), ("light", PHONE), ("dark", PHONE)]
)


class Judged:
    """A window, and the faults of the pages that it has shown, by what was shown."""

    def __init__(self, reader: Reader, page: Page, url: str) -> None:
        self.reader, self.page, self.url = reader, page, url
        self.found: dict[str, list[str]] = {}

    async def look(self, shown: str) -> None:
        """Judge what the window shows now."""
        if wrong := await faults(self.page):
            self.found[shown] = wrong

    async def open(self, path: str, *, status: int = 200) -> None:
        """Go to a page and judge it."""
        await self.reader.follow(self.page, self.url + path, expect_status=status)
        await self.look(path)

    async def send(self, button: str, *, status: int = 200, **typed: str) -> None:
        """Fill a form, press its button and judge the answer."""
        for name, text in typed.items():
            await self.page.fill(f"main [name={name}]", text)
        await self.reader.press(self.page, button, expect_status=status)
        await self.look(f"{button}: {status}")


async def _with_people() -> tuple[Everytick, str]:
    """Return an application with two users and two tokens, and the id of the token that is not revoked."""
    tick = Everytick("memory://", name="shop")
    tick.job(every("1h"), name="etl")(lambda: None)
    await tick.sync()
    with tick.acting_as(Doer("setup", CameBy.COMMAND)):
        await tick.people.add_user("ann", Role.ADMIN, password=PASSWORD)
        await tick.people.add_user("ben", Role.VIEWER, password=PASSWORD)
        token = await tick.people.add_token("ci", Role.OPERATOR)
        ended = await tick.people.add_token("old", Role.VIEWER)
        await tick.people.revoke_token(ended.token.id)
    return tick, token.token.id


@EVERY_LOOK
async def test_everybody_can_read_the_pages_about_people(reader: Reader, theme: str, width: int) -> None:
    tick, token = await _with_people()
    async with served(tick) as url:
        seen = Judged(reader, await reader.open(f"{url}signin", theme=theme, width=width), url)
        await seen.look("signin")
        await seen.send("Sign in", status=401, name="ann", password="not this one")
        await seen.open("signin?next=%2Faccess")
        await seen.send("Sign in", name="ann", password=PASSWORD)
        [session] = await tick.people.sessions()
        for user in ("role", "password", "remove"):
            await seen.open(f"access/users/ben/{user}")
        await seen.send("Remove the user", status=422, name="bem")
        await seen.open(f"access/tokens/{token}/revoke")
        await seen.open(f"access/sessions/{session.hash[:16]}/end")
        await seen.open("access/me")
        await seen.open("access/users/add")
        await seen.send("Add the user", status=422, name="a:b")
        await seen.open("access/tokens/add")
        await seen.send("Add the token", status=201, name="cd")
        await seen.open("audit")
        await seen.open("signout")
        await reader.leave()
    await tick.close()

    assert seen.found == {}


@EVERY_LOOK
async def test_everybody_can_read_how_the_first_admin_is_made(reader: Reader, theme: str, width: int) -> None:
    tick = Everytick("memory://", name="shop")
    secret = (await tick.people.first_link()).text
    async with served(tick) as url:
        seen = Judged(reader, await reader.open(f"{url}welcome?link={secret}", theme=theme, width=width), url)
        await seen.look("welcome")
        await seen.send("Make the first admin", status=422, name="ann", password=PASSWORD, again="x" * 20)
        await seen.send("Make the first admin", name="ann", password=PASSWORD, again=PASSWORD)
        await reader.leave()
    await tick.close()

    assert seen.found == {}


@EVERY_LOOK
async def test_everybody_can_read_what_is_refused(reader: Reader, theme: str, width: int) -> None:
    """Not allowed, not found, and changed meanwhile."""
    tick, _ = await _with_people()
    async with served(tick) as url:
        seen = Judged(reader, await reader.open(f"{url}signin", theme=theme, width=width), url)
        await seen.send("Sign in", name="ben", password=PASSWORD)
        await seen.open("jobs/etl")
        await seen.open("jobs/etl/do/pause", status=403)
        await seen.open("access", status=403)
        await seen.open("jobs/nothing-here", status=404)
        await reader.follow(seen.page, f"{url}signout")
        await seen.send("Sign out")
        await seen.send("Sign in", name="ann", password=PASSWORD)
        await seen.open("jobs/etl/do/edit")
        await seen.send("Look again", schedule="every 2h")
        await tick.update("etl", "every 3h", detach=True)
        await seen.send("Store it", status=412)
        await reader.leave()
    await tick.close()

    assert seen.found == {}


class Breakable:
    """A store that stops to answer when it is told to."""

    def __init__(self) -> None:
        self._store, self.is_gone = MemoryStore(HostClock()), False

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._store, name)
        if not asyncio.iscoroutinefunction(verb):
            return verb

        async def asking(*given: Any, **more: Any) -> Any:
            if self.is_gone:
                raise StoreUnavailable("postgresql://db", "connection refused")
            return await verb(*given, **more)

        return asking


@EVERY_LOOK
async def test_everybody_can_read_that_the_store_is_away(reader: Reader, theme: str, width: int) -> None:
    """With the last picture on the page Now, and as a refusal on the others."""
    store: Any = Breakable()
    tick = Everytick(store, name="shop")
    tick.job(every("1h"), name="etl", on_store_outage="fire_local", overlap="allow")(lambda: None)
    await tick.sync()
    async with served(tick) as url:
        seen = Judged(reader, await reader.open(url, theme=theme, width=width), url)
        store.is_gone = True
        await seen.open("", status=503)
        heading = await seen.page.locator("h1").inner_text()
        await seen.open("jobs", status=503)
        await seen.open("jobs/etl/do/pause", status=503)
        store.is_gone = False
        await reader.leave()
    await tick.close()

    assert heading.startswith("Known until")
    assert seen.found == {}
