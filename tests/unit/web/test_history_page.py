"""The history: filters in the address, pages, lines, files, and deeds on many occurrences."""

import csv
import io
import re

import httpx2
import pytest
from fastapi import Request

from everytick import Everytick, every
from everytick.access.people import Person, Role
from everytick.domain.headlines import fingerprint
from everytick.web import history_list
from everytick.web.asgi import asgi
from everytick.web.pages import history as history_page
from tests.unit.web.conftest import client_of
from tests.unit.web.forms_of_pages import sent, sent_again, text_of, told

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def tick() -> Everytick:
    made = Everytick("memory://", name="shop", poll="100ms")

    @made.job(every("1d"), name="broken")
    def broken() -> None:
        raise ValueError(f"=no table {EVIL}")

    @made.job(every("1d"), name="well")
    def well() -> None: ...

    @made.job(every("1d"), name="=SUM(A1)")
    def counting() -> None: ...

    return made


async def ran(tick: Everytick, *names: str) -> list[str]:
    """Let these jobs run once each, one after another, and return the ids of the occurrences."""
    return [(await (await tick.trigger(name)).wait("30s")).id for name in names]


def rows(page: httpx2.Response) -> list[str]:
    """Return the jobs of the lines, newest first."""
    return re.findall(r'<th scope="row"[^>]*><a class="name"[^>]*>(.*?)</a>', page.text)


async def test_the_heading_counts_and_the_newest_comes_first(client: httpx2.AsyncClient, tick: Everytick) -> None:
    async with tick:
        await ran(tick, "well", "broken", "well")
        page = await client.get("/history")

    assert "<h1>3 occurrences in 24 h; 1 failed.</h1>" in page.text
    assert rows(page) == ["well", "broken", "well"]
    assert "ValueError: =no table <script>alert(1)</script>" in text_of(page)
    assert EVIL not in page.text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("job=well", 2),
        ("status=failed", 1),
        ("status=failed&status=completed", 3),
        ("status=failed+completed", 3),
        ("cause=schedule", 0),
        ("cause=trigger&w=1h", 3),
        ("error=NO+table", 1),
        ("error=elsewhere", 0),
        ("from=2020-01-01T00:00&to=2020-01-02T00:00", 0),
        ("from=2020-01-01T00:00", 3),
    ],
)
async def test_filters_stand_in_the_address(
    client: httpx2.AsyncClient, tick: Everytick, query: str, found: int
) -> None:
    async with tick:
        await ran(tick, "well", "broken", "well")
        page = await client.get(f"/history?{query}")
        exported = (await client.get(f"/history.json?{query}")).json()

    assert page.status_code == 200
    assert len(rows(page)) == found
    assert len(exported) == found


async def test_errors_that_are_alike_are_one_filter(client: httpx2.AsyncClient, tick: Everytick) -> None:
    async with tick:
        await ran(tick, "broken", "well", "broken")
        [failed, *_] = await tick.history("broken", status="failed")
        assert failed.error is not None
        page = await client.get("/history", params={"fingerprint": fingerprint(failed.error)})
        none = await client.get("/history", params={"fingerprint": "nothing"})

    assert rows(page) == ["broken", "broken"]
    assert rows(none) == []


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("status=nonsense", "nonsense is no status"),
        ("cause=luck", "luck is no cause"),
        ("from=noon", "noon is no date and time"),
        ("from=2026-01-02T00:00&to=2026-01-01T00:00", "the end comes before the beginning"),
        ("job=nothing", "there is no job 'nothing'"),
        (f"job={EVIL}", "there is no job"),
    ],
)
async def test_a_filter_that_cannot_be_read_is_told(client: httpx2.AsyncClient, query: str, why: str) -> None:
    page = await client.get(f"/history?{query}")

    assert page.status_code == 422
    assert why in text_of(page).lower()
    assert EVIL not in page.text
    assert (await client.get(f"/history.csv?{query}")).status_code in (404, 422)


async def test_pages_go_on_behind_a_cursor(
    client: httpx2.AsyncClient, tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_page, "PAGE_ROWS", 2)
    async with tick:
        ids = await ran(tick, "well", "broken", "well")
        first = await client.get("/history")
        [link] = re.findall(r'<a href="([^"]*)" rel="next">', first.text)
        second = await client.get(link.replace("&amp;", "&"))

    shown = re.findall(r'name="id" value="([^"]*)"', first.text + second.text)
    assert shown == ids[::-1]


async def test_a_look_through_errors_is_bounded_and_goes_on(
    client: httpx2.AsyncClient, tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_list, "MOST_LOOKED_AT", 2)
    monkeypatch.setattr(history_page, "MOST_LOOKED_AT", 2)
    monkeypatch.setattr(history_list, "_AT_ONCE", 2)
    async with tick:
        await ran(tick, "broken", "well", "well")
        page = await client.get("/history?error=table")
        assert "None of the newest 2 has this error" in text_of(page)
        [link] = re.findall(r'<a href="([^"]*)">Look further back', page.text)
        older = await client.get(link.replace("&amp;", "&"))

    assert rows(older) == ["broken"]


async def test_instants_in_a_row_that_did_not_run_are_one_line(client: httpx2.AsyncClient, tick: Everytick) -> None:
    from datetime import timedelta

    from everytick.stores.memory import MemoryStore
    from everytick.testing import ManualClock

    clock = ManualClock("2026-05-04T12:00:00Z")
    paused = Everytick(MemoryStore(clock=clock), name="paused")

    @paused.job(every("1h"))
    def hourly() -> None: ...

    await paused.sync()
    await paused.pause("hourly", reason="moving")
    clock.advance(timedelta(hours=5))
    transport = httpx2.ASGITransport(paused.asgi(), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asking:
        page = await asking.get("/history?job=hourly")

    assert rows(page) == ["hourly"]
    assert "5 instants: " in text_of(page)
    assert "/jobs/hourly/do/backfill?after=2026-05-04T12%3A59%3A59" in page.text


# --------------------------------------------------------------------------------------------------------------- export


async def test_csv_has_every_column_and_nothing_that_calculates(client: httpx2.AsyncClient, tick: Everytick) -> None:
    async with tick:
        await ran(tick, "=SUM(A1)", "broken")
        answer = await client.get("/history.csv?cause=trigger")

    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="history.csv"'
    broken, counting = csv.DictReader(io.StringIO(answer.text))
    assert (broken["job"], broken["status"]) == ("broken", "failed")
    assert float(broken["took_seconds"]) >= 0
    assert counting["job"] == "'=SUM(A1)"


async def test_an_empty_export_is_still_json(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/history.json")).json() == []


# ----------------------------------------------------------------------------------------------------- many occurrences


async def test_many_failures_are_replayed_with_a_preview(client: httpx2.AsyncClient, tick: Everytick) -> None:
    async with tick:
        ids = await ran(tick, "broken", "well", "broken")
        path = "/history/do/replay?status=failed"
        page = await client.get(path)
        said = text_of(page)
        assert "Replay 2 occurrences?" in said
        assert "2 new occurrences" in said
        answer = await sent_again(client, path, page, reason="table made")

        assert answer.headers["location"] == "/history?cause=replay"
        assert await told(client, answer) == "Asked for 2 replays."
        shown = await client.get("/history?cause=replay")
        replays = list(await tick.history(cause="replay"))
    assert {each.replay_of for each in replays} <= {ids[0], ids[2]}
    assert shown.status_code == 200


async def test_what_was_chosen_is_canceled(client: httpx2.AsyncClient, tick: Everytick) -> None:
    first, second = [await tick.trigger("well", at=f"212{year}-01-01T00:00:00Z") for year in (6, 7)]
    path = f"/history/do/cancel?id={first.id}"
    answer = await sent(client, path, reason="not needed")

    assert await told(client, answer) == "Canceled 1 occurrence."
    assert answer.headers["location"] == "/history?status=canceled"
    found = [(await tick.occurrence(each.id)).occurrence.status for each in (first, second)]
    assert [str(status) for status in found] == ["canceled", "pending"]
    assert "there is nothing to cancel" in text_of(await client.get(path))


async def test_a_form_of_many_that_is_sent_twice_is_done_once(client: httpx2.AsyncClient, tick: Everytick) -> None:
    async with tick:
        await ran(tick, "broken")
        path = "/history/do/replay?status=failed"
        page = await client.get(path)
        first = await sent_again(client, path, page)
        second = await sent_again(client, path, page)
        assert first.status_code == second.status_code == 303
        await sent(client, "/jobs/broken/do/pause")
        async for each in await tick.history(cause="replay"):
            await tick.cancel(each.id)
        assert len(list(await tick.history(cause="replay"))) <= 1


@pytest.mark.parametrize("file", ["", ".json"])
async def test_who_may_not_read_errors_cannot_look_through_them(tick: Everytick, file: str) -> None:
    """S3: a filter that finds a hidden text tells it, letter by letter."""

    async def identify(request: Request) -> Person:
        return Person("ann", Role[request.headers["role"].upper()])

    await tick.sync()
    async with tick, client_of(tick, service=asgi(tick, identify=identify)) as asking:
        await ran(tick, "broken")
        path, found = f"/history{file}?error=no+table", {}
        for role in ("viewer", "operator"):
            answer = await asking.get(path, headers={"role": role})
            assert answer.status_code == 200, answer.text
            found[role] = answer.text

    assert ("broken" in found["viewer"], "broken" in found["operator"]) == (False, True)


async def test_a_search_ends_at_the_same_place_whether_a_hidden_error_fits_or_not(
    tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3: a page that is full goes on behind a cursor. It told whether a guess at a hidden error was right."""
    monkeypatch.setattr(history_page, "PAGE_ROWS", 2)
    monkeypatch.setattr(history_list, "_AT_ONCE", 2)
    monkeypatch.setattr(history_list, "MOST_LOOKED_AT", 4)

    async def identify(request: Request) -> Person:
        return Person("ann", Role.VIEWER)

    await tick.sync()
    async with tick, client_of(tick, service=asgi(tick, identify=identify)) as asking:
        for _ in range(5):
            await ran(tick, "broken")
        pages = [await asking.get(f"/history?error={guess}") for guess in ("notable", "xxzzzzz", "no+table")]

    links = [re.findall(r"cursor=([^\"&]+)", page.text) for page in pages]
    assert links[0] == links[1] == links[2]
    assert text_of(pages[0]) == text_of(pages[1]) == text_of(pages[2])
