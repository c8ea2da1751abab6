"""The page Now in a browser: readable by every person, alive with script, whole without."""

import asyncio

import pytest

from everytick import Everytick, every
from tests.acceptance.web.accessible import faults
from tests.acceptance.web.browsing import DESK, PHONE, LeavingStore, Reader, served


class Gate:
    """A task that runs until the test lets it go."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def tick(gate: Gate) -> Everytick:
    """An application with a job that waits for the test, one that fails, and a paused one."""
    made = Everytick("memory://", name="shop")

    @made.job("0 0 1 1 *", name="waits")
    async def waits() -> None:
        await gate.opened.wait()

    @made.job("0 0 1 1 *", name="fails")
    async def fails() -> None:
        raise ConnectionError("connection timed out")

    @made.job(every("10m"), name="quiet")
    async def quiet() -> None: ...

    return made


async def started(tick: Everytick) -> None:
    """Start the node, and let the job fail once."""
    await tick.start()
    events = tick.events("fails")
    await tick.trigger("fails")
    async for event in events:
        if event.kind == "ended":
            return


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE])
async def test_everybody_can_read_the_page(tick: Everytick, reader: Reader, theme: str, width: int) -> None:
    await started(tick)
    async with served(tick) as url:
        page = await reader.open(url, theme=theme, width=width)

        assert await page.title() == "One job needs a look · everytick"
        assert await faults(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        await reader.leave()
    await tick.stop()


async def test_a_lane_changes_as_soon_as_its_job_does(tick: Everytick, reader: Reader, gate: Gate) -> None:
    """Live: the stream names the lane, and its new picture is there without a reload."""
    await started(tick)
    async with served(tick) as url:
        page = await reader.open(url)
        await page.wait_for_selector("#live.on")
        await page.evaluate("window.isSamePage = true")
        await tick.trigger("waits")
        await page.wait_for_selector('[data-lane="waits"] .m-present')
        gate.opened.set()
        await page.wait_for_selector('[data-lane="waits"] .m-done')

        assert await page.evaluate("window.isSamePage")
        await reader.leave()
    await tick.stop()


async def test_a_lane_under_the_pointer_is_left_alone(tick: Everytick, reader: Reader, gate: Gate) -> None:
    await started(tick)
    async with served(tick) as url:
        page = await reader.open(url)
        await page.wait_for_selector("#live.on")
        await page.hover('[data-lane="waits"]')
        await tick.trigger("waits")
        await tick.trigger("quiet")
        # The other lane has changed later, and shows it.
        await page.wait_for_selector('[data-lane="quiet"] .m-done')
        assert await page.locator('[data-lane="waits"] .m-present').count() == 0
        await page.hover("h1")
        await page.wait_for_selector('[data-lane="waits"] .m-present')
        gate.opened.set()
        await reader.leave()
    await tick.stop()


async def test_the_page_says_that_it_is_not_live_when_the_service_stops(tick: Everytick, reader: Reader) -> None:
    await started(tick)
    async with served(tick) as url:
        page = await reader.open(url)
        await page.wait_for_selector("#live.on")
    await page.wait_for_function("document.getElementById('live').textContent.startsWith('not live since')")
    await tick.stop()
    # The browser says itself on the console that nothing listens there any more.
    reader.complaints[:] = [each for each in reader.complaints if "ERR_CONNECTION_REFUSED" not in each]
    await reader.leave()


async def test_without_script_the_page_is_whole_and_asks_for_itself_again(tick: Everytick, reader: Reader) -> None:
    await started(tick)
    async with served(tick) as url:
        page = await reader.open(url, script=False)

        assert await page.locator(".lanes > li").count() == 3
        assert await page.locator(".attention > li").count() == 1
        assert await page.locator("noscript meta[http-equiv=refresh]").count() == 1
        await page.click("text=as a table")
        assert await page.locator("tbody tr").count() >= 2
        await reader.leave()
    await tick.stop()


async def test_the_first_run_fills_by_itself(reader: Reader) -> None:
    tick = Everytick("memory://", name="shop")
    await tick.start()
    async with served(tick) as url:
        page = await reader.open(url)
        assert await page.inner_text("h1") == "No job yet. Everything else is ready."
        assert await faults(page) == []

        @tick.job(every("1s"))
        async def heartbeat() -> None: ...

        await tick.sync()
        await page.wait_for_selector('[data-lane="heartbeat"]')
        assert await page.inner_text("h1") == "The one job is well."
        await reader.leave()
    await tick.stop()


async def test_an_open_page_says_that_the_store_is_away_and_goes_on_when_it_is_back(reader: Reader) -> None:
    """Nothing was touched in the browser: neither the dot nor the clock may say that all is well."""
    store = LeavingStore()
    tick = Everytick(store, name="shop")

    @tick.job(every("P1Y"), name="quiet")
    async def quiet() -> None: ...

    await tick.start()
    async with served(tick) as url:
        page = await reader.open(url)
        await page.wait_for_selector("#live.on")
        reader.expect(page, 503)
        store.is_away = True
        await page.wait_for_selector(".banner.wrong")
        assert (await page.inner_text("#live")).startswith("not live since ")
        assert (await page.inner_text("h1")).startswith("Known until ")
        assert (await page.title()).startswith("The store does not answer")
        assert await page.locator("[data-lane=quiet]").count() == 1
        assert await page.locator("main a[href*='/do/']").count() == 0
        assert await page.get_by_text("Trigger a job").count() == 0
        assert await faults(page) == []
        store.is_away = False
        await page.wait_for_selector("#live.on")
        assert await page.inner_text("h1") == "The one job is well."
        assert await page.locator(".banner").count() == 0
        await reader.leave()
    await tick.stop()


async def test_a_page_that_the_store_did_not_answer_asks_again_by_itself(reader: Reader) -> None:
    store = LeavingStore()
    tick = Everytick(store, name="shop")
    tick.job(every("P1Y"), name="quiet")(lambda: None)
    await tick.sync()
    async with served(tick) as url:
        store.is_away = True
        page = await reader.open(f"{url}jobs", expect_status=503)
        assert "asks again every 5 s" in await page.inner_text("main")
        store.is_away = False
        await page.wait_for_selector("table.jobs")
        await reader.leave()
    await tick.close()
