"""Secrets of programs and browsers: made here, shown once, and stored as hashes only.

They are random and 256 bits long, so one SHA-256 is enough: they cannot be guessed, however cheap a guess is.
"""

import re
import secrets
from hashlib import sha256
from hmac import compare_digest

from everytick.domain.values import value

PREFIX = "etk"
"""What every token begins with, so that scanners of repositories can find one."""

_TOKEN = re.compile(rf"{PREFIX}_([0-9a-f]{{12}})_([A-Za-z0-9_-]{{43}})", re.ASCII)


@value(frozen=True)
class Secret:
    """A secret as its holder has it, and what is stored of it. `id` is the part that is none."""

    id: str
    text: str
    hash: str

    def __repr__(self) -> str:
        return f"Secret({self.id!r})"


def new_token() -> Secret:
    """Return a new token: `etk_ID_SECRET`."""
    id_, text = secrets.token_hex(6), secrets.token_urlsafe(32)
    return Secret(id_, f"{PREFIX}_{id_}_{text}", hash_of(text))


def new_secret() -> Secret:
    """Return the new secret of a session or a link."""
    text = secrets.token_urlsafe(32)
    return Secret("", text, hash_of(text))


def read_token(text: str) -> tuple[str, str] | None:
    """Return the id and the hash of a token, None if the text is none."""
    match = _TOKEN.fullmatch(text)
    return None if match is None else (match[1], hash_of(match[2]))


def hash_of(text: str) -> str:
    """Return what is stored of a secret."""
    return sha256(text.encode(errors="replace")).hexdigest()


def same(one: str, other: str) -> bool:
    """Tell whether two hashes are equal, in a time that does not depend on where they differ."""
    return compare_digest(one.encode(), other.encode())
