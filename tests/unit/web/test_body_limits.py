"""Bodies: bounded in size and depth, JSON alone, each key once. (S8, S11)."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from everytick.answers.wire import LARGEST_BODY
from everytick.web.request_limits import DEEPEST, depth

PATH = "/api/jobs/nightly/trigger"
JSON = {"content-type": "application/json"}


async def test_a_body_that_says_it_is_too_large_is_not_read(client: httpx2.AsyncClient) -> None:
    answer = await client.post(PATH, content=b"x" * (LARGEST_BODY + 1), headers=JSON)

    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_a_body_that_never_ends_is_cut(client: httpx2.AsyncClient) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 65536
            yield b" " * 65536

    answer = await client.post(PATH, content=endless(), headers=JSON)

    assert answer.status_code == 413
    assert read < 4 * LARGEST_BODY


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"payload": ' + b"[" * 30 + b"]" * 30 + b"}", "too_deep"),
        (b'{"reason": "a", "reason": "b"}', "invalid_json"),
        (b'{"payload": {"a": 1, "a": 2}}', "invalid_json"),
        (b'{"payload": NaN}', "invalid_json"),
        (b"{", "invalid_json"),
        (b"", "invalid_json"),
        (b"\xff\xfe", "invalid_json"),
        (b'{"unknown": 1}', "invalid_request"),
        (b"[]", "invalid_request"),
    ],
)
async def test_what_is_not_plain_json_of_this_shape_is_refused(
    client: httpx2.AsyncClient, body: bytes, code: str
) -> None:
    answer = await client.post(PATH, content=body, headers=JSON)

    assert (answer.status_code, answer.json()["code"]) == (422, code)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_only_json_is_read(client: httpx2.AsyncClient, kind: str) -> None:
    """S4: a form of another site cannot send JSON."""
    answer = await client.post(PATH, content=b"{}", headers={"content-type": kind})

    assert (answer.status_code, answer.json()["code"]) == (415, "wrong_media_type")


async def test_a_body_of_the_largest_depth_is_read(client: httpx2.AsyncClient) -> None:
    nested = b"[" * (DEEPEST - 1) + b'"]]["' + b"]" * (DEEPEST - 1)
    answer = await client.post(PATH, content=b'{"payload": ' + nested + b"}", headers=JSON)

    assert answer.status_code == 201, answer.text


async def test_a_long_address_is_refused(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/api/jobs", params={"contains": "x" * 20_000})).status_code == 414


@pytest.mark.parametrize(
    ("body", "expected"), [(b'"[[["', 0), (b'["\\"[", {}]', 2), (b"[[],[[]]]", 3), (b'"\\\\" [', 1)]
)
def test_depth_counts_what_stands_outside_of_texts(body: bytes, expected: int) -> None:
    assert depth(body) == expected
