"""The keyboard in a browser: each key does what the list of keys says, never in a field, and never once turned off."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page, expect

from everytick import Everytick, every
from tests.acceptance.web.accessible import faults
from tests.acceptance.web.browsing import Reader, served

EVERY_KEY = ("/", "j", "k", "t", "p", "[", "]", "+", "-", "?", "g", "l")
PAGES = {"n": "", "j": "jobs", "a": "agenda", "h": "history", "f": "files", "o": "nodes", "l": "lab"}
"""Where `g` and a letter lead."""


@asynccontextmanager
async def shop() -> AsyncIterator[str]:
    """Serve an application with three jobs."""
    tick = Everytick("memory://", name="shop")
    for name in ("alpha", "beta", "gamma"):
        tick.job(every("1h"), name=name)(lambda: None)
    await tick.sync()
    async with served(tick) as url:
        yield url
    await tick.close()


async def press(page: Page, keys: Iterable[str]) -> None:
    for key in keys:
        await page.keyboard.press(key)


async def focused(page: Page) -> str:
    """Return the words of the element with the focus."""
    return str(await page.evaluate("document.activeElement.textContent.trim()"))


async def watch(page: Page) -> None:
    """Count the links that are followed from now on: a key follows them at once, where it leads comes later."""
    await page.evaluate("() => { window.followed = 0; addEventListener('click', () => window.followed++, true); }")


async def assert_nothing_happened(page: Page) -> None:
    """No link was followed since `watch`, and no dialog is open."""
    assert await page.evaluate("window.followed") == 0
    assert await page.locator("dialog").count() == 0


async def test_a_slash_focuses_find(reader: Reader) -> None:
    async with shop() as url:
        page = await reader.open(f"{url}jobs")
        await press(page, "/")

        await expect(page.locator("#find")).to_be_focused()
        await expect(page.locator("#find")).to_have_value("")
        await reader.leave()


async def test_g_and_a_letter_go_to_a_page(reader: Reader) -> None:
    async with shop() as url:
        page = await reader.open(f"{url}settings")
        for letter, path in PAGES.items():
            await press(page, ("g", letter))
            await page.wait_for_url(url + path)
            await page.goto(f"{url}settings")
        await reader.leave()


async def test_a_letter_alone_goes_to_no_page(reader: Reader) -> None:
    async with shop() as url:
        page = await reader.open(f"{url}settings")
        await watch(page)
        await press(page, (letter for letter in PAGES if letter != "j"))

        await assert_nothing_happened(page)
        await reader.leave()


async def test_j_and_k_move_along_the_rows_and_enter_opens(reader: Reader) -> None:
    async with shop() as url:
        page = await reader.open(f"{url}jobs")
        moved = []
        for key in ("j", "j", "j", "j", "k"):
            await press(page, key)
            moved.append(await focused(page))
        await press(page, ("Enter",))
        await page.wait_for_url(f"{url}jobs/beta")
        await reader.leave()

    assert moved == ["alpha", "beta", "gamma", "gamma", "beta"]


@pytest.mark.parametrize(("key", "question"), [("t", "Trigger alpha"), ("p", "Pause alpha")])
async def test_t_triggers_and_p_pauses_the_job_of_the_page(reader: Reader, key: str, question: str) -> None:
    """They follow the link, which asks first. In the dialog the letters do nothing more."""
    async with shop() as url:
        page = await reader.open(f"{url}jobs/alpha")
        await press(page, key)
        await expect(page.locator("dialog.deed[open] #deed-title")).to_contain_text(question)
        await press(page, EVERY_KEY)

        await expect(page.locator("dialog")).to_have_count(1)
        assert page.url == f"{url}jobs/alpha"
        await reader.leave()


@pytest.mark.parametrize(("key", "expected"), [("[", "to="), ("]", "to="), ("+", "w=4h"), ("-", "w=3d")])
async def test_brackets_move_the_window_and_signs_zoom(reader: Reader, key: str, expected: str) -> None:
    async with shop() as url:
        page = await reader.open(f"{url}?w=15h")
        leads_to = await page.locator(f"main [data-key='{key}']").get_attribute("href")
        await press(page, key)
        await page.wait_for_url(lambda address: expected in address)

        assert leads_to is not None
        assert page.url.endswith(leads_to)
        await reader.leave()


async def test_the_window_before_and_the_window_after_lead_back(reader: Reader) -> None:
    async with shop() as url:
        page = await reader.open(f"{url}?w=1h&to=2026-10-23T12:00:00Z")
        begin = await page.locator(".tl").get_attribute("data-after")
        await press(page, "[")
        await page.wait_for_url(lambda address: "to=2026-10-23T12" not in address)
        before = await page.locator(".tl").get_attribute("data-after")
        await press(page, "]")
        await expect(page.locator(".tl")).to_have_attribute("data-after", str(begin))
        await reader.leave()

    assert float(str(before)) < float(str(begin))


async def test_a_question_mark_lists_the_keys(reader: Reader) -> None:
    async with shop() as url:
        page = await reader.open(f"{url}jobs")
        await press(page, "?")
        await expect(page.locator("dialog#keys[open]")).to_be_visible()
        listed = " ".join(await page.locator("dialog#keys kbd").all_inner_texts()).split()
        wrong = await faults(page)
        await press(page, ("Escape",))

        await expect(page.locator("dialog#keys[open]")).to_have_count(0)
        await press(page, "?")
        await expect(page.locator("dialog#keys[open]")).to_be_visible()
        await reader.leave()

    assert {*EVERY_KEY, *PAGES, "Enter"} <= set(listed)
    assert wrong == []


@pytest.mark.parametrize(
    ("path", "field"),
    [("jobs/alpha", "#find"), ("history", "#job"), ("access/users/add", "textarea"), ("access/users/add", "select")],
)
async def test_no_key_does_anything_in_a_field(reader: Reader, path: str, field: str) -> None:
    async with shop() as url:
        page = await reader.open(url + path)
        await page.locator(field).focus()
        await watch(page)
        await press(page, EVERY_KEY)

        await assert_nothing_happened(page)
        await expect(page.locator(field)).to_be_focused()
        if field != "select":
            await expect(page.locator(field)).to_have_value("".join(EVERY_KEY))
        await reader.leave()


async def test_letters_do_nothing_once_they_are_turned_off(reader: Reader) -> None:
    """WCAG 2.1.4, on the page of settings; and they can be turned on again."""
    async with shop() as url:
        page = await reader.open(f"{url}settings")
        await page.get_by_label("letters do nothing").check()
        for path in ("", "jobs", "jobs/alpha"):
            await page.goto(url + path)
            await watch(page)
            await press(page, EVERY_KEY)
            await assert_nothing_happened(page)
            assert await page.evaluate("document.activeElement === document.body"), path
        await page.goto(f"{url}settings")
        await expect(page.get_by_label("letters do nothing")).to_be_checked()
        await page.get_by_label("letters are shortcuts").check()
        await page.goto(f"{url}jobs/alpha")
        await press(page, "t")
        await expect(page.locator("dialog.deed[open]")).to_be_visible()
        await reader.leave()
