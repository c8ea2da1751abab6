"""Paths: names with a slash in one part of a path, and the part of a path that is ours under any prefix.

A name is written as one part of the path: `/api/jobs/reports%2Fdaily`. Servers decode the path before a
router sees it, so a slash within a part is kept as a control character, which no name has, and becomes a slash
again when the router reads the parameter.
"""

from typing import Any
from urllib.parse import quote, unquote, urlencode

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

_SLASH = "\x1f"


class NameConvertor(Convertor[str]):
    """The parameter `{job:name}`: one part of a path, any name."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """Return the name."""
        return value.replace(_SLASH, "/")

    def to_string(self, value: str) -> str:
        """Return the name as one part of a path."""
        return quote(value, safe="")


register_url_convertor("name", NameConvertor())


class NamesWithSlashes:
    """Keeps an encoded slash within its part of the path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        raw = scope.get("raw_path") or b""
        if scope["type"] == "http" and b"%2f" in raw.lower():
            parts = raw.partition(b"?")[0].decode("ascii", "replace").split("/")
            scope = {**scope, "path": "/".join(unquote(part).replace("/", _SLASH) for part in parts)}
        await self._app(scope, receive, send)


def path_of(scope: Any) -> str:
    """Return the path below the prefix under which the service is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(root) if root and path.startswith(root) else path


def below_prefix(scope: Any) -> str:
    """Return the path and query of a request as an address below the prefix."""
    path = "/".join(quote(part.replace(_SLASH, "/"), safe="") for part in path_of(scope).split("/"))
    query = bytes(scope.get("query_string", b"")).decode("ascii", "replace")
    return f"{path}?{query}" if query else path


def link(root_path: str, path: str, *parts: str, **query: object) -> str:
    """Return the address of a path of ours: `link(root, "/jobs/{}", name, tab="runs")`.

    Each `{}` is filled with a name, as one part of the path. A query value that is None is left out.
    """
    filled = path.format(*(quote(part, safe="") for part in parts)) if parts else path
    if not query:
        return f"{root_path.rstrip('/')}{filled}"
    asked = urlencode({key: value for key, value in query.items() if value is not None}, doseq=True)
    return f"{root_path.rstrip('/')}{filled}{'?' + asked if asked else ''}"
