"""How often an address and a person may ask; and how long a body may take."""

import asyncio
import json
import time
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send

from everytick import Everytick
from everytick.access.throttle import Throttle
from everytick.web import request_limits
from everytick.web.asgi import asgi
from everytick.web.rates import RateLimits, Rates, network_of
from everytick.web.request_limits import DEEPEST, BodyLimits, depth


async def _yes(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"yes"})


def asking(reads: tuple[int, float], changes: tuple[int, float]) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(RateLimits(_yes, Rates(reads, changes)), client=("192.0.2.1", 1))
    return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1")


async def test_one_request_too_many_is_refused_with_the_time_to_wait() -> None:
    """Reads and changes are counted apart, each address by itself."""
    client = asking((3, 30), (1, 30))
    codes = [(await client.get("/")).status_code for _ in range(4)]
    changes = [await client.post("/") for _ in range(2)]

    assert codes == [200, 200, 200, 429]
    assert [answer.status_code for answer in changes] == [200, 429]
    assert 1 <= int(changes[1].headers["retry-after"]) <= 30
    assert changes[1].json()["code"] == "too_many_requests"


async def test_a_person_is_counted_at_all_addresses_together(tick: Everytick) -> None:
    service = asgi(tick)
    service.app.state.rates._reads = Throttle(5, 60)
    codes = []
    for number in range(6):
        transport = httpx2.ASGITransport(service, client=(f"127.0.0.{number + 1}", 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            codes.append((await client.get("/more")).status_code)

    assert codes == [200] * 5 + [429]


def test_a_bucket_fills_up_again_and_old_ones_are_forgotten() -> None:
    now = 0.0
    bucket = Throttle(2, 10, lambda: now)
    taken = [bucket.take("a"), bucket.take("a"), bucket.take("a")]
    now = 5.0
    later = [bucket.take("a"), bucket.take("a"), bucket.take("b")]
    for number in range(20_000):
        bucket.take(str(number))

    assert (taken, later) == ([0, 0, 5], [0, 5, 0])
    assert len(bucket._buckets) == 10_000


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8::1:2:3", "2001:db8::"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("x", "x"),
    ],
)
def test_an_ipv6_customer_is_one(address: str, network: str) -> None:
    assert network_of(address) == network


async def test_a_body_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """S8: slow-loris."""
    monkeypatch.setattr(request_limits, "BODY_SECONDS", 0.05)
    parts = iter([{"type": "http.request", "body": b"x", "more_body": True}])
    never, sent = asyncio.Event(), list[Message]()

    async def receive() -> Message:
        for part in parts:
            return part
        await never.wait()
        raise AssertionError("it never comes")

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "client": ("192.0.2.1", 1)}
    await BodyLimits(_yes)(scope, receive, send)

    assert sent[0]["status"] == 408


async def test_a_client_that_leaves_in_the_middle_of_its_body_is_no_error() -> None:
    """S8: whatever is raised here is a traceback in the log, which any client could fill with them."""
    begun: Message = {"type": "http.request", "body": b"{", "more_body": True}
    parts, sent = iter([begun, {"type": "http.disconnect"}]), list[Message]()

    async def receive() -> Message:
        return next(parts)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "client": ("192.0.2.1", 1)}
    await BodyLimits(_yes)(scope, receive, send)

    assert sent == []


async def test_a_large_form_of_a_browser_is_refused_too(tick: Everytick) -> None:
    """S8: without a page, which only the application can make."""
    transport = httpx2.ASGITransport(asgi(tick))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.post("/signin", content=b"x" * 2_000_000, headers={"accept": "text/html"})

    assert answer.status_code == 413


@settings(max_examples=30)
@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_the_depth_is_that_of_the_parsed_value(value: Any) -> None:
    """Brackets and quotes within texts count for nothing."""

    def parsed(of: Any) -> int:
        parts = of.values() if isinstance(of, dict) else of if isinstance(of, list) else None
        return 0 if parts is None else 1 + max(map(parsed, parts), default=0)

    assert depth(json.dumps(value, ensure_ascii=False).encode()) == min(parsed(value), DEEPEST + 1)


def test_a_body_of_brackets_is_judged_in_a_moment() -> None:
    """A loop over its bytes would hold up the ticks of this process. Counted is what the thread itself takes."""
    for body in (
        b"[]" * 500_000,
        b'"' * 1_000_000,
        b'"\\' * 500_000,
        b"[" * 1_000_000,
        b"[" * 500_000 + b"]" * 500_000,
    ):
        began = time.thread_time()
        depth(body)
        assert time.thread_time() - began < 1
