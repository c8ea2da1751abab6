"""One Chromium for all browser tests of a worker, and a reader for each test."""

from collections.abc import AsyncIterator
from inspect import iscoroutinefunction

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from everytick.web import agenda_cache, kept_pages
from tests.acceptance.web.browsing import FLAGS, Reader
from tests.servers.browsers import found_browser


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the browser tests on one event loop: the browser belongs to the loop on which it was started."""
    folder = __file__.rpartition("/")[0]
    for item in items:
        if str(item.path).startswith(folder) and iscoroutinefunction(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(autouse=True)
def every_page_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests change the store behind the service, and a loaded machine makes every page dear."""
    monkeypatch.setattr(kept_pages, "CHEAP_SECONDS", float("inf"))
    monkeypatch.setattr(agenda_cache, "WHOLE_SECONDS", 60.0)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """A real Chromium, started when the first test asks. Without one, the test fails and says how to get one."""
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=str(found_browser()), args=FLAGS)
        yield started
        await started.close()


@pytest_asyncio.fixture(loop_scope="session")
async def reader(browser: Browser) -> AsyncIterator[Reader]:
    """A person with a browser; at the end no page may have complained or asked another host."""
    reading = Reader(browser)
    yield reading
    await reading.leave()
