"""What a browser shows of the frame that all pages share."""

import pytest

from everytick import Everytick, every
from tests.acceptance.web.accessible import faults
from tests.acceptance.web.browsing import DESK, PHONE, Reader, served


@pytest.fixture
def tick() -> Everytick:
    """An application with a job, on a store in memory. No node runs."""
    made = Everytick("memory://", name="shop")

    @made.job(every("1h"))
    def orders() -> None: ...

    return made


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE])
async def test_everybody_can_read_the_lab(tick: Everytick, reader: Reader, theme: str, width: int) -> None:
    async with served(tick) as url:
        page = await reader.open(f"{url}lab", theme=theme, width=width)

        assert await faults(page) == []
        await reader.leave()
    await tick.close()


async def test_the_checks_see_what_is_wrong_with_a_page(tick: Everytick, reader: Reader) -> None:
    """A check that finds nothing on any page would hold nothing."""
    async with served(tick) as url:
        page = await reader.open(f"{url}lab")
        await page.evaluate(
            """() => {
              const bad = document.createElement("div");
              bad.innerHTML = '<h4>too deep</h4><table><tr><td>1</td></tr></table><input><svg role="img"></svg>'
                + '<a href="#"></a><p class="pale">pale</p><p id="main">twice</p>'
                + '<p><a href="#alone">i</a></p><p>As <a href="#told">i</a> say.</p>';
              document.querySelector("main").append(bad);
              bad.querySelector(".pale").attributeStyleMap.set("color", "#ccc");
            }"""
        )

        found = "\n".join(await faults(page))
        await reader.leave()
    for fault in ("follows a heading", "without a caption", "has no name", "contrast of", "is there twice"):
        assert fault in found
    assert found.count("“i” is only") == 1, "a link in a sentence is as high as its line"
    await tick.close()


async def test_a_reader_who_opens_no_page_complains_about_nothing(reader: Reader) -> None:
    await reader.leave()

    assert reader.complaints == []


async def test_a_request_to_another_host_is_noticed(tick: Everytick, reader: Reader) -> None:
    """The content policy stops it, and the test that opened the page fails."""
    async with served(tick) as url:
        page = await reader.open(f"{url}lab")
        await page.evaluate("() => fetch('//127.0.0.2:9/').catch(() => null)")

        with pytest.raises(AssertionError, match=r"another host|Content Security Policy"):
            await reader.leave()
        reader.complaints.clear()
    await tick.close()
