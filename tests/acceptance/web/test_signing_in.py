"""Signing in with a real browser: what only a browser shows of cookies, other sites and frames."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Page

from everytick import Everytick, every
from everytick.domain.people import CameBy, Doer, Role
from tests.acceptance.web.browsing import PATIENCE_MILLISECONDS, served

PASSWORD = "correct horse battery"


@pytest_asyncio.fixture(loop_scope="session")
async def tick() -> AsyncIterator[Everytick]:
    made = Everytick("memory://", name="shop")
    made.job(every("1h"), name="etl")(lambda: None)
    await made.sync()
    with made.acting_as(Doer("setup", CameBy.COMMAND)):
        await made.people.add_user("ann", Role.ADMIN, password=PASSWORD)
    yield made
    await made.close()


async def _signed_in(browser: Browser, url: str, *, script: bool = True) -> Page:
    context = await browser.new_context(java_script_enabled=script)
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    page = await context.new_page()
    await page.goto(f"{url}audit?by=setup")
    await page.fill("#name", "ann")
    await page.fill("#password", PASSWORD)
    await page.click("button.go")
    await page.wait_for_url("**/audit?by=setup")
    return page


async def _elsewhere(page: Page, html: str) -> None:
    """Show a page of another site: another name is another site, also on this host."""
    await page.route("http://example.org/*", lambda route: route.fulfill(content_type="text/html", body=html))
    await page.goto("http://example.org/evil")


async def test_a_person_signs_in_and_out_without_script(browser: Browser, tick: Everytick) -> None:
    async with served(tick) as url:
        page = await _signed_in(browser, url, script=False)
        [cookie] = [each for each in await page.context.cookies() if each["name"] == "everytick_session"]
        await page.click("text=Sign out")
        await page.click("button.go")
        await page.wait_for_url("**/signin")
        left = [each["name"] for each in await page.context.cookies()]
        await page.context.close()

    assert (cookie["path"], cookie["httpOnly"], cookie["sameSite"]) == ("/", True, "Strict")
    assert "everytick_session" not in left


async def test_a_link_of_another_site_arrives_signed_in(browser: Browser, tick: Everytick) -> None:
    """The strict cookie is left out at first; a page of ours asks again and brings it along."""
    async with served(tick) as url:
        page = await _signed_in(browser, url)
        await _elsewhere(page, f'<a id="go" href="{url}audit?job=etl">go</a>')
        await page.click("#go")
        await page.wait_for_selector("h1")
        await page.wait_for_url("**/audit?job=etl")
        await page.wait_for_selector(".filters")
        heading = await page.text_content("h1")
        await page.context.close()

    assert heading == "Nothing was done to job etl."


async def test_a_form_and_a_frame_of_another_site_do_nothing(browser: Browser, tick: Everytick) -> None:
    """S4, S7: forged forms and click-jacking."""
    async with served(tick) as url:
        page = await _signed_in(browser, url)
        form = f'<form method="post" action="{url}do/brake"><input name="reason" value="x"><button>go</button></form>'
        await _elsewhere(page, f'{form}<iframe src="{url}audit"></iframe>')
        framed = await page.frames[1].content()
        async with page.expect_response("**/do/brake") as answered:
            await page.click("button")
        status = (await answered.value).status
        await page.goto(f"{url}audit")
        heading = await page.text_content("h1")
        await page.context.close()

    assert "Last:" not in framed
    assert status in (401, 403)
    assert heading == "Last: ann signed in."
