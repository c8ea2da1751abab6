"""The page of the job files: valid or not, the line that is wrong, what stays in force, and what a change moved."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from everytick import Everytick
from everytick.access.people import Person, Role
from everytick.web.asgi import asgi
from everytick.web.pages.files import two_columns
from tests.unit.web.conftest import client_of

GOOD = """\
version: 1
jobs:
  nightly:
    schedule: "30 2 * * *"
    command: "true"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one good file."""
    (tmp_path / "backup.yaml").write_text(GOOD)
    return tmp_path


@pytest.fixture
async def tick(folder: Path) -> AsyncIterator[Everytick]:
    """An application whose node watches the folder."""
    made = Everytick("memory://", name="shop", jobs=folder)
    await made.start()
    yield made
    await made.stop()
    await made.close()


async def reread(tick: Everytick) -> None:
    """Read the folder again, as the watch does when a file is saved."""
    assert tick._folder is not None
    await tick._folder._watch.look()


async def test_a_valid_folder_is_quiet(tick: Everytick) -> None:
    async with client_of(tick) as client:
        page = await client.get("/files")
    assert page.status_code == 200
    assert "<h1>The one file is valid.</h1>" in page.text
    assert "backup.yaml" in page.text
    assert "i-late" not in page.text


async def test_a_broken_file_shows_the_line_and_what_stays_in_force(tick: Everytick, folder: Path) -> None:
    (folder / "backup.yaml").write_text(GOOD.replace("30 2", "30 25"))
    (folder / "more.yaml").write_text(GOOD.replace("nightly", "daily"))
    await reread(tick)
    async with client_of(tick) as client:
        page = (await client.get("/files")).text
    assert "<h1>One file of 2 is broken; its last good version runs.</h1>" in page
    assert "4:15" in page
    assert "hour field must be 0 to 23, got 25" in page
    assert "<mark>&#34;</mark>30 25 * * *&#34;" in page
    assert "its last good version is in force: nightly" in page
    old, new = page.partition("30 2 * * *")[0], page.partition("Last good")[2]
    assert old
    assert "30 25 * * *" in new


async def test_a_file_that_was_never_good_says_so(tick: Everytick, folder: Path) -> None:
    (folder / "new.yaml").write_text("version: 1\njobs: <script>alert(1)</script>\n")
    await reread(tick)
    async with client_of(tick) as client:
        page = (await client.get("/files")).text
    assert "it was never valid, so none of its jobs runs" in page
    assert "<script>alert" not in page
    assert "last good version runs" not in page


async def test_a_change_shows_which_runs_it_moves(tick: Everytick, folder: Path) -> None:
    (folder / "backup.yaml").write_text(GOOD.replace("30 2", "45 2"))
    await reread(tick)
    async with client_of(tick) as client:
        page = (await client.get("/files")).text
    assert "moves 30 runs" in page
    assert "cron: 30 2 * * *" in page
    assert "cron: 45 2 * * *" in page


async def test_a_viewer_sees_the_mistake_and_not_what_the_file_says(tick: Everytick, folder: Path) -> None:
    (folder / "backup.yaml").write_text(GOOD.replace("30 2", "30 25").replace('"true"', '"login --password=hunter2"'))
    await reread(tick)

    async def viewer(request: object) -> Person:
        return Person("vera", Role.VIEWER)

    transport = httpx2.ASGITransport(asgi(tick, identify=viewer))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        page = (await client.get("/files")).text
    assert "4:15" in page
    assert "hunter2" not in page
    assert "What files say is shown to operators." in page


async def test_without_a_folder_the_page_says_where_one_is_watched() -> None:
    bare = Everytick("memory://", name="bare")
    async with client_of(bare) as client:
        page = (await client.get("/files")).text
    await bare.close()
    assert "no folder is watched here" in page
    assert "everytick run --jobs FOLDER" in page


async def test_what_another_node_cannot_read_is_told(tick: Everytick, folder: Path) -> None:
    (folder / "backup.yaml").write_text("version: 1\njobs: 3\n")
    await reread(tick)
    other = Everytick(await tick._opened(), name="web")
    async with client_of(other) as client:
        page = (await client.get("/files")).text
    assert "told by" in page
    assert "backup.yaml:2:7" in page
    assert "in force as before: nightly" in page
    assert "its last good version runs" in page


async def test_of_a_new_file_that_another_node_cannot_read_no_version_runs(tick: Everytick, folder: Path) -> None:
    (folder / "new.yaml").write_text("version: 1\njobs: 3\n")
    await reread(tick)
    other = Everytick(await tick._opened(), name="web")
    async with client_of(other) as client:
        page = (await client.get("/files")).text
    assert "new.yaml:2:7" in page
    assert "last good version" not in page


def test_two_texts_stand_side_by_side_with_two_lines_around() -> None:
    old = "a\nb\nc\nd\ne\nf\n"
    rows = two_columns(old, old.replace("d\n", "D\nD2\n"))
    assert rows == [
        ("same", "2", "b", "2", "b"),
        ("same", "3", "c", "3", "c"),
        ("diff", "4", "d", "4", "D"),
        ("diff", "", "", "5", "D2"),
        ("same", "5", "e", "6", "e"),
        ("same", "6", "f", "7", "f"),
    ]
    assert two_columns(old, old) == []
