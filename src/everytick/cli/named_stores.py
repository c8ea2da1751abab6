"""Several stores by name: `shop=postgresql://…`, or a name that follows from the address."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from everytick.cli.exits import Refused
from everytick.errors import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everytick.app import Everytick

_NAMED = re.compile(r"([^:/=]*)=(.*)", re.DOTALL)
"""The first `=` stands before the scheme of the address: those in its query come later."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", re.ASCII)
_TAKEN = frozenset({"livez", "readyz", "startupz", "metrics", "static"})
"""The front page has these addresses itself."""


def is_named(given: str) -> bool:
    """Whether a name stands before the address."""
    return _NAMED.fullmatch(given) is not None


def named_stores(given: Sequence[str]) -> dict[str, Everytick]:
    """Return an application without jobs for each store, by its name. Raise Refused if two have one name."""
    from everytick.cli.applications import store_application

    found: dict[str, Everytick] = {}
    for text in given:
        named = _NAMED.fullmatch(text)
        name, address = (named[1], named[2]) if named else (name_of(text), text)
        if _NAME.fullmatch(name) is None or name in _TAKEN:
            taken = ", and is none of " + ", ".join(sorted(_TAKEN))
            raise Refused(
                f"'{shown(name, 60)}' cannot name a store: a name has letters, digits, - and _, 40 at most{taken}; "
                "write --store NAME=URL"
            )
        if name in found:
            raise Refused(f"two stores are called '{name}': name them apart, --store NAME=URL")
        found[name] = store_application(address)
    return found


def name_of(address: str) -> str:
    """Return the name of a store that was given none: its schema or prefix, else the last part of its address."""
    from urllib.parse import parse_qs, unquote, urlsplit

    parts = urlsplit(address)
    query = parse_qs(parts.query)
    for key in ("schema", "prefix"):
        if query.get(key):
            return query[key][0]
    last = unquote(parts.path.rstrip("/").rpartition("/")[2])
    return last.rpartition(".")[0] or last
