"""Several stores behind one address: each under its name, with its own users; health and metrics name the store."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from everytick import Everytick, every
from everytick.domain.people import CameBy, Doer, Role
from everytick.errors import StoreUnavailable
from everytick.web.pages.stores import labelled
from everytick.web.several_stores import SeveralStores

PAGE = {"accept": "text/html"}
AWAY = "postgresql://nobody@127.0.0.1:1/nothing"
PASSWORD = "correct horse battery"


def _tick(job: str) -> Everytick:
    tick = Everytick("memory://", name=job)
    tick.job(every("1h"), name=job)(lambda: None)
    return tick


@asynccontextmanager
async def asking(prefix: str = "", **ticks: Everytick) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(SeveralStores(ticks), root_path=prefix)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=PAGE) as client:
        yield client
    for tick in ticks.values():
        await tick.close()


@pytest.fixture
async def shop() -> Everytick:
    tick = _tick("orders")
    await tick.sync()
    return tick


@pytest.fixture
async def bank() -> Everytick:
    tick = _tick("ledger")
    await tick.sync()
    return tick


async def test_each_store_has_its_pages_and_its_api_under_its_name(shop: Everytick, bank: Everytick) -> None:
    """Several stores by name behind one dashboard."""
    async with asking(shop=shop, bank=bank) as client:
        jobs = {name: (await client.get(f"/{name}/jobs")).text for name in ("shop", "bank")}
        listed = (await client.get("/bank/api/jobs")).text
        without = await client.get("/shop?x=1")
        missing = await client.get("/elsewhere/jobs")

    assert "orders" in jobs["shop"]
    assert "ledger" not in jobs["shop"]
    assert "ledger" in jobs["bank"]
    assert "ledger" in listed
    assert (without.status_code, without.headers["location"]) == (307, "/shop/?x=1")
    assert missing.status_code == 404


async def test_the_front_page_links_to_every_store_and_every_page_to_the_others(
    shop: Everytick, bank: Everytick
) -> None:
    async with asking(shop=shop, bank=bank) as client:
        front = (await client.get("/")).text
        page = (await client.get("/shop/lab")).text

    assert "Two stores of 2 need a look." in front  # no node runs
    assert 'href="/shop/"' in front
    assert 'href="/bank/"' in front
    assert 'href="/jobs"' not in front
    assert '<a href="/bank/">bank</a>' in page
    assert '<a href="/shop/" aria-current="true">shop</a>' in page


async def test_links_hold_under_a_prefix(shop: Everytick, bank: Everytick) -> None:
    async with asking("/tick", shop=shop, bank=bank) as client:
        front = (await client.get("/tick/")).text
        page = (await client.get("/tick/shop/jobs")).text

    assert 'href="/tick/shop/"' in front
    assert 'href="/tick/static/app.css' in front
    assert 'href="/tick/shop/jobs/orders"' in page
    assert '<a href="/tick/bank/">bank</a>' in page


async def test_a_store_that_is_away_is_said_so_and_holds_up_no_other(shop: Everytick) -> None:
    async with asking(shop=shop, bank=Everytick(AWAY, name="bank")) as client:
        front = (await client.get("/")).text
        ready = await client.get("/readyz?verbose")
        alone = await client.get("/bank/readyz")
        metrics = (await client.get("/metrics")).text

    assert "The store bank does not answer." in front
    assert "away" in front
    assert ready.status_code == 200
    assert "[+] shop store: ok" in ready.text
    assert "[-] bank store: " in ready.text
    assert alone.status_code == 503
    assert 'everytick_store_up{store="shop"} 1' in metrics.splitlines()
    assert 'everytick_store_up{store="bank"} 0' in metrics.splitlines()


async def test_why_a_store_is_away_is_told_to_those_who_have_signed_in(shop: Everytick, bank: Everytick) -> None:
    """The text names hosts and databases: of a store a stranger reads whether it answers, and nothing else."""
    with bank.acting_as(Doer("setup", CameBy.COMMAND)):
        await bank.people.add_user("bob", Role.ADMIN)
        token = (await bank.people.add_token("ann", Role.VIEWER)).text
    ann = {"authorization": f"Bearer {token}"}

    async def away() -> object:
        raise StoreUnavailable("postgresql://db-7.internal", "connection refused")

    async with asking(shop=shop, bank=bank) as client:
        assert (await client.get("/bank/api/jobs", headers=ann)).status_code == 200
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bank, "_opened", away)
            patch.setattr(bank.people, "_opened", away)
            to_ann, to_stranger = [(await client.get("/", headers=given)).text for given in (ann, {})]

    assert "postgresql://db-7.internal does not answer: connection refused" in to_ann
    assert "db-7" not in to_stranger
    assert "The store bank does not answer." in to_stranger


async def test_the_front_page_counts_failures_as_the_page_now_of_the_store_does() -> None:
    """What completed with errors has not failed: the tile of the page Now says so apart."""
    tick = Everytick("memory://", name="shop", poll="100ms")

    @tick.job(every("1d"), name="partly", failure="continue")
    def partly() -> None:
        raise ValueError("half of it is missing")

    @tick.job(every("1d"), name="bad")
    def bad() -> None:
        raise ValueError("all of it is missing")

    async with tick, asking(shop=tick) as client:
        ends = [await (await tick.trigger(name)).wait("30s") for name in ("partly", "bad")]
        assert [end.status for end in ends] == ["completed_with_errors", "failed"]
        front, now = (await client.get("/")).text, (await client.get("/shop/")).text

    [link] = re.findall(r'href="/shop(/history\?status=failed[^"]*)">1</a>', front)
    assert f'href="/shop{link}"' in now


async def test_with_every_store_away_the_service_is_not_ready() -> None:
    async with asking(shop=Everytick(AWAY, name="shop"), bank=Everytick(AWAY, name="bank")) as client:
        assert (await client.get("/readyz")).status_code == 503
        assert (await client.get("/livez")).status_code == 200
        assert "The stores shop and bank do not answer." in (await client.get("/")).text


async def test_access_is_the_store_s_own(shop: Everytick, bank: Everytick) -> None:
    """S2: a person of one store sees nothing of another; a token opens its own store only."""
    with shop.acting_as(Doer("setup", CameBy.COMMAND)):
        await shop.people.add_user("ann", Role.ADMIN, password=PASSWORD)
    with bank.acting_as(Doer("setup", CameBy.COMMAND)):
        await bank.people.add_user("bob", Role.ADMIN, password=PASSWORD)
        token = (await bank.people.add_token("scrape", Role.VIEWER)).text
    async with asking(shop=shop, bank=bank) as client:
        front = (await client.get("/")).text
        given = {"authorization": f"Bearer {token}"}
        metrics = (await client.get("/metrics", headers=given)).text
        refused = await client.get("/shop/metrics", headers=given)

    assert front.count("Sign in</a> to see more.") == 2
    assert 'everytick_nodes_alive{store="bank"} 0' in metrics
    assert 'everytick_nodes_alive{store="shop"}' not in metrics
    assert 'everytick_store_up{store="shop"} 1' in metrics
    assert refused.status_code == 401


async def test_a_session_is_a_cookie_of_the_store_that_the_front_page_reads_too(
    shop: Everytick, bank: Everytick
) -> None:
    with shop.acting_as(Doer("setup", CameBy.COMMAND)):
        await shop.people.add_user("ann", Role.ADMIN, password=PASSWORD)
    with bank.acting_as(Doer("setup", CameBy.COMMAND)):
        await bank.people.add_user("ann", Role.ADMIN, password=PASSWORD)
    signed_in = await shop.people.sign_in("ann", PASSWORD, "127.0.0.1")
    assert signed_in is not None
    async with asking(shop=shop, bank=bank) as client:
        client.cookies.set("everytick_session.shop", signed_in.text)
        front = (await client.get("/")).text
        ours, theirs = await client.get("/shop/jobs"), await client.get("/bank/jobs")

    assert front.count("Sign in</a> to see more.") == 1
    assert ours.status_code == 200
    assert theirs.status_code in (303, 401)


def test_metrics_of_several_stores_are_one_text_with_each_help_once() -> None:
    one = '# HELP a A.\n# TYPE a gauge\na 1\n# HELP b B.\n# TYPE b counter\nb{job="{x}"} 2\n'
    two = "# HELP a A.\n# TYPE a gauge\na 3\n"

    assert list(labelled({"shop": one, "bank": two})) == [
        "# HELP a A.",
        "# TYPE a gauge",
        'a{store="shop"} 1',
        'a{store="bank"} 3',
        "# HELP b B.",
        "# TYPE b counter",
        'b{store="shop",job="{x}"} 2',
    ]
