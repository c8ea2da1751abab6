"""Submissions: a form that is sent twice is carried out once. Each form has a key, drawn when the page is made.

Triggers, replays and backfills also hand the key to the store, so that it holds between processes. All other deeds
have the same effect if they are done twice.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar
from uuid import uuid4

D = TypeVar("D")

_REMEMBERED = 1_000
"""How many of the last submissions are remembered. A second click comes within seconds."""


def new_key() -> str:
    """Return the key of a new form."""
    return uuid4().hex


class Submissions(Generic[D]):
    """What the last forms were answered with, by person and key."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], asyncio.Task[D]] = {}

    async def once(self, person: str, key: str, do: Callable[[], Awaitable[D]]) -> D:
        """Return what `do` answers, or what it has answered to the same form. A deed that raised is done again."""
        if not key:
            return await do()
        named = (person, key)
        under_way = self._answers.get(named)
        if under_way is None:
            under_way = self._answers[named] = asyncio.ensure_future(_done(do))
            under_way.add_done_callback(lambda task: self._forget_failed(named, task))
            while len(self._answers) > _REMEMBERED:
                del self._answers[next(iter(self._answers))]
        # The deed goes on if one of two requests for it goes away.
        return await asyncio.shield(under_way)

    def _forget_failed(self, named: tuple[str, str], task: "asyncio.Task[D]") -> None:
        if task.cancelled() or task.exception() is not None:
            self._answers.pop(named, None)


async def _done(do: Callable[[], Awaitable[D]]) -> D:
    return await do()
