"""A request as a server hands it to the service: only the head of the answer is waited for, since streams never end."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.types import Message, Scope

from everytick.web.asgi import Service, routers
from everytick.web.asking import role_needed
from everytick.web.csrf import SAFE

ROUTES: list[tuple[str, str, Any]] = [
    (method, route.path, role_needed(route))  # type: ignore[attr-defined]
    for router in routers()
    for route in router.routes
    for method in sorted(route.methods - {"HEAD", "OPTIONS"})  # type: ignore[attr-defined]
]
"""Every route of the service: method, path, and the role that it needs."""

UNSAFE = [(method, path) for method, path, _ in ROUTES if method not in SAFE]


def filled(path: str, names: Mapping[str, str] | None = None) -> str:
    """Return a path with its parameters filled in: by these names, else by something that is not there."""
    return re.sub(r"\{(\w+)(:\w+)?\}", lambda found: (names or {}).get(found[1], "nothing-here"), path)


async def asked(
    service: Service,
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    *,
    body: bytes = b"",
    address: str = "192.0.2.7",
) -> tuple[int, dict[str, str]]:
    """Return the status and the headers of the answer."""
    begun: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    never = asyncio.Event()

    async def receive() -> Message:
        if not left:
            await never.wait()
        return left.pop()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start" and not begun.done():
            begun.set_result(message)

    running = asyncio.create_task(service(_scope(method, path, headers or {}, address), receive, send))
    running.add_done_callback(lambda task: None if begun.done() else begun.set_result({"status": 500, "headers": []}))
    start = await begun
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return start["status"], {name.decode(): said.decode("latin-1") for name, said in start["headers"]}


def _scope(method: str, path: str, headers: Mapping[str, str], address: str) -> Scope:
    plain, _, query = path.partition("?")
    given: Iterable[tuple[str, str]] = {"host": "127.0.0.1", "accept": "application/json", **headers}.items()
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": plain,
        "raw_path": plain.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), said.encode("latin-1")) for name, said in given],
        "client": (address, 5000),
        "server": ("127.0.0.1", 80),
    }
