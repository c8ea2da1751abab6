"""Passwords: hashed with argon2id, in threads of their own, few at a time.

A hash takes about 40 ms and 19 MiB on purpose. Two threads bound what strangers can make a node spend on it.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from everytick.errors import EverytickError, InvalidSetting, MissingExtra

if TYPE_CHECKING:
    from argon2 import PasswordHasher

T = TypeVar("T")

SHORTEST_PASSWORD, LONGEST_PASSWORD = 10, 1000
_AT_ONCE, _WAITING_MOST = 2, 20
"""How many passwords are hashed at once, and how many more may wait: about a second of work."""


class TooBusy(EverytickError):
    """Too many passwords wait to be checked."""

    code = "too_busy"


def checked_password(password: str) -> str:
    """Return the password if it is long enough. The error does not repeat it."""
    if len(password) < SHORTEST_PASSWORD:
        raise InvalidSetting("password", "…", f"is too short: at least {SHORTEST_PASSWORD} characters")
    if len(password) > LONGEST_PASSWORD:
        raise InvalidSetting("password", "…", f"is too long: at most {LONGEST_PASSWORD} characters")
    try:
        password.encode()
    except UnicodeEncodeError:
        raise InvalidSetting("password", "…", "has half of a character in it, which UTF-8 does not have") from None
    return password


class Passwords:
    """Hashes and checks passwords without stopping the event loop."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="everytick-password")
        self._waiting = 0

    async def hashed(self, password: str) -> str:
        """Return what is stored of a password."""
        return await self._in_thread(partial(_hasher().hash, checked_password(password)))

    async def fits(self, password: str, stored: str | None) -> bool:
        """Tell whether the password is the stored one. Without a stored one it takes as long, and the answer is no."""
        is_right = await self._in_thread(
            partial(_verified, stored or _unmatched_hash(), password[: LONGEST_PASSWORD + 1])
        )
        return is_right and stored is not None

    async def _in_thread(self, work: partial[T]) -> T:
        if self._waiting >= _AT_ONCE + _WAITING_MOST:
            raise TooBusy("too many people sign in at this moment: try again in some seconds")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._waiting -= 1


@cache
def _hasher() -> PasswordHasher:
    try:
        from argon2 import PasswordHasher
    except ModuleNotFoundError:
        raise MissingExtra("passwords", "web") from None
    # OWASP's choice for services: 19 MiB, two passes, one lane. More memory would be taken from the jobs.
    return PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


@cache
def _unmatched_hash() -> str:
    """Return a hash that no password fits, for names that no user has."""
    from secrets import token_hex

    return _hasher().hash(token_hex())


def _verified(stored: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return _hasher().verify(stored, password)
    except (VerificationError, InvalidHashError):
        return False
