"""Texts that people and jobs bring: none becomes markup, a header or a path, and payloads stay with operators."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from fastapi import Request

from everytick import Everytick, every
from everytick.access.people import Person
from everytick.access.settings import access_settings
from everytick.access.throttle import Throttle
from everytick.client import Client
from everytick.domain.headlines import fingerprint
from everytick.domain.people import CameBy, Doer, Grant, Role, SetPassword, User
from everytick.errors import InvalidName
from everytick.stores.memory import MemoryStore
from everytick.stores.postgres.store import PostgresStore
from everytick.testing import drain
from everytick.web.asgi import asgi
from everytick.web.parked_reasons import WHY_PARKED_HIDDEN
from tests.stores.clock import START, ManualClock
from tests.unit.web.asking_raw import ROUTES, UNSAFE, filled
from tests.unit.web.forms_of_pages import FormOnPage

SETUP = Doer("setup", CameBy.COMMAND)
SCRIPT = "alert(document.domain)"

XSS = [
    f"<script>{SCRIPT}</script>",
    f"<ScRiPt>{SCRIPT}</sCrIpT>",
    f"</script><script>{SCRIPT}</script>",
    f'"><script>{SCRIPT}</script>',
    f"'><script>{SCRIPT}</script>",
    "<script src=//example.net/x.js></script>",
    f"<img src=x onerror={SCRIPT}>",
    f'<img src="x" onerror="{SCRIPT}">',
    f"<img src=x onerror={SCRIPT}//",
    f'" onmouseover="{SCRIPT}',
    f"' onfocus='{SCRIPT}' autofocus='",
    f"x onclick={SCRIPT}",
    f"<svg onload={SCRIPT}>",
    f"<svg/onload={SCRIPT}>",
    f"<svg><script>{SCRIPT}</script></svg>",
    f"<svg><animate onbegin={SCRIPT} attributeName=x></svg>",
    f"</svg><img src=x onerror={SCRIPT}>",
    f"</title><script>{SCRIPT}</script>",
    f"</textarea><script>{SCRIPT}</script>",
    f"</style><script>{SCRIPT}</script>",
    f"<body onload={SCRIPT}>",
    f"<iframe src=javascript:{SCRIPT}></iframe>",
    f'<iframe srcdoc="<script>{SCRIPT}</script>">',
    f"<a href=javascript:{SCRIPT}>x</a>",
    f"javascript:{SCRIPT}",
    f"data:text/html,<script>{SCRIPT}</script>",
    f"<object data=javascript:{SCRIPT}>",
    f"<embed src=javascript:{SCRIPT}>",
    f"<form action=javascript:{SCRIPT}><button>x</button></form>",
    f"<details open ontoggle={SCRIPT}>",
    f"<input autofocus onfocus={SCRIPT}>",
    f"<math><mtext></p><img src=x onerror={SCRIPT}></mtext></math>",
    "<base href=//example.net/>",
    f'<meta http-equiv="refresh" content="0;url=javascript:{SCRIPT}">',
    "<link rel=stylesheet href=//example.net/x.css>",
    "<style>@import '//example.net/x.css';</style>",
    f"<div style=background:url(javascript:{SCRIPT})>",
    f"<!----><script>{SCRIPT}</script>",
    "{{ 7 * 7 }}{% import 'os' %}",
    f"&lt;script&gt;{SCRIPT}&lt;/script&gt;<script>{SCRIPT}</script>",
]


class Judge(HTMLParser):
    """Reads a page as a browser does, and notes what no page of ours has."""

    _BAD = frozenset({"iframe", "object", "embed", "base", "img", "animate", "math", "style", "mtext"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element or attribute that is not ours."""
        given = {name: said or "" for name, said in attrs}
        self._in_script = tag == "script"
        if tag in self._BAD or (tag == "script" and not given.get("src", "").startswith("/static/")):
            self.found.append(f"<{tag}>")
        if tag == "link" and not given.get("href", "").startswith("/static/"):
            self.found.append(f"<link {given}>")
        if tag == "meta" and given.get("http-equiv") == "refresh" and not re.match(r"\d+(; url=/|$)", given["content"]):
            self.found.append(f"<meta {given}>")
        for name, said in given.items():
            if name.startswith("on") or name in ("style", "srcdoc"):
                self.found.append(f"{tag} {name}={said}")
            if name in ("href", "src", "action", "formaction", "data", "xlink:href") and not _is_ours(said):
                self.found.append(f"{tag} {name}={said}")

    def handle_data(self, data: str) -> None:
        """Note script that stands in the page itself."""
        if self._in_script and data.strip():
            self.found.append(f"inline script {data[:80]}")

    def handle_endtag(self, tag: str) -> None:
        """Leave a script."""
        self._in_script = False


def _is_ours(address: str) -> bool:
    return address.startswith(("/", "#", "?")) and not address.startswith("//")


def judged(page: str) -> list[str]:
    """Return what a page has that it must not have."""
    judge = Judge()
    judge.feed(page)
    judge.close()
    return judge.found


def test_the_judge_finds_what_is_not_escaped() -> None:
    """Else the tests below could not fail."""
    harmless = ("javascript:", "data:", "x onclick", "{{")
    places = ("<p>{}</p>", '<p title="{}">x</p>', "<p title='{}'>x</p>")
    missed = [text for text in XSS if not any(judged(place.replace("{}", text)) for place in places)]

    assert [text for text in missed if not text.startswith(harmless)] == []
    assert judged(f"<a href='javascript:{SCRIPT}'>x</a>")
    assert len(XSS) == 40


@pytest.fixture
async def hostile() -> AsyncIterator[httpx2.AsyncClient]:
    """An admin at a service in which every text is an attack: names, tags, descriptions, reasons, errors, people."""
    clock = ManualClock()
    store = MemoryStore(clock)
    await store.open()
    tick = Everytick(store, name="shop")
    for text in XSS:

        async def task(said: str = text) -> None:
            raise ValueError(said)

        hourly, name = every("1h", start=START.isoformat()), text[:190]
        tick.job(hourly, name=name, description=text, tags=[name], payload={"said": text})(task)
    await tick.sync()
    await drain(tick, store)
    clock.move(minutes=61)
    await drain(tick, store)
    with tick.acting_as(SETUP):
        await tick.people.add_user("root", Role.ADMIN)
        made = await tick.people.add_token("admin", Role.ADMIN)
    for text in XSS:
        with tick.acting_as(Doer(text[:100], CameBy.SESSION, text[:100])):
            await tick.pause(text[:190], reason=text)
            await tick.people.add_token(text[:190], Role.VIEWER)
            if ":" not in text and "/" not in text:
                await tick.people.add_user(text[:190], Role.VIEWER)
    await tick.set_limit("all", most=3, reason=XSS[0], by=XSS[0])
    await tick.brake(reason=XSS[6], by=XSS[6])
    service = asgi(tick)
    service.app.state.rates._reads = service.app.state.rates._changes = Throttle(1_000_000, 1)
    headers = {"accept": "text/html", "authorization": f"Bearer {made.text}"}
    transport = httpx2.ASGITransport(service)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as asking:
        yield asking
    await store.close()


STREAMS = ("/live", "/api/events")
PLAIN = [path for method, path, _ in ROUTES if method == "GET" and "{" not in path and path not in STREAMS]
PLAIN.remove("/readyz")  # the clock of these tests is not that of the host
OF_JOBS = [path for method, path, _ in ROUTES if method == "GET" and "{job:name}" in path]


async def test_no_text_becomes_markup_on_any_page(hostile: httpx2.AsyncClient) -> None:
    """S5: every page × 40 payloads in names, tags, descriptions, reasons, errors, payloads and people."""
    found: dict[str, list[str]] = {}
    for path in PLAIN:
        found[path] = await _judged(hostile, path)
    for path in OF_JOBS:
        for name in XSS[:: 1 if path == "/jobs/{job:name}" else 13]:
            at = filled(path, {"job": quote(name[:190], safe="")})
            found[at] = await _judged(hostile, at)

    assert {path: bad for path, bad in found.items() if bad} == {}


async def test_no_text_of_an_occurrence_becomes_markup(hostile: httpx2.AsyncClient) -> None:
    """S5: the error, the payload and the trail of failed runs."""
    ids = re.findall(r"/occurrences/(occ_[\w-]+|[0-9a-f-]{36})", (await hostile.get("/history")).text)
    found = {id_: await _judged(hostile, f"/occurrences/{id_}") for id_ in sorted(set(ids))[:40]}

    assert ids
    assert {id_: bad for id_, bad in found.items() if bad} == {}


QUERIES = ["/lab?schedule={}", "/lab?tz={}", "/find?q={}", "/settings?zone={}&keep=1", "/signin?next={}"]
QUERIES += ["/audit?by={}", "/audit?job={}", "/jobs?q={}", "/history?job={}", "/history?q={}", "/?open={}", "/{}"]
QUERIES += ["/jobs/{}", "/occurrences/{}", "/agenda?{}={}", "/year?job={}", "/oidc?next={}", "/welcome?link={}"]


async def test_no_text_of_an_address_becomes_markup(hostile: httpx2.AsyncClient) -> None:
    """S5: reflected texts, on pages and on those that tell an error."""
    found = {}
    for number, path in enumerate(QUERIES):
        for text in XSS[number % 3 :: 3]:
            at = path.replace("{}", quote(text, safe=""))
            found[at] = await _judged(hostile, at)

    assert {at: bad for at, bad in found.items() if bad} == {}


FORMS = [path for method, path in UNSAFE if not path.startswith("/api/") and path not in ("/signin", "/signout")]
BROKEN_OUT = (XSS[3], XSS[10], XSS[18])
"""Texts that leave an attribute in either quotes, and a textarea."""


async def test_no_text_that_is_typed_into_a_form_becomes_markup(hostile: httpx2.AsyncClient) -> None:
    """S5: every field of every form, also the hidden ones, on the page that comes back and on the one behind it."""
    job, *_ = [quote(text[:190], safe="") for text in XSS if "/" not in text]
    run = re.findall(r"/occurrences/(occ_[\w-]+|[0-9a-f-]{36})", (await hostile.get("/history")).text)[0]
    names = {"job": job, "id": run, "user": "root"}
    found, typed = {}, set()
    for path in FORMS:
        at = filled(path, names)
        page = await hostile.get(at)
        fields = FormOnPage(f'<div id="deed">{page.text}').typed.keys() - {"csrf", "key", "q"}
        typed |= {f"{path} {name}" for name in fields}
        for text in BROKEN_OUT:
            for more in ({}, {"look": "1"}):
                answer = await hostile.post(at, data={**dict.fromkeys(fields, text), **more}, follow_redirects=False)
                behind = await _judged(hostile, "/more") if answer.status_code == 303 else []
                found[f"{at} {text} {more}"] = [*_found(answer), *behind]

    assert {path: bad for path, bad in found.items() if bad} == {}
    assert len(typed) > 60, typed


async def _judged(asking: httpx2.AsyncClient, path: str) -> list[str]:
    return _found(await asking.get(path))


def _found(answer: httpx2.Response) -> list[str]:
    if answer.status_code >= 500:
        return [f"status {answer.status_code}"]
    if "text/html" in answer.headers.get("content-type", ""):
        return judged(answer.text)
    # What is no page is not read as one either.
    return [] if answer.headers["x-content-type-options"] == "nosniff" else ["sniffed"]


# ------------------------------------------------------------------------------------------- header and path injection


@pytest.mark.parametrize("text", ["a\r\nset-cookie: x=y", "a\nx: y", "a\r\n\r\n<script>", "\u2028x", "a\x00b"])
async def test_no_text_becomes_a_header(hostile: httpx2.AsyncClient, text: str) -> None:
    """Response splitting, by each address that answers with a header of the request's making."""
    for path in ("/find?q={}", "/signin?next={}", "/settings?zone={}&keep=1", "/oidc?next={}", "/jobs/{}"):
        answer = await hostile.get(path.format(quote(text)))

        assert answer.status_code < 500
        assert "x" not in answer.headers
        assert "x=y" not in answer.headers.get("set-cookie", "")
        assert not any(sign in said for said in answer.headers.values() for sign in "\r\n\0")


def test_no_name_has_a_control_character() -> None:
    """S15: what reaches terminals, logs and headers is checked where it enters."""
    for text in ("a\r\nb", "a\x1b[31m", "a\x00", "a\u202eb", "\u2028"):
        with pytest.raises(InvalidName):
            Everytick("memory://", name="shop").job(every("1h"), name=f"x{text}x")(lambda: None)


TRAVERSALS = [
    "../asgi.py",
    "..%2fasgi.py",
    "%2e%2e/asgi.py",
    "%2e%2e%2fasgi.py",
    "..%5casgi.py",
    "..%255casgi.py",
    "..%252fasgi.py",
    "....//asgi.py",
    "..;/asgi.py",
    "..%c0%afasgi.py",
    "..%ef%bc%8fasgi.py",
    "%c0%ae%c0%ae/asgi.py",
    "..%00/asgi.py",
    "..%0d/asgi.py",
    "app.css%00.js",
    "app.css/../../asgi.py",
    "app.css/..%2f..%2fasgi.py",
    "./../asgi.py",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "//etc/passwd",
    "file:///etc/passwd",
    "..\\asgi.py",
    "..\\..\\asgi.py",
    "%5c%5c127.0.0.1%5cx",
    "C:\\windows\\win.ini",
    "~root/.ssh/id_rsa",
    "proc/self/environ",
    "..%u2215asgi.py",
    "%252e%252e%252fasgi.py",
]


async def test_no_path_leads_to_a_file_that_is_not_ours(hostile: httpx2.AsyncClient) -> None:
    """S14: thirty encodings, for files of pages, pages of jobs and the output of runs."""
    assert len(TRAVERSALS) == 30
    for text in TRAVERSALS:
        for path in (f"/static/{text}", f"/occurrences/{text}", f"/api/occurrences/{text}/output", f"/files?at={text}"):
            answer = await hostile.get(path)

            assert answer.status_code < 500, path
            assert "root:" not in answer.text, path
            assert "everytick.web" not in answer.text, path


# ----------------------------------------------------------------------------------------------- what viewers see

CANARY = "canary-7f3a91"


@pytest.fixture
async def secretive() -> AsyncIterator[tuple[Everytick, dict[str, httpx2.AsyncClient]]]:
    """A job whose payload, result, error and output hold a canary; a viewer and an operator."""
    clock = ManualClock()
    store = MemoryStore(clock)
    await store.open()
    tick = Everytick(store, name="shop")

    @tick.job(every("1h", start=START.isoformat()), name="good", payload={"said": f"{CANARY}-payload"})
    def good(said: str) -> str:
        return f"{CANARY}-result"

    @tick.job(every("1h", start=START.isoformat()), name="bad")
    def bad() -> None:
        raise ValueError(f"{CANARY}-error")

    await tick.sync()
    await drain(tick, store)
    clock.move(minutes=61)
    await drain(tick, store)
    with tick.acting_as(SETUP):
        await tick.people.add_user("root", Role.ADMIN)
        texts = {str(role): (await tick.people.add_token(str(role), role)).text for role in Role}
        await tick.trigger("good", {"said": f"{CANARY}-triggered"}, at=clock.time + timedelta(hours=2))
    service = asgi(tick)
    service.app.state.rates._reads = Throttle(1_000_000, 1)
    transport = httpx2.ASGITransport(service)
    yield (
        tick,
        {
            role: httpx2.AsyncClient(
                transport=transport, base_url="http://127.0.0.1", headers={"authorization": f"Bearer {text}"}
            )
            for role, text in texts.items()
        },
    )
    await store.close()


async def test_a_viewer_sees_no_payload_result_or_error(secretive: Any) -> None:
    """S3, S12: on no page and in no answer of the API; an operator sees them."""
    tick, asking = secretive
    ids = {job: next(each.id for each in await tick.history(job)) for job in ("good", "bad")}
    paths = {path for method, path, _ in ROUTES if method == "GET" and not path.startswith(("/live", "/api/events"))}
    seen: dict[str, set[str]] = {"viewer": set(), "operator": set()}
    for role in seen:
        for path in paths:
            for job, id_ in list(ids.items())[: 2 if "{" in path else 1]:
                at = filled(path, {"job": job, "occurrence": id_, "id": id_})
                for accept in ("text/html", "application/json"):
                    if CANARY in (await asking[role].get(at, headers={"accept": accept})).text:
                        seen[role].add(path)

    assert seen["viewer"] == set()
    assert seen["operator"], "else there would be nothing to hide"


async def test_a_grant_on_one_job_shows_what_an_operator_sees_of_it(secretive: Any) -> None:
    """S3: in every answer that hides something; a grant on another job shows nothing."""
    tick, asking = secretive
    id_ = next(each.id for each in await tick.history("bad"))
    with tick.acting_as(SETUP):
        for job in ("bad", "good"):
            made = await tick.people.add_token(f"of {job}", Role.VIEWER, grants=[Grant(f"job:{job}", Role.OPERATOR)])
            asking[job] = httpx2.AsyncClient(
                transport=asking["operator"]._transport,
                base_url="http://127.0.0.1",
                headers={"authorization": f"Bearer {made.text}"},
            )
    asked = {
        filled(path, {"job": "bad", "occurrence": id_, "id": id_}) for method, path, _ in ROUTES if method == "GET"
    }
    since, last = START.isoformat().replace("+", "%2B"), (START + timedelta(hours=1)).isoformat().replace("+", "%2B")
    asked |= {f"/api/overviews/failures?since={since}", f"/api/jobs/bad/explanation?at={last}"}
    asked |= {f"/api/overviews/window?after={since}&through={last}", "/api/overviews/last-runs?jobs=bad"}
    streams, seen = ("/live", "/api/events"), dict[str, set[str]]()
    for name in ("operator", "bad", "good"):
        answers = {path: (await asking[name].get(path)).text for path in asked if not path.startswith(streams)}
        seen[name] = {path for path, text in answers.items() if f"{CANARY}-error" in text}

    assert len(seen["operator"]) > 10
    assert seen["bad"] == seen["operator"]
    assert seen["good"] == set()


async def test_why_a_job_is_parked_is_for_those_who_see_errors(secretive: Any) -> None:
    """S3: a driver or a schedule of a user's own may have quoted anything. On every page and in the whole API."""
    tick, asking = secretive
    id_ = next(each.id for each in await tick.history("good"))
    [job_id] = [record.job.id for record in await tick.jobs() if record.job.name == "good"]
    store = await tick._opened()
    store._shared.tables.jobs[job_id].parked_reason = f"{CANARY}-parked"
    at = (store._shared.now() + timedelta(hours=1)).isoformat().replace("+", "%2B")
    paths = {path for method, path, _ in ROUTES if method == "GET" and not path.startswith(("/live", "/api/events"))}
    asked = {filled(path, {"job": "good", "occurrence": id_, "id": id_}) for path in paths}
    asked |= {f"/jobs/good/at?at={at}", f"/api/jobs/good/explanation?at={at}"}
    seen: dict[str, set[str]] = {"viewer": set(), "operator": set()}
    for role, told in seen.items():
        for path in asked:
            for accept in ("text/html", "application/json"):
                if f"{CANARY}-parked" in (await asking[role].get(path, headers={"accept": accept})).text:
                    told.add(path)

    assert seen["viewer"] == set()
    assert seen["operator"] >= {"/", "/jobs", "/jobs/good", "/api/jobs", "/api/jobs/good", "/api/reports"}
    assert seen["operator"] >= {f"/jobs/good/at?at={at}", f"/api/jobs/good/explanation?at={at}"}
    said = [(await asking["viewer"].get(path)).json() for path in ("/api/jobs/good", "/api/reports")]
    assert said[0]["status"] == "parked"
    assert (said[0]["parked_reason"], said[1]["parked"]) == (WHY_PARKED_HIDDEN, {"good": WHY_PARKED_HIDDEN})


async def test_a_fingerprint_does_not_tell_a_viewer_whether_a_guess_is_right(secretive: Any) -> None:
    """S3: it is a hash of the error's words, and not all of them are hard to guess."""
    tick, asking = secretive
    error = next(each.error for each in await tick.history("bad"))
    since, print_ = START.isoformat().replace("+", "%2B"), fingerprint(error)
    paths = f"/api/overviews/failures?since={since}", f"/api/overviews/failures/{print_}?since={since}"
    seen = {role: [(await asking[role].get(path)) for path in paths] for role in ("viewer", "operator")}

    assert [print_ in answer.text for answer in seen["operator"]] == [True, True]
    assert [print_ in answer.text for answer in seen["viewer"]] == [False, False]
    assert seen["viewer"][1].status_code == 404


# ----------------------------------------------------------------------------------------------- secrets of the service

ADDRESS = f"postgresql://app:{CANARY}@127.0.0.1:1/app"
SECRETS: dict[str, Any] = {"dead_man_url": f"http://127.0.0.1:1/{CANARY}-long-enough", "smtp": f"smtp://a:{CANARY}@h"}


async def test_the_password_of_the_store_is_in_no_answer() -> None:
    """S12: what an admin is told of a store that cannot be reached names its host and its database."""
    tick = Everytick(ADDRESS, name="shop", **SECRETS)

    async def known(_: Request) -> Person:
        return Person("ann", Role.ADMIN)

    transport = httpx2.ASGITransport(asgi(tick, identify=known))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asking:
        told = {
            (path, accept): (await asking.get(path, headers={"accept": accept})).text
            for path in (*PLAIN, "/readyz?verbose")
            for accept in ("text/html", "application/json")
        }
    await tick.close()

    assert {at for at, text in told.items() if CANARY in text} == set()
    assert any("127.0.0.1:1" in text for text in told.values()), "else nothing was told of the store"


def test_no_secret_is_in_what_a_debugger_or_a_crash_shows() -> None:
    """S12: `repr` of what holds one: the application, its settings, its store, the ways to come in, the client."""
    tick = Everytick(ADDRESS, name="shop", **SECRETS)
    access = access_settings(oidc_issuer="https://example.org", oidc_client_id="a", oidc_client_secret=CANARY)
    store = PostgresStore(ADDRESS)
    people = User("ann", Role.ADMIN, password_hash=CANARY), SetPassword("ann", CANARY)
    client = Client("http://127.0.0.1", token=CANARY)
    shown = [repr(each) for each in (tick, tick.settings, access, store, store.address, *people, client)]

    assert [text for text in shown if CANARY in text] == []
