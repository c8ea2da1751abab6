"""What is done to people, tokens and sessions in a browser, with script and without, from the first link on."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page, expect

from everytick import Everytick, every
from everytick.domain.people import CameBy, Doer, Role
from everytick.errors import EverytickError
from tests.acceptance.web.accessible import faults
from tests.acceptance.web.browsing import DESK, PHONE, Reader, served

PASSWORD, OTHER = "correct horse battery", "another long password"
SETUP = Doer("setup", CameBy.COMMAND)


class Office:
    """A service with users, and its admin `ann`, who has signed in."""

    def __init__(self, tick: Everytick, reader: Reader, page: Page, url: str, *, script: bool) -> None:
        self.tick, self.reader, self.page, self.url, self.script = tick, reader, page, url, script

    async def user(self, name: str) -> str:
        """Add a user for one story."""
        with self.tick.acting_as(SETUP):
            await self.tick.people.add_user(name, Role.VIEWER, password=PASSWORD)
        return name

    async def sign_in(self, page: Page, name: str, password: str) -> None:
        """Sign in, if the page asks for it."""
        await page.goto(f"{self.url}signin")
        await page.fill("#name", name)
        await page.fill("#password", password)
        await page.get_by_role("button", name="Sign in").click()

    async def other(self) -> Page:
        """Return a window of another browser."""
        return await self.reader.open(f"{self.url}signin", script=self.script)

    async def ask(self, link: str, *, on: str = "access") -> None:
        """Open what asks before a deed, by the link on the page that lists it."""
        await self.page.goto(self.url + on)
        await self.page.locator(f"a[href$='{link}']").first.click()
        await expect(self.page.locator("main form[method=post]")).to_be_visible()
        assert await faults(self.page) == []

    async def send(self, button: str, *, status: int = 200, **typed: str) -> None:
        """Fill the form and press its button, which is answered with this status."""
        form = self.page.locator("main form[method=post]")
        for name, text in typed.items():
            field = form.locator(f"[name='{name}']")
            if await field.evaluate("field => field.tagName") == "SELECT":
                await field.select_option(text)
            else:
                await field.fill(text)
        await self.reader.press(self.page, button, expect_status=status)

    async def listed(self, text: str, *, is_there: bool = True) -> None:
        """The page Access lists it, or does not any more."""
        await self.page.wait_for_url("**/access")
        users = expect(self.page.locator("main"))
        await (users.to_contain_text(text) if is_there else users.not_to_contain_text(text))


Story = Callable[[Office], Awaitable[None]]
STORIES: dict[str, Story] = {}
"""What is done, by the route that it is sent to."""


def of(route: str) -> Callable[[Story], Story]:
    """Register the story of one route."""

    def register(story: Story) -> Story:
        STORIES[route] = story
        return story

    return register


# ---------------------------------------------------------------------------------------------------------------- users


@of("/access/users/add")
async def _add_user(office: Office) -> None:
    """Two passwords that differ are refused beside what was typed, and the new user can sign in."""
    await office.ask("/access/users/add")
    given = {"name": "eva", "role": "operator", "password": PASSWORD, "again": OTHER}
    await office.send("Add the user", status=422, **given)
    await expect(office.page.locator("[role=alert]")).to_contain_text("The two passwords differ")
    assert await office.page.input_value("[name=name]") == "eva"
    await office.send("Add the user", password=PASSWORD, again=PASSWORD)
    await office.listed("eva")
    assert (await office.tick.people.user("eva")).role is Role.OPERATOR
    window = await office.other()
    await office.sign_in(window, "eva", PASSWORD)
    await expect(window.get_by_role("link", name="Sign out")).to_be_visible()


@of("/access/users/{user:name}/role")
async def _set_role(office: Office) -> None:
    name = await office.user("ben")
    await office.ask(f"/access/users/{name}/role")
    await office.send("Change the role", role="operator")
    await office.listed("operator")
    assert (await office.tick.people.user(name)).role is Role.OPERATOR


@of("/access/users/{user:name}/password")
async def _set_password(office: Office) -> None:
    name = await office.user("cid")
    await office.ask(f"/access/users/{name}/password")
    await office.send("Set the password", password=OTHER, again=OTHER)
    await office.listed(name)
    window = await office.other()
    await office.sign_in(window, name, OTHER)
    await expect(window.get_by_role("link", name="Sign out")).to_be_visible()


@of("/access/users/{user:name}/remove")
async def _remove_user(office: Office) -> None:
    """The name has to be typed."""
    name = await office.user("dora")
    await office.ask(f"/access/users/{name}/remove")
    await office.send("Remove the user", status=422, name="doris")
    await expect(office.page.locator("[role=alert]")).to_contain_text("Type the name, dora")
    await office.send("Remove the user", name=name)
    await office.listed(name, is_there=False)
    assert name not in [each.name for each in await office.tick.people.users()]


# ------------------------------------------------------------------------------------------------- tokens and sessions


@of("/access/tokens/add")
async def _add_token(office: Office) -> None:
    """The token is shown once, and opens the API."""
    await office.ask("/access/tokens/add")
    await office.send("Add the token", status=201, name="deploy", role="viewer", lasts="7d")
    secret = await office.page.locator("pre.code").inner_text()
    answer = await office.page.request.get(f"{office.url}api/jobs", headers={"authorization": f"Bearer {secret}"})
    assert answer.status == 200
    await office.page.get_by_role("link", name="Done").click()
    await office.listed("deploy")
    assert secret not in await office.page.content()


@of("/access/tokens/{token:name}/revoke")
async def _revoke_token(office: Office) -> None:
    with office.tick.acting_as(SETUP):
        made = await office.tick.people.add_token("old", Role.VIEWER)
    await office.ask(f"/access/tokens/{made.token.id}/revoke")
    await office.send("Revoke the token")
    await office.listed("1 ended token")
    answer = await office.page.request.get(f"{office.url}api/jobs", headers={"authorization": f"Bearer {made.text}"})
    assert answer.status == 401


@of("/access/sessions/{session}/end")
async def _end_session(office: Office) -> None:
    """The other browser has to sign in again at its next page."""
    name = await office.user("fay")
    window = await office.other()
    await office.sign_in(window, name, PASSWORD)
    await expect(window.get_by_role("link", name="Sign out")).to_be_visible()
    [session] = [each for each in await office.tick.people.sessions() if each.user and each.user.name == name]
    await office.ask(f"/access/sessions/{session.hash[:16]}/end")
    await office.send("End the session")
    await office.page.wait_for_url("**/access")
    await window.goto(f"{office.url}jobs")
    assert "/signin" in window.url


@of("/access/me")
async def _own_password(office: Office) -> None:
    """The old password has to be known."""
    name = await office.user("gus")
    window, admin = await office.other(), office.page
    await office.sign_in(window, name, PASSWORD)
    office.page = window
    try:
        await office.ask("/access/me", on="jobs")
        await office.send("Change the password", status=422, old=OTHER, password=OTHER, again=OTHER)
        await expect(window.locator("[role=alert]")).to_be_visible()
        await office.send("Change the password", old=PASSWORD, password=OTHER, again=OTHER)
        await window.wait_for_url("**/signin**")
    finally:
        office.page = admin
    again = await office.other()
    await office.sign_in(again, name, OTHER)
    await expect(again.get_by_role("link", name="Sign out")).to_be_visible()


# ------------------------------------------------------------------------------------------------------------ the tests


@asynccontextmanager
async def office_of(reader: Reader, *, script: bool) -> AsyncIterator[Office]:
    """Serve an application, make its first admin with the link that works once, and stay signed in."""
    tick = Everytick("memory://", name="shop")
    tick.job(every("1h"), name="etl")(lambda: None)
    await tick.sync()
    secret = (await tick.people.first_link()).text
    width, theme = (DESK, "light") if script else (PHONE, "dark")
    async with served(tick) as url:
        page = await reader.open(f"{url}welcome?link={secret}", script=script, width=width, theme=theme)
        office = Office(tick, reader, page, url, script=script)
        await office.send("Make the first admin", name="ann", password=PASSWORD, again=PASSWORD)
        await expect(page.get_by_role("link", name="Sign out")).to_be_visible()
        yield office
    await tick.close()


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
async def test_every_deed_to_people_is_done_from_its_page(reader: Reader, script: bool) -> None:
    async with office_of(reader, script=script) as office:
        wrong = {}
        for route in sorted(STORIES):
            try:
                await STORIES[route](office)
            except (AssertionError, EverytickError, PlaywrightError) as error:
                wrong[route] = str(error)

    assert wrong == {}


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
async def test_the_link_to_the_first_admin_works_once(reader: Reader, script: bool) -> None:
    tick = Everytick("memory://", name="shop")
    secret = (await tick.people.first_link()).text
    async with served(tick) as url:
        page = await reader.open(f"{url}welcome?link={secret}", script=script)
        office = Office(tick, reader, page, url, script=script)
        await office.send("Make the first admin", status=422, name="ann", password=PASSWORD, again=OTHER)
        await expect(page.locator("[role=alert]")).to_contain_text("The two passwords differ")
        await office.send("Make the first admin", password=PASSWORD, again=PASSWORD)
        await expect(page.get_by_role("link", name="Sign out")).to_be_visible()
        [admin] = await tick.people.users()
        used = await reader.open(f"{url}welcome?link={secret}", script=script, expect_status=404)
        said = await used.locator("main").inner_text()
    await tick.close()

    assert (admin.name, admin.role) == ("ann", Role.ADMIN)
    assert "this link is used" in said.lower()
