"""Signing in: name and password, sessions, the first link, tokens, proxies."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from everytick import Everytick
from everytick.access.passwords import TooBusy
from everytick.access.settings import access_settings
from everytick.access.signing_in import SESSION_IDLE, SESSION_MOST
from everytick.domain.people import CameBy, Doer, Grant, Role
from everytick.errors import InvalidSetting
from everytick.stores.memory import MemoryStore
from everytick.web.asgi import Service, asgi
from tests.stores.clock import ManualClock

ADMIN = Doer("setup", CameBy.COMMAND, "here")
PASSWORD = "correct horse battery"
OURS = {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin", "accept": "text/html"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def shop(clock: ManualClock) -> AsyncIterator[Everytick]:
    """An application with one job and the admin ann."""
    store = MemoryStore(clock)
    await store.open()
    tick = Everytick(store, name="shop")
    tick.job("0 * * * *", name="etl", tags=["billing"])(lambda: None)
    await tick.sync()
    with tick.acting_as(ADMIN):
        await tick.people.add_user("ann", Role.ADMIN, password=PASSWORD)
    yield tick
    await store.close()


def browser(service: Service, **more: Any) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(service, client=(more.pop("address", "192.0.2.7"), 5000))
    return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=OURS, **more)


async def csrf(asking: httpx2.AsyncClient, path: str = "/signin") -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{128})"', (await asking.get(path)).text)
    assert found is not None
    return found[1]


async def sign_in(asking: httpx2.AsyncClient, name: str = "ann", password: str = PASSWORD, **more: str) -> Any:
    data = {"csrf": await csrf(asking), "name": name, "password": password, **more}
    return await asking.post("/signin", data=data)


async def test_a_person_signs_in_and_out(shop: Everytick) -> None:
    """S7: the cookie is for this site alone. S17: both stand in the audit."""
    asking = browser(asgi(shop))
    refused = await asking.get("/more")
    entered = await sign_in(asking, next="/more?a=b")
    inside = await asking.get("/more")
    left = await asking.post("/signout", data={"csrf": await csrf(asking, "/signout")})
    outside = await asking.get("/more")

    assert (refused.status_code, refused.headers["location"]) == (303, "/signin?next=%2Fmore")
    assert (entered.status_code, entered.headers["location"]) == (303, "/more?a=b")
    assert re.fullmatch(
        r"everytick_session=[\w-]{43}; Path=/; HttpOnly; SameSite=Strict; Max-Age=1209600",
        entered.headers["set-cookie"],
    )
    assert (inside.status_code, left.status_code, outside.status_code) == (200, 303, 303)
    told = [str(deed) for deed in (await shop.people.deeds()).deeds]
    assert told == ["ann signed out", "ann signed in", "setup added user ann as admin"]


async def test_the_cookie_is_for_the_prefix_of_the_service_alone(shop: Everytick) -> None:
    """S7: other applications of the same host do not get it."""
    transport = httpx2.ASGITransport(asgi(shop), root_path="/everytick")
    secured = httpx2.AsyncClient(transport=transport, base_url="https://127.0.0.1/everytick")
    found = re.search(r'name="csrf" value="([0-9a-f]{128})"', (await secured.get("/signin")).text)
    assert found is not None
    data = {"csrf": found[1], "name": "ann", "password": PASSWORD, "next": "/more"}
    entered = await secured.post("/signin", data=data, headers={**OURS, "origin": "https://127.0.0.1"})

    assert entered.headers["location"] == "/everytick/more"
    assert re.fullmatch(
        r"__Secure-everytick_session=[\w-]{43}; Path=/everytick; HttpOnly; SameSite=Strict; Max-Age=1209600; Secure",
        entered.headers["set-cookie"],
    )


async def test_a_session_is_new_at_each_sign_in(shop: Everytick) -> None:
    """Session fixation: what a browser brings along is never made its session."""
    asking = browser(asgi(shop), cookies={"everytick_session": "a" * 43})
    token = await csrf(asking)
    entered = await asking.post("/signin", data={"csrf": token, "name": "ann", "password": PASSWORD})

    assert "everytick_session=" in entered.headers["set-cookie"]
    assert "a" * 43 not in entered.headers["set-cookie"]
    assert await shop.people.person_of_session("a" * 43, "") is None


@pytest.mark.parametrize(
    ("name", "password"), [("ann", "wrong password"), ("bob", PASSWORD), ("", ""), ("ANN", PASSWORD)]
)
async def test_a_wrong_name_and_a_wrong_password_are_answered_alike(shop: Everytick, name: str, password: str) -> None:
    """S6: no client learns which names there are; a name counts whole."""
    answer = await sign_in(browser(asgi(shop)), name, password)

    assert answer.status_code == 401
    assert "Name and password do not fit." in answer.text
    assert "set-cookie" not in answer.headers


async def test_unknown_names_are_hashed_too_and_hashes_are_bounded(shop: Everytick) -> None:
    """S6: the time of the answer does not tell which names there are, and strangers cannot occupy the node."""
    attempts = [shop.people.sign_in(f"nobody-{number}", "wrong password", "") for number in range(30)]
    answers = await asyncio.gather(*attempts, return_exceptions=True)

    assert answers.count(None) == 22, "two are hashed, twenty wait"
    assert sum(isinstance(answer, TooBusy) for answer in answers) == 8


async def test_failures_delay_the_next_attempt_also_for_the_right_password(shop: Everytick, clock: ManualClock) -> None:
    """S6: by name, in the store, so that all processes count together."""
    asking = browser(asgi(shop))
    for _ in range(6):
        await sign_in(asking, "ann", "wrong password")
        clock.move(seconds=0.1)
    delayed = await sign_in(asking)
    clock.move(seconds=3)
    entered = await sign_in(asking)

    assert (delayed.status_code, int(delayed.headers["retry-after"])) == (429, 1)
    assert entered.status_code == 303
    assert (await (await shop._opened()).access.failures("ann")).count == 0


async def test_one_address_may_fail_twenty_times_in_five_minutes(shop: Everytick) -> None:
    """S6: whatever names it tries. Other addresses are not held up."""
    service = asgi(shop)
    asking = browser(service)
    token = await csrf(asking)
    codes = [
        (await asking.post("/signin", data={"csrf": token, "name": f"n{number}", "password": "x"})).status_code
        for number in range(21)
    ]

    assert codes == [401] * 20 + [429]
    assert (await sign_in(browser(service, address="192.0.2.8"))).status_code == 303


async def test_all_addresses_of_one_ipv6_network_fail_together(shop: Everytick) -> None:
    """S6: each customer has 2⁶⁴ addresses, and could use a new one for every attempt."""
    service = asgi(shop)
    codes = []
    for number in range(21):
        asking = browser(service, address=f"2001:db8::{number:x}")
        given = {"csrf": await csrf(asking), "name": f"n{number}", "password": "x"}
        codes.append((await asking.post("/signin", data=given)).status_code)

    assert codes == [401] * 20 + [429]
    assert (await sign_in(browser(service, address="2001:db8:0:1::1"))).status_code == 303


async def test_a_session_ends_when_idle_and_at_last(shop: Everytick, clock: ManualClock) -> None:
    asking = browser(asgi(shop))
    await sign_in(asking)
    for _ in range(int(SESSION_MOST / SESSION_IDLE) + 1):
        clock.move(hours=11)
        assert (await asking.get("/more")).status_code == 200
    clock.move(hours=13)
    idle = await asking.get("/more")
    await sign_in(asking)
    codes = []
    for _ in range(40):
        clock.move(hours=11)
        codes.append((await asking.get("/more")).status_code)

    assert idle.status_code == 303
    assert codes.index(303) == SESSION_MOST // timedelta(hours=11)


async def test_a_session_ends_with_the_password_and_with_the_user(shop: Everytick) -> None:
    with shop.acting_as(ADMIN):
        await shop.people.add_user("bob", Role.VIEWER, password=PASSWORD)
    asking = browser(asgi(shop))
    await sign_in(asking, "bob")
    with shop.acting_as(ADMIN):
        await shop.people.set_password("bob", "another long one")
    after_password = await asking.get("/more")
    await sign_in(asking, "bob", "another long one")
    within = await asking.get("/more")
    with shop.acting_as(ADMIN):
        await shop.people.remove_user("bob")

    assert [after_password.status_code, within.status_code] == [303, 200]
    assert (await asking.get("/more")).status_code == 303


async def test_a_role_holds_from_the_next_request_on(shop: Everytick) -> None:
    with shop.acting_as(ADMIN):
        await shop.people.add_user("bob", Role.VIEWER, password=PASSWORD)
    asking = browser(asgi(shop))
    await sign_in(asking, "bob")
    before = await asking.get("/access")
    with shop.acting_as(ADMIN):
        await shop.people.set_role("bob", Role.ADMIN)

    assert before.status_code == 403
    assert (await asking.get("/access")).status_code == 200


NEXTS = ["//example.net", "https://example.net", "/\\example.net", "\\\\example.net", "javascript:alert(1)", "a", ""]


@pytest.mark.parametrize("wanted", [*NEXTS, "/\texample.net", "/\n/example.net", "/\r\nset-cookie: a=b", "/é"])
async def test_sign_in_leads_to_no_other_site(shop: Everytick, wanted: str) -> None:
    """Open redirects and header injection by `?next=`."""
    entered = await sign_in(browser(asgi(shop)), next=wanted)

    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert len(entered.headers.get_list("set-cookie")) == 1


async def test_a_link_of_another_site_is_followed_with_the_cookie_from_a_page_of_ours(shop: Everytick) -> None:
    """The cookie is strict: a browser leaves it out when it comes from elsewhere."""
    asking = browser(asgi(shop))
    first = await asking.get("/more?x=1&y=%22", headers={"sec-fetch-site": "cross-site"})

    assert first.status_code == 200
    assert '<meta http-equiv="refresh" content="0; url=/more?x=1&amp;y=%22">' in first.text


# ---------------------------------------------------------------------------------------------------- the first admin


@pytest.fixture
async def fresh(clock: ManualClock) -> Everytick:
    return Everytick(MemoryStore(clock), name="shop")


async def test_the_first_link_makes_one_admin_once(fresh: Everytick) -> None:
    secret = (await fresh.people.first_link()).text
    asking = browser(asgi(fresh, access_settings(auth="users")))
    before = await asking.get("/signin")
    token = await csrf(asking, f"/welcome?link={secret}")
    data = {"csrf": token, "link": secret, "name": "ann", "password": PASSWORD, "again": PASSWORD}
    differ = await asking.post("/welcome", data={**data, "again": "x" * 20})
    short = await asking.post("/welcome", data={**data, "password": "short", "again": "short"})
    made = await asking.post("/welcome", data=data)
    inside = await asking.get("/more")
    again = await browser(asgi(fresh)).get(f"/welcome?link={secret}")

    assert "There is no user yet" in before.text
    assert "The two passwords differ." in differ.text
    assert (short.status_code, "at least 10 characters" in short.text) == (422, True)
    assert (made.status_code, inside.status_code, again.status_code) == (303, 200, 404)
    assert [(user.name, user.role) for user in await fresh.people.users()] == [("ann", Role.ADMIN)]


async def test_the_first_link_is_over_after_an_hour(fresh: Everytick, clock: ManualClock) -> None:
    secret = (await fresh.people.first_link()).text
    clock.move(hours=1)

    assert not await fresh.people.is_first_link(secret)
    assert await fresh.people.take_first_link(secret, "ann", PASSWORD, "") is None


# ----------------------------------------------------------------------------------------------------------- tokens


async def _asked_with(shop: Everytick, text: str, path: str = "/api/users", **more: Any) -> Any:
    headers = {"authorization": f"Bearer {text}", "accept": "application/json"}
    return await browser(asgi(shop)).request(more.pop("method", "GET"), path, headers=headers, **more)


async def test_a_token_opens_what_its_role_may_until_it_ends(shop: Everytick, clock: ManualClock) -> None:
    """S6: shown once, stored as a hash, expiring, revocable; its last use is known."""
    with shop.acting_as(ADMIN):
        made = await shop.people.add_token("ci", Role.ADMIN, lasts=timedelta(days=1))
    opened = await _asked_with(shop, made.text)
    [kept] = await shop.people.tokens()
    clock.move(days=1)
    over = await _asked_with(shop, made.text)
    with shop.acting_as(ADMIN):
        other = await shop.people.add_token("cd", Role.ADMIN)
        await shop.people.revoke_token("cd")
    revoked = await _asked_with(shop, other.text)

    assert re.fullmatch(r"etk_[0-9a-f]{12}_[\w-]{43}", made.text)
    assert made.text[17:] not in repr(made) + repr(kept) + kept.hash
    assert kept.used_at is not None
    assert (opened.status_code, over.status_code, revoked.status_code) == (200, 401, 401)
    assert over.headers["www-authenticate"].startswith("Bearer")


UNKNOWN = "Bearer etk_000000000000_" + "a" * 43


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer etk_x", "Basic YTpi", "bearer  ", UNKNOWN])
async def test_what_is_no_token_is_refused_and_no_cookie_stands_in_for_it(shop: Everytick, given: str) -> None:
    asking = browser(asgi(shop))
    await sign_in(asking)
    answer = await asking.get("/more", headers={"authorization": given, "accept": "*/*"})

    assert answer.status_code == 401


async def test_a_token_may_no_more_than_its_owner_now(shop: Everytick) -> None:
    """S3: scopes are bound by the person, also after the token was made."""
    with shop.acting_as(ADMIN):
        await shop.people.add_user("bob", Role.ADMIN, password=PASSWORD)
        made = await shop.people.add_token("bobs", Role.ADMIN, owner="bob")
        as_admin = await _asked_with(shop, made.text)
        await shop.people.set_role("bob", Role.VIEWER, [Grant("billing", Role.OPERATOR)])
    as_viewer = await _asked_with(shop, made.text)
    person = await shop.people.person_of_token(made.text, "")
    with shop.acting_as(ADMIN):
        await shop.people.remove_user("bob")

    assert person is not None
    assert (person.name, person.role, person.grants) == ("bob/bobs", Role.VIEWER, (Grant("billing", Role.OPERATOR),))
    assert (as_admin.status_code, as_viewer.status_code) == (200, 403)
    assert (await _asked_with(shop, made.text)).status_code == 401


# ---------------------------------------------------------------------------------------------------------- proxies

PROXY = access_settings(proxies=["10.0.0.0/24"], proxy_header="X-Remote-User")


@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("10.0.0.5", {"x-remote-user": "ann"}, 200),
        ("10.0.1.5", {"x-remote-user": "ann"}, 401),
        ("127.0.0.1", {"x-remote-user": "ann"}, 401),
        ("10.0.0.5", {}, 401),
        ("10.0.0.5", {"x-remote-user": " "}, 401),
        ("10.0.0.5", {"x-remote-user": "ann.evil"}, 403),
        ("10.0.0.5", {"x-remote-user": "xann"}, 403),
    ],
)
async def test_only_a_trusted_proxy_names_people(
    shop: Everytick, address: str, headers: dict[str, str], status: int
) -> None:
    """S6: the whole name counts, and the connection's own address."""
    answer = await browser(asgi(shop, PROXY), address=address).get("/more", headers={**headers, "accept": "*/*"})

    assert answer.status_code == status


async def test_two_names_of_a_proxy_are_none(shop: Everytick) -> None:
    headers = [("x-remote-user", "ann"), ("x-remote-user", "bob"), ("accept", "*/*")]

    assert (await browser(asgi(shop, PROXY), address="10.0.0.5").get("/more", headers=headers)).status_code == 401


async def test_a_proxy_tells_address_and_scheme_and_strangers_do_not(shop: Everytick) -> None:
    """What stands left of the last untrusted address was written by the client itself."""
    headers = {"x-forwarded-for": "203.0.113.1, 198.51.100.9", "x-forwarded-proto": "https"}
    service = asgi(shop, access_settings(proxies=["10.0.0.5"]))
    trusted, stranger = browser(service, address="10.0.0.5"), browser(service, address="192.0.2.1")
    secured = await trusted.get("/signin", headers=headers)
    plain = await stranger.get("/signin", headers=headers)

    assert "__Host-everytick_form=" in secured.headers["set-cookie"]
    assert "__Host-" not in plain.headers["set-cookie"]


async def test_a_service_without_users_behind_an_unknown_proxy_is_closed(fresh: Everytick) -> None:
    """S1: the proxy's own address is this host, but not all who come through it are."""
    asking = browser(asgi(fresh), address="127.0.0.1")
    by_proxy = await asking.get("/more", headers={"x-forwarded-for": "203.0.113.1", "accept": "*/*"})

    assert by_proxy.status_code == 401
    assert (await asking.get("/more")).status_code == 200


def test_a_header_of_all_proxies_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="web_proxies"):
        access_settings(proxy_header="X-Remote-User")
