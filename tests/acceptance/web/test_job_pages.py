"""What a browser shows of a job, an occurrence and a year: readable for every person, and output that grows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from everytick import Context, Everytick, Retry, every
from tests.acceptance.web.accessible import faults
from tests.acceptance.web.browsing import DESK, PHONE, LeavingStore, Reader, served


@asynccontextmanager
async def shop(folder: Path, end: asyncio.Event) -> AsyncIterator[tuple[Everytick, str, str]]:
    """Run an application with a job that failed and one that talks until `end`; the ids of their occurrences."""
    tick = Everytick(f"sqlite:///{folder}/e.db", name="shop", log_folder=folder / "logs")

    @tick.job(every("P1Y"), name="bad", tags=["warehouse"], description="Fails")
    def bad(ctx: Context) -> None:
        ctx.log.error("about to fail")
        raise ValueError("the file is empty")

    @tick.job(every("P1Y"), name="talk")
    async def talk(ctx: Context) -> None:
        ctx.log.info("first words")
        await end.wait()
        ctx.log.info("last words")

    async with tick:
        failed = await tick.trigger("bad")
        await failed.wait(timeout="60s")
        running = await tick.trigger("talk")
        yield tick, failed.id, running.id
        end.set()
        await running.wait(timeout="60s")


@pytest.mark.parametrize(("theme", "width"), [("light", DESK), ("dark", PHONE)])
async def test_everybody_can_read_the_pages_of_a_job(tmp_path: Path, reader: Reader, theme: str, width: int) -> None:
    end = asyncio.Event()
    async with shop(tmp_path, end) as (tick, failed, _), served(tick) as url:
        for path in (
            "jobs/bad",
            "jobs/bad?as=table",
            "jobs/bad/versions",
            "jobs/bad/coverage",
            f"occurrences/{failed}",
            f"occurrences/{failed}?as=table",
            "year?job=bad",
            "year",
        ):
            page = await reader.open(f"{url}{path}", theme=theme, width=width)
            assert await faults(page) == [], path
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, path
            await reader.leave()


async def test_the_last_attempt_is_in_sight_and_a_fold_says_its_length_inside(tmp_path: Path, reader: Reader) -> None:
    """On a telephone the picture is wider than its panel, and begins at its end."""
    tick = Everytick(f"sqlite:///{tmp_path}/e.db", name="shop", poll="100ms")

    @tick.job(every("P1Y"), name="again", retry=Retry(1, "1500ms"))
    def again() -> None:
        raise ValueError("twice")

    async with tick, served(tick) as url:
        failed = await (await tick.trigger("again")).wait(timeout="60s")
        for width in (PHONE, DESK):
            page = await reader.open(f"{url}occurrences/{failed.id}", width=width)
            panel = await page.locator(".gantt").bounding_box()
            last = await page.locator(".gantt rect.m-wrong").last.bounding_box()
            fold = await page.locator(".gantt .fold-words").bounding_box()
            assert panel is not None
            assert last is not None
            assert fold is not None
            # It may begin further left than its panel, where it took far longer than the first.
            assert panel["x"] < last["x"] + last["width"] <= panel["x"] + panel["width"] + 1, width
            inside = panel["x"] <= fold["x"] < fold["x"] + fold["width"] <= panel["x"] + panel["width"]
            assert inside or width == PHONE
            assert await page.locator(".gantt .fold-edge").count() == 1
            await reader.leave()


async def test_output_of_a_running_task_appears_by_itself_and_its_end_is_told(tmp_path: Path, reader: Reader) -> None:
    end = asyncio.Event()
    async with shop(tmp_path, end) as (tick, _, running), served(tick) as url:
        page = await reader.open(f"{url}occurrences/{running}")
        while await page.locator("#log").count() == 0:
            await page.reload()
        await page.get_by_text("first words").wait_for()

        await page.evaluate("window.isSamePage = true")
        end.set()
        await page.get_by_text("last words").wait_for()
        await page.get_by_role("heading", name="completed").wait_for()
        await page.get_by_text("Why it ran, and why it ended so").wait_for()
        assert await page.locator("[data-follow]").count() == 0
        assert await page.evaluate("window.isSamePage")
        await reader.leave()


async def test_open_pages_of_jobs_follow_what_happens(tmp_path: Path, reader: Reader) -> None:
    """They said for ever what was so when they were opened. What would move a table waits behind a button."""
    end = asyncio.Event()
    async with shop(tmp_path, end) as (tick, _, running), served(tick) as url:
        job, jobs = await reader.open(f"{url}jobs/talk"), await reader.open(f"{url}jobs")
        past, one = await reader.open(f"{url}history"), await reader.open(f"{url}occurrences/{running}")
        for page in (job, jobs, past, one):
            await page.wait_for_selector("#live.on")
            await page.evaluate("window.isSamePage = true")
        await job.locator("#policies ~ details, [aria-labelledby=policies] details").first.click()
        end.set()
        await job.get_by_role("heading", name="talk is well").wait_for()
        await one.get_by_role("heading", name="completed").wait_for()
        await jobs.locator("tr", has_text="talk").get_by_text("completed").wait_for()
        await past.locator("tr", has_text="talk").get_by_text("completed").wait_for()
        assert await job.locator("[aria-labelledby=policies] details[open]").count() == 1
        await tick.trigger("bad")
        await past.get_by_role("button", name="Show what is new").wait_for()
        assert await past.locator("tbody tr").count() == 2
        for page in (job, jobs, past, one):
            assert await page.evaluate("window.isSamePage")
        await past.get_by_role("button", name="Show what is new").click()
        await past.locator("tbody tr").nth(2).wait_for()
        await reader.leave()


async def test_an_open_page_keeps_what_the_last_deed_told(reader: Reader) -> None:
    """It was gone with its Undo some seconds later, as soon as anything happened to the job."""
    tick = Everytick("memory://", name="shop", poll="100ms")
    tick.job(every("P1Y"), name="quiet")(lambda: None)
    await tick.start()
    async with served(tick) as url:
        page = await reader.open(f"{url}jobs/quiet/do/pause")
        await page.get_by_role("button", name="Pause quiet").click()
        await page.wait_for_selector("#live.on")
        assert await page.get_by_role("heading", name="quiet is paused").count() == 1
        await tick.trigger("quiet")
        await page.locator(".tile").first.get_by_text("completed").wait_for()
        await page.get_by_role("button", name="Undo").click()
        await page.get_by_role("heading", name="quiet is well").wait_for()
        await reader.leave()
    await tick.stop()


async def test_an_open_page_takes_away_nothing_that_was_typed_or_chosen(reader: Reader) -> None:
    tick = Everytick("memory://", name="shop", poll="100ms")
    for name in ("one", "other"):
        tick.job(every("P1Y"), name=name)(lambda: None)
    await tick.start()
    await (await tick.trigger("one")).wait("30s")
    async with served(tick) as url:
        past, jobs = await reader.open(f"{url}history"), await reader.open(f"{url}jobs")
        for page in (past, jobs):
            await page.wait_for_selector("#live.on")
        await past.fill("#job", "on")
        await jobs.get_by_label("choose one").check()
        for page in (past, jobs):
            await page.evaluate("document.activeElement.blur()")
        await tick.trigger("other")
        await past.get_by_role("heading", name="2 occurrences").wait_for()
        await jobs.locator(".chip", has_text="never_ran").wait_for(state="detached")
        assert await past.input_value("#job") == "on"
        assert await jobs.get_by_label("choose one").is_checked()
        await reader.leave()
    await tick.stop()


async def test_an_open_page_of_a_job_says_that_the_store_is_away(reader: Reader) -> None:
    store = LeavingStore()
    tick = Everytick(store, name="shop")
    tick.job(every("P1Y"), name="quiet")(lambda: None)
    await tick.start()
    async with served(tick) as url:
        page = await reader.open(f"{url}jobs/quiet")
        await page.wait_for_selector("#live.on")
        reader.expect(page, 503)
        store.is_away = True
        await page.get_by_role("alert").wait_for()
        assert await page.inner_text(".banner.wrong") == "The store does not answer."
        assert (await page.inner_text("#live")).startswith("not live since ")
        assert await page.locator("[aria-labelledby=next]").count() == 1
        assert await page.locator("main a[href*='/do/']").count() == 0
        store.is_away = False
        await page.wait_for_selector("#live.on")
        assert await page.locator(".banner").count() == 0
        assert await page.get_by_text("Trigger…").count() == 1
        await reader.leave()
    await tick.stop()


async def test_the_page_of_an_occurrence_works_without_script(tmp_path: Path, reader: Reader) -> None:
    end = asyncio.Event()
    async with shop(tmp_path, end) as (tick, failed, _), served(tick) as url:
        page = await reader.open(f"{url}occurrences/{failed}", script=False)

        assert await page.get_by_role("heading", name="failed: bad failed").count() == 1
        while await page.get_by_text("about to fail").count() == 0:
            await page.reload()  # output is written by a thread of its own
        assert not await page.get_by_text("Traceback (most recent call last)").is_visible()
        await page.get_by_text("Traceback, 1 frame").click()
        assert await page.get_by_text("Traceback (most recent call last)").is_visible()
        await reader.leave()
