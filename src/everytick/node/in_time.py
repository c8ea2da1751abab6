"""A store that answers too late counts as away: a server that hangs is as good as one that is down."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from everytick.errors import StoreUnavailable

_T = TypeVar("_T")

ANSWER_SECONDS = 10.0
"""How long a question may take. A busy server answers within a second or two; a hung one never does."""


async def in_time(question: Awaitable[_T]) -> _T:
    """Return the store's answer; raise `StoreUnavailable` if it takes too long."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await question
    except TimeoutError:
        raise StoreUnavailable("the store", f"no answer within {ANSWER_SECONDS:.0f} seconds") from None
