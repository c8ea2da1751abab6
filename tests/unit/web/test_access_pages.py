"""`/access` and `/audit`: people, tokens and sessions, each deed on a page that asks first."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from everytick import Everytick
from everytick.domain.people import CameBy, Doer, Grant, Role
from everytick.stores.memory import MemoryStore
from everytick.web.asgi import asgi
from tests.stores.clock import ManualClock
from tests.unit.web.test_signin import OURS, PASSWORD, browser, csrf, sign_in

SETUP = Doer("setup", CameBy.COMMAND)


@pytest.fixture
async def shop() -> AsyncIterator[Everytick]:
    store = MemoryStore(ManualClock())
    await store.open()
    tick = Everytick(store, name="shop")
    tick.job("0 * * * *", name="etl", tags=["billing"])(lambda: None)
    await tick.sync()
    with tick.acting_as(SETUP):
        await tick.people.add_user("ann", Role.ADMIN, password=PASSWORD)
    yield tick
    await store.close()


@pytest.fixture
async def ann(shop: Everytick) -> httpx2.AsyncClient:
    """The admin, signed in."""
    asking = browser(asgi(shop))
    await sign_in(asking)
    return asking


async def sent(asking: httpx2.AsyncClient, path: str, **fields: str) -> Any:
    """Open the page that asks, and send its form."""
    return await asking.post(path, data={"csrf": await csrf(asking, path), **fields})


async def test_a_user_is_added_changed_and_removed(shop: Everytick, ann: httpx2.AsyncClient) -> None:
    again = {"password": PASSWORD, "again": PASSWORD}
    added = await sent(ann, "/access/users/add", name="ben", role="viewer", grants="billing:operator\n", **again)
    listed = await ann.get("/access")
    changed = await sent(ann, "/access/users/ben/role", role="operator", grants="")
    secret = await sent(ann, "/access/users/ben/password", password="another long one", again="another long one")
    mistyped = await sent(ann, "/access/users/ben/remove", name="bem")
    removed = await sent(ann, "/access/users/ben/remove", name="ben")

    assert [answer.status_code for answer in (added, changed, secret, removed)] == [303] * 4
    assert "2 users" in listed.text
    assert "billing:operator" in listed.text
    assert (mistyped.status_code, "Type the name" in mistyped.text) == (422, True)
    assert [str(deed) for deed in (await shop.people.deeds(by="ann", limit=4)).deeds] == [
        "ann removed user ben",
        "ann set the password of user ben",
        "ann changed user ben to operator",
        "ann added user ben as viewer with billing:operator",
    ]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"name": "", "password": PASSWORD, "again": PASSWORD}, "is empty"),
        ({"name": "ben", "password": PASSWORD, "again": "other"}, "The two passwords differ"),
        ({"name": "ben", "password": "short", "again": "short"}, "too short"),
        ({"name": "ann"}, "There is a user ann already"),
        ({"name": "a:b"}, "neither a colon nor a slash"),
        ({"name": "ben", "role": "king"}, "is none of viewer, operator, admin"),
        ({"name": "ben", "grants": "billing"}, "is not a tag and a role"),
    ],
)
async def test_what_cannot_be_stored_is_told_on_the_form(
    shop: Everytick, ann: httpx2.AsyncClient, fields: dict[str, str], why: str
) -> None:
    answer = await sent(ann, "/access/users/add", **fields)

    assert (answer.status_code, why in answer.text) == (422, True)
    assert [user.name for user in await shop.people.users()] == ["ann"]
    assert "short" not in re.findall(r'value="([^"]*)"', answer.text), "no password comes back"


async def test_the_last_admin_stays(shop: Everytick, ann: httpx2.AsyncClient) -> None:
    lowered = await sent(ann, "/access/users/ann/role", role="viewer", grants="")
    removed = await sent(ann, "/access/users/ann/remove", name="ann")

    assert [lowered.status_code, removed.status_code] == [422, 422]
    assert "last admin" in removed.text


async def test_a_token_is_shown_once_and_revoked(shop: Everytick, ann: httpx2.AsyncClient) -> None:
    """S6: the page that shows it is not kept by the browser, and no other page has it."""
    made = await sent(ann, "/access/tokens/add", name="ci", role="operator", lasts="30d")
    [text] = re.findall(r"etk_[0-9a-f]{12}_[\w-]{43}", made.text)
    listed = await ann.get("/access")
    id_ = text.split("_")[1]
    revoked = await sent(ann, f"/access/tokens/{id_}/revoke")
    wrong = await sent(ann, "/access/tokens/add", name="cd", role="viewer", owner="nobody-here")

    assert made.headers["cache-control"] == "no-store"
    assert text not in listed.text
    assert id_ in listed.text
    assert revoked.status_code == 303
    assert "1 ended token" in (await ann.get("/access")).text
    assert wrong.status_code == 422


async def test_an_admin_ends_a_session(shop: Everytick, ann: httpx2.AsyncClient) -> None:
    other = browser(asgi(shop), address="198.51.100.4")
    await sign_in(other)
    session = next(each for each in await shop.people.sessions() if each.address == "198.51.100.4")
    asked = await ann.get(f"/access/sessions/{session.hash[:16]}/end")
    ended = await sent(ann, f"/access/sessions/{session.hash[:16]}/end")

    assert "198.51.100.4" in asked.text
    assert session.hash not in asked.text + (await ann.get("/access")).text
    assert ended.status_code == 303
    assert ((await other.get("/more")).status_code, (await ann.get("/more")).status_code) == (303, 200)


async def test_a_person_changes_their_own_password_with_the_old_one(shop: Everytick) -> None:
    with shop.acting_as(SETUP):
        await shop.people.add_user("ben", Role.VIEWER, password=PASSWORD)
    ben = browser(asgi(shop))
    await sign_in(ben, "ben")
    new = {"password": "another long one", "again": "another long one"}
    wrong = await sent(ben, "/access/me", old="not the old one", **new)
    right = await sent(ben, "/access/me", old=PASSWORD, **new)

    assert (wrong.status_code, "This is not your password" in wrong.text) == (422, True)
    assert right.status_code == 303
    assert (await ben.get("/more")).status_code == 303, "all sessions have ended"
    assert (await sign_in(ben, "ben", "another long one")).status_code == 303


async def test_the_audit_is_a_sentence_per_row_with_filters_and_pages(shop: Everytick, ann: httpx2.AsyncClient) -> None:
    """S17: a viewer reads it too."""
    with shop.acting_as(Doer("ben", CameBy.TOKEN, "10.0.0.8")):
        await shop.pause("etl", reason="inventory")
        for _ in range(110):
            await shop.set_limit("all", most=3)
            await shop.remove_limit("all")
    first = await ann.get("/audit")
    [older] = re.findall(r'href="(/audit\?before=\d+)" rel="next"', first.text)
    second = await ann.get(older)
    by_job = await ann.get("/audit", params={"job": "etl", "by": "ben"})
    nothing = await ann.get("/audit", params={"by": "no-one"})

    assert "<h1>Last: ben took away the limit of all.</h1>" in first.text
    assert first.text.count("<tr><td") == 100
    assert second.text.count("<tr><td") == 100
    assert "Newest" in second.text
    assert by_job.text.count("<tr><td") == 1
    assert "inventory" in by_job.text
    assert "by a token, 10.0.0.8" in by_job.text
    assert "Nothing was done by no-one." in nothing.text


async def test_the_audit_tells_times_on_the_clock_of_the_reader(shop: Everytick, ann: httpx2.AsyncClient) -> None:
    ann.cookies.set("everytick_zone", "Asia/Tokyo")
    with shop.acting_as(Doer("ben", CameBy.TOKEN)):
        await shop.backfill("etl", "2026-01-10T00:00:00Z", "2026-01-14T00:00:00Z")
    page = (await ann.get("/audit")).text

    assert "after 10 Jan 09:00 through 14 Jan 09:00" in page
    assert "2026-01-10T00:00:00Z" not in page


async def test_what_a_person_may_not_do_is_not_shown(shop: Everytick) -> None:
    with shop.acting_as(SETUP):
        await shop.people.add_user("ben", Role.VIEWER, grants=[Grant("billing", Role.OPERATOR)], password=PASSWORD)
    ben = browser(asgi(shop))
    await sign_in(ben, "ben")

    assert "Users and tokens" not in (await ben.get("/audit")).text
    assert (await ben.get("/access", headers=OURS)).status_code == 403
