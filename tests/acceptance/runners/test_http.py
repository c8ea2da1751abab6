"""Requests to a real server on this machine."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from everytick.domain.outcome import Failed, Succeeded
from everytick.domain.payload import payload
from everytick.runners import http
from everytick.runners.addresses import AddressRules
from everytick.runners.context import Halt
from everytick.runners.http import ANSWER_LIMIT, HttpBody
from everytick.runners.targets import HttpTarget, http_target, read_target
from tests.listening import listening
from tests.unit.runners.attempts import Remembering, attempt, begun, carried_out, error_of, stopped

HERE = AddressRules(["127.0.0.1"])
SLASHES = "//"
WEB = f"http:{SLASHES}"


class Request:
    """What the server was asked."""

    def __init__(self, head: bytes, body: bytes) -> None:
        first, *lines = head.decode().split("\r\n")
        self.method, self.path, _ = first.split(" ")
        self.headers = dict(line.lower().split(": ", 1) for line in lines if line)
        self.body = body


def answer(status: int = 200, body: bytes = b"", **headers: str) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {text}\r\n" for name, text in headers.items())
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode() + body


class Server:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: dict[str, Callable[[], bytes]] = {}
        self.silent = asyncio.Event()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).removesuffix(b"\r\n\r\n")
        request = Request(head, b"")
        request.body = await reader.readexactly(int(request.headers.get("content-length", "0")))
        self.requests.append(request)
        path = request.path.partition("?")[0]
        if path == "/endless":
            writer.write(b"HTTP/1.1 200 X\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                while not writer.is_closing():
                    writer.write(b"x" * 65_536)
                    await writer.drain()
        elif path == "/silent":
            self.silent.set()
            await reader.read()
        else:
            writer.write(self.answers.get(path, answer)())
            await writer.drain()
        writer.close()

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{WEB}{host}:{self.port}{path}"


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    async with listening(made.serve) as made.port:
        yield made


def body(url: str, rules: AddressRules = HERE, **parts: Any) -> HttpBody:
    target = read_target(http_target(url, **parts))
    assert isinstance(target, HttpTarget)
    return HttpBody(target, rules)


async def test_a_request_is_made_and_its_answer_is_the_result(server: Server) -> None:
    server.answers["/hook"] = lambda: answer(200, b'{"ok": true}', Content_Type="application/json")
    services = Remembering()
    made = body(server.url("/hook?key=s3cret"), method="POST", headers={"X-Own": "mine"}, json={"a": "é"})

    outcome = await carried_out(made, attempt(services=services))

    assert outcome == Succeeded(payload({"status": 200, "body": {"ok": True}}))
    [asked] = server.requests
    assert (asked.method, asked.path, asked.headers["x-own"]) == ("POST", "/hook?key=s3cret", "mine")
    assert json.loads(asked.body) == {"a": "é"}
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["host"] == f"127.0.0.1:{server.port}"
    assert services.written.decode() == f"POST {WEB}127.0.0.1:{server.port}/hook 200, 12 bytes\n"


@pytest.mark.parametrize(("status", "expect", "good"), [(204, (), True), (302, (302,), True), (404, (200, 404), True)])
@pytest.mark.parametrize("again", [1, 2])
async def test_a_status_that_is_expected_is_a_success(
    server: Server, status: int, expect: tuple[int, ...], good: bool, again: int
) -> None:
    server.answers["/"] = lambda: answer(status)
    made = body(server.url(), expect=expect)

    for _ in range(again):
        assert isinstance(await carried_out(made, attempt()), Succeeded) is good


async def test_another_status_is_a_failure_with_the_end_of_the_answer_and_without_the_query(server: Server) -> None:
    """S12"""
    server.answers["/x"] = lambda: answer(503, b"line\nsorry \x1b[2J")

    outcome = await carried_out(body(server.url("/x?token=s3cret"), headers={"Authorization": "s3cret"}))

    assert error_of(outcome) == (
        f"GET {WEB}127.0.0.1:{server.port}/x: status 503, expected 200 to 299\nline\nsorry \\x1b[2J"
    )


async def test_what_is_not_public_is_refused_without_a_connection(server: Server) -> None:
    """S9"""
    for host in ("127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "0"):
        outcome = await carried_out(body(server.url("/", host), AddressRules()))
        assert isinstance(outcome, Failed)
        assert "not on the public internet" in outcome.error
        assert outcome.give_up
    assert server.requests == []


async def test_a_redirect_is_looked_at_like_the_first_address(server: Server) -> None:
    """S9"""
    server.answers["/away"] = lambda: answer(302, Location=f"{WEB}169.254.169.254/latest/meta-data/")
    server.answers["/file"] = lambda: answer(302, Location="file:///etc/passwd")
    server.answers["/password"] = lambda: answer(302, Location=f"{WEB}a:s3cret@127.0.0.1/")

    assert "169.254.169.254, which is not on the public internet" in error_of(
        await carried_out(body(server.url("/away")))
    )
    assert "neither http: nor https:" in error_of(await carried_out(body(server.url("/file"))))
    refused = error_of(await carried_out(body(server.url("/password"))))
    assert "carries a name or password" in refused
    assert "s3cret" not in refused


async def test_a_name_is_resolved_once_and_that_address_is_used(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S9: a resolver that answers differently the second time gains nothing."""
    resolved: list[str] = []

    async def rebinding(host: str, port: int, **options: object) -> list[Any]:
        resolved.append(host)
        address = "127.0.0.1" if len(resolved) == 1 else "169.254.169.254"
        return [(2, 1, 6, "", (address, port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", rebinding)

    outcome = await carried_out(body(server.url("/", "rebinding.example")))

    assert isinstance(outcome, Succeeded)
    assert resolved[0] == "rebinding.example"
    assert "rebinding.example" not in resolved[1:]
    assert server.requests[0].headers["host"] == f"rebinding.example:{server.port}"


async def test_every_address_of_a_name_must_be_allowed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """S9"""

    async def mixed(host: str, port: int, **options: object) -> list[Any]:
        return [(2, 1, 6, "", ("127.0.0.1", port)), (2, 1, 6, "", ("10.0.0.1", port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", mixed)

    assert "10.0.0.1" in error_of(await carried_out(body(server.url("/", "mixed.example"))))
    assert server.requests == []


async def test_redirects_are_followed_within_reason(server: Server) -> None:
    server.answers["/a"] = lambda: answer(303, Location="/b")
    server.answers["/b"] = lambda: answer(307, Location=server.url("/c"))
    server.answers["/loop"] = lambda: answer(302, Location="/loop")

    assert isinstance(await carried_out(body(server.url("/a"), method="POST", json=1, headers={"A": "b"})), Succeeded)
    assert [(each.method, each.path, each.headers.get("a")) for each in server.requests] == [
        ("POST", "/a", "b"),
        ("GET", "/b", "b"),
        ("GET", "/c", "b"),
    ]
    assert server.requests[2].body == b""
    assert "more than 5 redirects" in error_of(await carried_out(body(server.url("/loop"))))


async def test_headers_stay_with_the_host_they_were_written_for(server: Server) -> None:
    """S9: secrets are never forwarded."""
    server.answers["/a"] = lambda: answer(307, Location=server.url("/b", "localhost"))
    rules = AddressRules(["127.0.0.1", "::1"])
    made = body(server.url("/a"), rules, method="POST", json=1, headers={"Authorization": "s3cret", "X-Key": "s3cret"})

    await carried_out(made)

    first, second = server.requests
    assert first.headers["authorization"] == "s3cret"
    assert "s3cret" not in second.headers.values()
    assert second.body == b"1"


async def test_a_header_may_come_from_the_environment_of_the_node(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S12: the store holds the name of the secret, not the secret."""
    monkeypatch.setenv("EVERYTICK_TEST_TOKEN", "bearer s3cret")
    text = http_target(server.url(), headers={"Authorization": {"env": "EVERYTICK_TEST_TOKEN"}})  # type: ignore[dict-item]
    target = read_target(text)
    assert isinstance(target, HttpTarget)

    await carried_out(HttpBody(target, HERE))

    assert server.requests[0].headers["authorization"] == "bearer s3cret"
    assert "s3cret" not in text


async def test_a_header_whose_variable_is_missing_is_a_failure_that_names_it(server: Server) -> None:
    text = http_target(server.url(), headers={"Authorization": {"env": "EVERYTICK_NO_SUCH"}})  # type: ignore[dict-item]
    target = read_target(text)
    assert isinstance(target, HttpTarget)

    assert "EVERYTICK_NO_SUCH is not set on this node" in error_of(await carried_out(HttpBody(target, HERE)))
    assert server.requests == []


async def test_proxies_of_the_environment_are_not_asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """S9: a proxy would resolve the name again, and anywhere."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"{WEB}127.0.0.1:1/")

    assert isinstance(await carried_out(body(server.url())), Succeeded)


@pytest.mark.parametrize("length", [ANSWER_LIMIT - 1, ANSWER_LIMIT, ANSWER_LIMIT * 50])
async def test_an_answer_is_read_up_to_a_limit(server: Server, length: int) -> None:
    server.answers["/"] = lambda: answer(200, b"x" * length)

    outcome = await carried_out(body(server.url()))

    kept = "x" * length if length < ANSWER_LIMIT else None
    assert outcome == Succeeded(payload({"status": 200, "body": kept}))


async def test_an_answer_without_end_is_left_off(server: Server) -> None:
    """F-18"""
    outcome = await carried_out(body(server.url("/endless")))

    assert outcome == Succeeded(payload({"status": 200, "body": None}))


async def test_an_answer_that_no_result_can_hold_is_left_out(server: Server) -> None:
    server.answers["/deep"] = lambda: answer(200, b"[" * 5000 + b"]" * 5000, Content_Type="application/json")
    server.answers["/wrong"] = lambda: answer(200, b"{nope", Content_Type="application/json")
    server.answers["/nan"] = lambda: answer(200, b"[NaN]", Content_Type="application/json")

    assert await carried_out(body(server.url("/deep"))) in (
        Succeeded(payload({"status": 200, "body": None})),
        Succeeded(payload({"status": 200, "body": "[" * 5000 + "]" * 5000})),
    )
    assert await carried_out(body(server.url("/wrong"))) == Succeeded(payload({"status": 200, "body": "{nope"}))
    assert await carried_out(body(server.url("/nan"))) == Succeeded(payload({"status": 200, "body": None}))


async def test_an_answer_that_does_not_come_is_a_failure(server: Server) -> None:
    made = body(server.url("/silent?s3cret"), timeout=timedelta(milliseconds=50))

    assert error_of(await carried_out(made)) == (f"GET {WEB}127.0.0.1:{server.port}/silent: no answer within 0.05s")


async def test_a_halted_request_is_given_up(server: Server) -> None:
    """S0-066"""
    context = attempt()
    running = begun(body(server.url("/silent")), context)
    await server.silent.wait()

    assert await stopped(running, context, Halt.TIMEOUT) is None


async def test_a_server_that_is_not_there_or_talks_nonsense_is_a_failure(server: Server) -> None:
    server.answers["/nonsense"] = lambda: b"220 smtp ready\r\n\r\n"

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    assert "RemoteProtocolError" in error_of(await carried_out(body(server.url("/nonsense"))))
    async with listening(hang_up) as port:
        assert "RemoteProtocolError" in error_of(await carried_out(body(f"{WEB}127.0.0.1:{port}/?s3cret")))
    refused = error_of(await carried_out(body(f"{WEB}127.0.0.1:{port}/?s3cret")))
    assert "ConnectError" in refused
    assert "s3cret" not in refused
    assert "was not found" in error_of(await carried_out(body(f"{WEB}no-such-host.invalid/")))


def test_an_error_that_repeats_the_address_is_not_repeated() -> None:
    """S12"""
    assert http._without_address(ValueError("no route to /x?key=s3cret")) == "the request failed"
    assert http._without_address(ValueError("no route")) == "no route"


async def test_a_certificate_is_asked_for_by_the_name_and_not_by_the_number() -> None:
    """S9: the address is pinned, and yet the certificate must be that of the host."""
    greeting = asyncio.get_running_loop().create_future()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeting.set_result(await reader.read(4096))
        writer.close()

    async with listening(listen) as port:
        outcome = await carried_out(body(f"https:{SLASHES}localhost:{port}/", AddressRules(["127.0.0.1", "::1"])))

    assert isinstance(outcome, Failed)
    assert b"\x00\x09localhost" in await greeting


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from everytick.errors import MissingExtra

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(http, "import_module", missing)

    with pytest.raises(MissingExtra, match=r"pip install 'everytick\[http\]'"):
        body(f"{WEB}127.0.0.1/")
