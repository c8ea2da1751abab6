"""`everytick serve` with several stores as a process, and a browser that goes from one store to the other."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser

from everytick import Everytick, every
from everytick.domain.people import CameBy, Doer, Role
from tests.acceptance.web.accessible import faults
from tests.acceptance.web.browsing import DESK, PATIENCE_MILLISECONDS, PHONE, Reader

AWAY = "gone=postgresql://nobody@127.0.0.1:1/nothing"
PASSWORD = "correct horse battery"


def _environment() -> dict[str, str]:
    """The variables of this process without our own, which name a browser or a server of the tests."""
    return {name: text for name, text in os.environ.items() if not name.startswith("EVERYTICK_")}


async def _made(folder: Path, name: str, *, user: str = "") -> str:
    """Make a store with one job, and with a user if one is named; its address."""
    address = f"sqlite:///{folder / name}.db"
    tick = Everytick(address, name=name)
    tick.job(every("1h"), name=f"{name}-daily")(lambda: None)
    await tick.sync()
    if user:
        with tick.acting_as(Doer("setup", CameBy.COMMAND)):
            await tick.people.add_user(user, Role.ADMIN, password=PASSWORD)
    await tick.close()
    return address


@contextmanager
def serving(*stores: str) -> Iterator[str]:
    """Serve the stores on a free port in a process of their own; the address of the front page."""
    command = [sys.executable, "-m", "everytick", "serve", "--web-port", "0"]
    command += [part for store in stores for part in ("--store", store)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=_environment())
    assert process.stdout is not None
    written = ""
    try:
        for line in process.stdout:
            written += line
            if found := re.search(r"dashboard and API: (http:[^; ]+)", line):
                yield found[1]
                break
        else:
            raise AssertionError(f"it ended without an address: {written}")
    finally:
        process.send_signal(signal.SIGTERM)
        written += process.communicate(timeout=60)[0]
    assert process.returncode == 0, written


@pytest.mark.parametrize(("theme", "width"), [("light", DESK), ("dark", PHONE)])
async def test_the_front_page_leads_to_each_store_and_every_page_to_the_others(
    tmp_path: Path, reader: Reader, theme: str, width: int
) -> None:
    """Several stores by name behind one dashboard."""
    shop, bank = await _made(tmp_path, "shop"), await _made(tmp_path, "bank")
    with serving(f"shop={shop}", bank, AWAY) as url:
        page = await reader.open(url, theme=theme, width=width)
        assert await page.locator("h1").inner_text() == "The store gone does not answer."
        wrong = await faults(page)
        await page.click("text=shop")
        await page.wait_for_url("**/shop/")
        await page.click("details.stores summary")
        wrong += await faults(page)
        await page.click("details.stores nav >> text=bank")
        await page.wait_for_url("**/bank/")
        await page.goto(f"{url}bank/jobs")
        listed = await page.locator("main").inner_text()
        sideways = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        await reader.leave()

    assert wrong == []
    assert "bank-daily" in listed
    assert "shop-daily" not in listed
    assert sideways <= 0


async def test_a_person_signs_in_to_one_store_and_the_front_page_knows(tmp_path: Path, browser: Browser) -> None:
    """Signing in stays each store's own."""
    stores = [f"{name}={await _made(tmp_path, name, user='ann')}" for name in ("shop", "bank")]
    with serving(*stores) as url:
        context = await browser.new_context(java_script_enabled=False)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        page = await context.new_page()
        await page.goto(url)
        assert await page.locator("text=to see more").count() == 2
        await page.goto(f"{url}shop/jobs")
        await page.fill("#name", "ann")
        await page.fill("#password", PASSWORD)
        await page.click("button.go")
        await page.wait_for_url("**/shop/jobs")
        await page.goto(url)
        left = await page.locator("text=to see more").count()
        other = await page.goto(f"{url}bank/jobs")
        asks = await page.locator("#password").count()
        cookies = {each["name"]: each["path"] for each in await context.cookies()}
        await context.close()

    assert left == 1
    assert other is not None
    assert asks == 1
    assert cookies["everytick_session.shop"] == "/"
    assert "everytick_session.bank" not in cookies


async def test_one_store_without_a_name_stays_as_it_is(tmp_path: Path, reader: Reader) -> None:
    shop = await _made(tmp_path, "shop")
    with serving(shop) as url:
        page = await reader.open(f"{url}jobs")
        assert await page.locator("details.stores").count() == 0
        await reader.leave()


def test_two_stores_of_one_name_are_refused(tmp_path: Path) -> None:
    store = asyncio.run(_made(tmp_path, "shop"))
    command = [sys.executable, "-m", "everytick", "serve", "--web-port", "0"]
    done = subprocess.run(
        [*command, "--store", store, "--store", f"shop={store}"],
        capture_output=True,
        text=True,
        timeout=60,
        env=_environment(),
    )

    assert done.returncode == 2
    assert "two stores are called 'shop': name them apart, --store NAME=URL" in done.stderr
