"""Every page that asks the whole fleet, and the checks of health, on each store that keeps data."""

from pathlib import Path

import pytest

from everytick import Everytick, every
from tests.unit.web.conftest import client_of


@pytest.fixture
def at_noon() -> None:
    """A server has a clock of its own, with which this host's is compared: both keep theirs."""


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"])
async def test_the_pages_and_the_checks_of_health_know_the_store(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    """On Redis the pages Now and Jobs, and /readyz, answered 500: they looked it up among the stores with tables."""
    own = {"postgres": "?schema=pages_on_stores", "redis": "?prefix=pages_on_stores"}
    file = f"sqlite:///{tmp_path}/a.db"
    tick = Everytick(file if kind == "sqlite" else request.getfixturevalue(kind).address + own[kind], name="shop")
    tick.job(every("1h"), name="etl")(lambda: None)
    async with tick, client_of(tick) as client:
        ready = await client.get("/readyz?verbose")
        pages = {path: (await client.get(path)).status_code for path in ("/", "/jobs", "/timeline", "/jobs/do/pause")}

    assert ready.text == "[+] store: ok\n[+] tables: ok\n[+] clock: ok\n[+] started: ok\n[+] staying: ok\nok\n"
    assert pages == dict.fromkeys(pages, 200)
