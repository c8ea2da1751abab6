"""A loop on virtual time whose tasks take turns by chance, the same for the same seed."""

import asyncio
from random import Random
from typing import Any

from everytick.testing.virtual import VirtualLoop


class ChanceLoop(VirtualLoop):
    """Of the tasks that could go on now any may be next; what is not a task's step keeps its place."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._chance = Random(seed)

    def _run_once(self) -> None:
        ready: Any = self._ready  # type: ignore[attr-defined]
        places = [place for place, handle in enumerate(ready) if _is_step(handle)]
        if len(places) > 1:
            handles = [ready[place] for place in places]
            self._chance.shuffle(handles)
            for place, handle in zip(places, handles, strict=True):
                ready[place] = handle
        super()._run_once()  # type: ignore[misc]


def _is_step(handle: asyncio.Handle) -> bool:
    """Whether this lets a task go on: a task has one step in the queue at most, so none overtakes itself."""
    callback = handle._callback  # type: ignore[attr-defined]
    owner = getattr(callback, "__self__", None)
    return isinstance(owner, asyncio.Task) or type(callback).__name__.startswith("TaskStep")


async def passing(seconds: float) -> None:
    """Return when that much virtual time has passed."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(max(seconds, 0.0), _ring, over)
    try:
        await over
    finally:
        timer.cancel()


def _ring(over: "asyncio.Future[None]") -> None:
    # The waiting task may have been canceled at the very moment of the timer.
    if not over.done():
        over.set_result(None)
