"""What a browser shows of a job, an occurrence and a year: readable for everybody, and output that grows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from everytick import Context, Everytick, every
from tests.acceptance.web.accessible import faults
from tests.acceptance.web.browsing import DESK, PHONE, Reader, served


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


async def test_output_of_a_running_task_appears_by_itself_and_its_end_is_told(tmp_path: Path, reader: Reader) -> None:
    end = asyncio.Event()
    async with shop(tmp_path, end) as (tick, _, running), served(tick) as url:
        page = await reader.open(f"{url}occurrences/{running}")
        while await page.locator("#log").count() == 0:
            await page.reload()
        await page.get_by_text("first words").wait_for()

        end.set()
        await page.get_by_text("last words").wait_for()
        again = page.get_by_text("It has ended: load the page again")
        await again.click()
        await page.get_by_role("heading", name="completed").wait_for()
        assert await page.locator("[data-follow]").count() == 0
        await reader.leave()


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
