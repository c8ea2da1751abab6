"""Deeds in a real browser: from the page of a job to what the store holds, with script and without."""

from datetime import date

import pytest
from playwright.async_api import Page, expect

from everytick import Everytick, every
from everytick.errors import NotFound
from tests.acceptance.web.accessible import faults
from tests.acceptance.web.browsing import DESK, PHONE, Reader, served

SCRIPT = pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])


@pytest.fixture
def tick() -> Everytick:
    """An application with one job, on a store in memory. No node runs."""
    made = Everytick("memory://", name="shop")

    @made.job(every("1h"), name="etl-orders", tags=["billing"])
    def etl_orders(day: date = date(2026, 10, 23), full: bool = False) -> None: ...

    return made


async def opened(page: Page, url: str, deed: str, *, script: bool, on: str = "jobs/etl-orders") -> Page:
    """Follow the link to a deed on the page of the job, or on the one behind More. With script it opens as a dialog."""
    await page.goto(f"{url}{on}")
    await page.locator(f"main a[href$='/do/{deed}']").first.click()
    await expect(page.locator("dialog.deed[open] #deed-title" if script else "main h1")).to_contain_text("etl-orders")
    assert page.url.endswith(f"/{on}") == script
    return page


@SCRIPT
async def test_a_job_is_triggered_with_a_form(tick: Everytick, reader: Reader, script: bool) -> None:
    await tick.sync()
    async with served(tick) as url:
        page = await opened(await reader.open(f"{url}jobs", script=script), url, "trigger", script=script)
        await page.get_by_label("day").fill("2026-11-01")
        await page.get_by_label("full").check()
        await page.get_by_role("button", name="Trigger etl-orders").click()

        await expect(page.locator(".banner[role=status]")).to_contain_text("Triggered etl-orders.")
        store = await tick._opened()
        id_ = (await tick.job("etl-orders")).job.id
        [request] = (await store.look([id_]))[id_].requests
        assert request.payload is not None
        assert request.payload.read() == {"day": "2026-11-01", "full": True}
        await reader.leave()
    await tick.close()


@SCRIPT
async def test_a_pause_is_undone_from_its_notice(tick: Everytick, reader: Reader, script: bool) -> None:
    await tick.sync()
    async with served(tick) as url:
        page = await opened(await reader.open(f"{url}jobs", script=script), url, "pause", script=script)
        await page.get_by_role("button", name="Pause etl-orders").click()
        await expect(page.locator(".banner[role=status]")).to_contain_text("Paused etl-orders.")
        assert (await tick.job("etl-orders")).pause is not None

        await page.get_by_role("button", name="Undo").click()
        await expect(page.locator(".banner[role=status]")).to_contain_text("Resumed etl-orders.")
        assert (await tick.job("etl-orders")).pause is None
        await reader.leave()
    await tick.close()


async def test_a_job_is_removed_by_typing_its_name(tick: Everytick, reader: Reader) -> None:
    await tick.sync()
    async with served(tick) as url:
        page = await opened(await reader.open(f"{url}jobs"), url, "remove", script=True, on="jobs/etl-orders/do")
        await page.get_by_label("Type etl-orders to remove it").fill("etl-orders")
        await page.get_by_role("button", name="Remove etl-orders").click()

        await expect(page.locator(".banner[role=status]")).to_contain_text("Removed etl-orders.")
        with pytest.raises(NotFound):
            await tick.job("etl-orders")
        await reader.leave()
    await tick.close()


async def test_a_dialog_closes_and_gives_the_focus_back(tick: Everytick, reader: Reader) -> None:
    await tick.sync()
    async with served(tick) as url:
        page = await opened(await reader.open(f"{url}jobs"), url, "pause", script=True)
        assert await faults(page) == []
        await page.locator("dialog.deed").get_by_role("link", name="Back").click()

        await expect(page.locator("dialog.deed")).to_have_count(0)
        await expect(page.locator("main a[href$='/do/pause']").first).to_be_focused()
        await reader.leave()
    await tick.close()


@pytest.mark.parametrize(("theme", "width"), [("light", DESK), ("dark", PHONE)])
async def test_everybody_can_read_and_use_the_pages(tick: Everytick, reader: Reader, theme: str, width: int) -> None:
    await tick.sync()
    await tick.pause("etl-orders")
    until = "until=nonsense"
    async with served(tick) as url:
        for path in (
            "jobs",
            "history?job=etl-orders",
            "jobs/etl-orders/do/trigger",
            f"jobs/etl-orders/do/pause?{until}",
        ):
            page = await reader.open(f"{url}{path}", theme=theme, width=width)
            assert await faults(page) == [], path
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        await reader.leave()
    await tick.close()
