"""The page about the HTTP API: its requests are answered, and the paths that it names are routes."""

import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

from everytick import Everytick, every
from everytick.web.api.document import document_of
from everytick.web.asgi import asgi
from tests.unit.web.api.conftest import client_of, make_tick

PAGE = (Path(__file__).resolve().parents[4] / "docs/http.md").read_text()
STREAM = "/api/events"
"""An answer without an end: its route is looked up, and not asked."""


def requests_of(page: str) -> list[tuple[str, str, dict[str, str], str | None]]:
    """Return method, address, headers and body of each call of curl."""
    found = []
    for line in re.findall(r"^curl (.*)$", page.replace("\\\n", " "), re.MULTILINE):
        words = shlex.split(line)
        given = {key: words[place + 1] for place, key in enumerate(words) if key in ("-X", "-H", "-d")}
        name, _, said = given.get("-H", "accept: */*").partition(": ")
        [url] = [word for word in words if word.startswith("http://")]
        found.append((given.get("-X", "GET"), url, {name: said}, given.get("-d")))
    return found


async def test_the_requests_on_the_page_are_answered() -> None:
    tick = Everytick("memory://", name="page")

    @tick.job(every("1d"))
    def nightly(pages: int = 1) -> int:
        return pages

    await tick.sync()
    asked = [each for each in requests_of(PAGE) if urlsplit(each[1]).path != STREAM]
    async with client_of(tick) as client:
        answers = [await client.request(how, url, headers=head, content=body) for how, url, head, body in asked]
    await tick.close()

    assert [answer.status_code for answer in answers] == [200, 201]


def test_the_paths_on_the_page_are_routes() -> None:
    known = {_nameless(path) for path in document_of(asgi(make_tick()).app)["paths"]}
    rows = "\n".join(line for line in PAGE.splitlines() if line.startswith("| `"))
    named = {_nameless(path) for path in re.findall(r"(/api(?:/[\w{}-]+)*)", rows)}

    assert len(named) > 25
    assert named - known == set()


def _nameless(path: str) -> str:
    """Return the path without the names of its parameters."""
    return re.sub(r"\{\w+\}", "{}", path)
