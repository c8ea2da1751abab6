"""Every route of the router × every kind of person. A new route is in these tables by itself."""

import re
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from everytick import Everytick
from everytick.access.throttle import Throttle
from everytick.domain.people import CameBy, Doer, Grant, Role
from everytick.stores.memory import MemoryStore
from everytick.web.asgi import Service, asgi
from everytick.web.csrf import SESSION_COOKIE
from tests.stores.acting import plan_once
from tests.stores.clock import ManualClock
from tests.unit.web.asking_raw import ROUTES, UNSAFE, asked, filled

SETUP = Doer("setup", CameBy.COMMAND)
JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
async def shop() -> AsyncIterator[Everytick]:
    """An application with users, tokens of every kind, and a job with the tag billing."""
    clock = ManualClock()
    store = MemoryStore(clock)
    await store.open()
    tick = Everytick(store, name="shop")
    tick.define("etl", "0 * * * *", owner="api", tags=["billing"]).command("work", "true")
    tick.define("other", "0 * * * *", owner="api").command("work", "true")
    await tick.sync()
    with tick.acting_as(SETUP):
        await tick.people.add_user("root", Role.ADMIN)
    yield tick
    await store.close()


def unbounded(tick: Everytick) -> Service:
    """Return the service with room for the many requests of one test."""
    service = asgi(tick)
    rates = service.app.state.rates
    rates._reads = rates._changes = Throttle(1_000_000, 1)
    return service


async def _token(tick: Everytick, role: Role, **more: Any) -> dict[str, str]:
    with tick.acting_as(SETUP):
        made = await tick.people.add_token(f"t{role}{len(more)}", role, **more)
    return {"authorization": f"Bearer {made.text}"}


def _body(path: str) -> tuple[Mapping[str, str], bytes]:
    return (JSON, b"{}") if path.startswith("/api/") else (FORM, b"")


async def _statuses(tick: Everytick, headers: Mapping[str, str]) -> dict[tuple[str, str], int]:
    service, found = unbounded(tick), {}
    for method, path, _ in ROUTES:
        kind, body = _body(path)
        status, _ = await asked(service, method, filled(path), {**kind, **headers}, body=body)
        found[method, path] = status
    return found


async def test_without_a_person_every_route_but_the_open_ones_is_closed(shop: Everytick) -> None:
    """S2: the list is the router's own, so that it is complete."""
    open_ = {(method, path) for method, path, role in ROUTES if role is None}
    found = await _statuses(shop, {})

    assert len(ROUTES) > 150
    assert {route: status for route, status in found.items() if route not in open_ and status != 401} == {}
    assert {path for method, path in open_ if method != "GET"} == {"/signin", "/welcome"}
    assert {path for _, path in open_} == {
        "/livez",
        "/readyz",
        "/startupz",
        "/static/{name:path}",
        "/lab",
        "/settings",
        "/signin",
        "/welcome",
        "/oidc",
        "/oidc/callback",
    }


@pytest.mark.parametrize("role", Role)
async def test_each_role_is_let_in_where_its_routes_are_and_nowhere_else(shop: Everytick, role: Role) -> None:
    """S3: role × route. What is let in may still be not found, or not readable."""
    found = await _statuses(shop, await _token(shop, role))
    wrong = {}
    for method, path, needed in ROUTES:
        status = found[method, path]
        is_refused = status in (401, 403)
        # An open form is refused without its token, whichever user sends it.
        if is_refused is not (needed is not None and needed > role) and (method, path) not in _OPEN_FORMS:
            wrong[method, path] = status
        if status >= 500 and path != "/readyz":  # the clock of these tests is not that of the host
            wrong[method, path] = status

    assert wrong == {}


@pytest.mark.parametrize("role", [None, *Role])
async def test_head_is_answered_as_get_by_each_route_to_each_role(shop: Everytick, role: Role | None) -> None:
    """Also by streams, of which the head comes at once."""
    headers = {} if role is None else await _token(shop, role)
    service, wrong = unbounded(shop), {}
    for method, path, _ in ROUTES:
        if method == "GET":
            got, _ = await asked(service, "GET", filled(path), headers)
            head, _ = await asked(service, "HEAD", filled(path), headers)
            if head != got:
                wrong[path] = head, got

    assert wrong == {}


async def test_head_has_no_body_and_says_how_long_that_of_get_is(shop: Everytick) -> None:
    headers = await _token(shop, Role.VIEWER)
    transport = httpx2.ASGITransport(unbounded(shop))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as asking:
        head, got = await asking.head("/api/jobs"), await asking.get("/api/jobs")
        refused = await asking.head("/jobs/etl/do/nothing-here")

    assert head.content == b""
    assert head.headers["content-length"] == str(len(got.content))
    assert refused.status_code == 404


_OPEN_FORMS = {("POST", "/signin"), ("POST", "/welcome"), ("GET", "/oidc/callback")}


async def test_a_token_that_has_ended_opens_nothing(shop: Everytick) -> None:
    """S2, S6: revoked, expired, and without its owner."""
    revoked, over = await _token(shop, Role.ADMIN), await _token(shop, Role.ADMIN, lasts=timedelta(seconds=1))
    with shop.acting_as(SETUP):
        await shop.people.add_user("bob", Role.ADMIN)
    orphaned = await _token(shop, Role.ADMIN, owner="bob", lasts=timedelta(days=1))
    with shop.acting_as(SETUP):
        await shop.people.revoke_token("tadmin0")
        await shop.people.remove_user("bob")
    store: Any = await shop._opened()
    store._shared.clock.move(seconds=2)

    for headers in (revoked, over, orphaned):
        found = await _statuses(shop, headers)
        closed = [found[method, path] for method, path, role in ROUTES if role is not None]
        assert set(closed) == {401}


async def test_a_grant_opens_the_routes_of_its_jobs_alone(shop: Everytick) -> None:
    """S3: role × route × object: by tag, and by name."""
    by_tag = await _token(shop, Role.VIEWER, grants=[Grant("billing", Role.OPERATOR)])
    by_name = await _token(shop, Role.VIEWER, grants=[Grant("job:other", Role.OPERATOR)], lasts=timedelta(days=1))
    service = unbounded(shop)
    wrong = []
    for method, path, role in ROUTES:
        if "{job:name}" not in path or role is None:
            continue
        kind, body = _body(path)
        for headers, own, foreign in ((by_tag, "etl", "other"), (by_name, "other", "etl")):
            given = {**kind, **headers}
            mine, _ = await asked(service, method, filled(path, {"job": own}), given, body=body)
            theirs, _ = await asked(service, method, filled(path, {"job": foreign}), given, body=body)
            if (mine == 403) is not (role > Role.OPERATOR) or (theirs == 403) is not (role > Role.VIEWER):
                wrong.append((method, path, own, mine, theirs))

    assert wrong == []


async def test_a_grant_opens_the_occurrences_and_backfills_of_its_jobs_alone(shop: Everytick) -> None:
    """S3: role × route × object, where the address names no job."""
    headers = await _token(shop, Role.VIEWER, grants=[Grant("billing", Role.OPERATOR)])
    service, wrong = unbounded(shop), []
    named = {}
    for job in ("etl", "other"):
        run = (await shop.trigger(job)).id
        now = await shop.now()
        backfill = str((await shop.backfill(job, now - timedelta(hours=3), now, approve=False)).id)
        named[job] = {"occurrence": run, "id": run, "backfill": backfill}
    about = [each for each in ROUTES if "/occurrences/{" in each[1] or "/backfills/{" in each[1]]
    for method, path, role in about:
        kind, body = _body(path)
        given = {**kind, **headers}
        mine, _ = await asked(service, method, filled(path, named["etl"]), given, body=body)
        theirs, _ = await asked(service, method, filled(path, named["other"]), given, body=body)
        # The route is for all, and what the attempts of a job have printed for its operators.
        is_closed = role > Role.VIEWER or (path.startswith("/api/") and path.endswith("/output"))
        if mine in (401, 403) or (theirs == 403) is not is_closed:
            wrong.append((method, path, mine, theirs))

    assert (len(about) > 20, wrong) == (True, [])


MANY = [path for method, path, _ in ROUTES if method == "POST" and path.startswith(("/jobs/do/", "/history/do/"))]


@pytest.mark.parametrize("path", MANY)
async def test_a_deed_on_many_reaches_the_jobs_of_a_grant_alone(shop: Everytick, path: str) -> None:
    """S3: a form can be changed, so the grant is looked at for each job that it names."""
    with shop.acting_as(SETUP):
        await shop.people.add_user("ann", Role.VIEWER, grants=[Grant("billing", Role.OPERATOR)])
        await shop.people.add_user("bob", Role.VIEWER, grants=[Grant("billing", Role.VIEWER)])
    runs = {job: (await shop.trigger(job)).id for job in ("etl", "other")}
    await plan_once(await shop._opened())
    for job, run in runs.items():
        if path.endswith("resume"):
            await shop.pause(job)
        if path.endswith("replay"):
            await shop.cancel(run)
    field, both = ("job", [*runs]) if path.startswith("/jobs") else ("id", [*runs.values()])
    client = httpx2.AsyncClient(transport=httpx2.ASGITransport(unbounded(shop)), base_url="http://127.0.0.1")
    async with client as asking:
        outside = await asking.get(path, headers=await _session(shop, "bob"))
        cookie = await _session(shop, "ann")
        shown = await asking.get(path, params={field: both}, headers=cookie)
        [token] = re.findall(r'name="csrf" value="(\w+)"', shown.text)
        form = {"csrf": token, "confirmed": "yes", "key": "k", field: "\n".join(both)}
        origin = {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}
        done = await asking.post(path, data=form, headers={**cookie, **origin})

    assert (outside.status_code, done.status_code) == (403, 303)
    assert "etl" in shown.text
    assert runs["other"] not in shown.text
    deeds = [deed for deed in (await shop.people.deeds(limit=1000)).deeds if deed.doer.name == "ann" and deed.job_id]
    assert {deed.job_id for deed in deeds} == {(await shop.job("etl")).job.id}, deeds


async def _session(tick: Everytick, name: str) -> dict[str, str]:
    secret = await tick.people.begin_session(await tick.people.user(name), "192.0.2.7")
    return {"cookie": f"{SESSION_COOKIE}={secret.text}", "accept": "text/html"}


# ---------------------------------------------------------------------------------------------------------- forgeries

FOREIGN = {"origin": "http://example.net", "sec-fetch-site": "cross-site"}
OURS = {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}
FORGED: dict[str, tuple[dict[str, str], bytes]] = {
    "no token": ({**OURS, **FORM}, b"a=b"),
    "a wrong token": ({**OURS, **FORM, "x-csrf-token": "0" * 64}, b"csrf=" + b"0" * 64),
    "another origin": ({**FOREIGN, **FORM}, b"a=b"),
    "another origin without fetch metadata": ({"origin": "http://example.net", **FORM}, b"a=b"),
    "an opaque origin": ({"origin": "null", **FORM}, b"a=b"),
    "JSON as plain text": ({**OURS, "content-type": "text/plain"}, b"{}"),
    "JSON of another site": ({**FOREIGN, **JSON}, b"{}"),
    "a bound name": ({**OURS, **FORM, "host": "example.net", "origin": "http://example.net"}, b"a=b"),
}


@pytest.mark.parametrize("how", FORGED)
@pytest.mark.parametrize("is_signed_in", [True, False], ids=["session", "this host"])
async def test_a_forged_request_changes_nothing_on_any_route(shop: Everytick, how: str, is_signed_in: bool) -> None:
    """S4: each state-changing route × each forgery, with a session and at a service without users."""
    headers, body = FORGED[how]
    if is_signed_in:
        secret = await shop.people.begin_session(await shop.people.user("root"), "192.0.2.7")
        service, headers = unbounded(shop), {**headers, "cookie": f"{SESSION_COOKIE}={secret.text}"}
    else:
        empty = Everytick(MemoryStore(ManualClock()), name="shop")
        service = unbounded(empty)
    before = len((await shop.people.deeds(limit=1000)).deeds)
    found = {}
    for method, path in UNSAFE:
        status, _ = await asked(service, method, filled(path), headers, body=body, address="127.0.0.1")
        found[method, path] = status

    assert {route: status for route, status in found.items() if status not in (403, 415, 421)} == {}
    assert len((await shop.people.deeds(limit=1000)).deeds) == before


async def test_no_route_changes_anything_by_get(shop: Everytick) -> None:
    """S4: a link or an image of another site is a GET with the cookie, or without."""
    headers = await _token(shop, Role.ADMIN)
    service = unbounded(shop)
    before = len((await shop.people.deeds(limit=1000)).deeds)
    for method, path, _ in ROUTES:
        if method == "GET":
            await asked(service, method, filled(path, {"job": "etl", "user": "root"}), headers)

    assert len((await shop.people.deeds(limit=1000)).deeds) == before
    assert (await shop.job("etl")).job.version == 1


SAME_DEED = {
    "/proposals/{id}/do/approve": "/api/proposals/{proposal}/approve",
    "/proposals/{id}/do/reject": "/api/proposals/{proposal}/reject",
    "/do/apply": "/api/apply",
    "/do/limit": "/api/limits/{reach:name}",
    "/do/brake": "/api/limits/{reach:name}/brake",
    "/do/release": "/api/limits/{reach:name}/release",
    "/jobs/{job:name}/do/edit": "/api/jobs/{job:name}",
    "/jobs/{job:name}/do/remove": "/api/jobs/{job:name}",
    "/jobs/{job:name}/do/backfill": "/api/jobs/{job:name}/backfills",
    "/occurrences/{id}/do/cancel": "/api/occurrences/{occurrence}/cancel",
    "/occurrences/{id}/do/replay": "/api/occurrences/{occurrence}/replay",
}


DEEDS_OF_JOB = "trigger pause resume reschedule rewind skip move amend add undo enable disable rename rollback"


def test_pages_and_api_ask_for_the_same_role_for_the_same_deed() -> None:
    """S3: what one face refuses, another must not allow."""
    roles = {(path, role) for method, path, role in ROUTES if (method, path) in UNSAFE}
    by_path = {path: {role for at, role in roles if at == path} for path, _ in roles}
    same = {f"/jobs/{{job:name}}/do/{deed}": f"/api/jobs/{{job:name}}/{deed}" for deed in DEEDS_OF_JOB.split()}

    assert {page: by_path[page] ^ by_path[api] for page, api in {**SAME_DEED, **same}.items()} == {
        page: set() for page in {**SAME_DEED, **same}
    }


def test_no_route_deletes_or_changes_a_deed() -> None:
    """S17: the audit can be read, and nothing else."""
    assert {(method, path) for method, path, _ in ROUTES if "audit" in path or "deeds" in path} == {
        ("GET", "/api/audit"),
        ("GET", "/audit"),
    }
