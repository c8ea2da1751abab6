"""What an engine is told when it does not answer, or refuses."""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import pytest

from everytick.domain.outcome import Outcome
from everytick.runners.engine_desk import EngineDesk
from everytick.runners.engines import Capabilities, EngineUnreachable, Work
from everytick.testing.virtual import VirtualLoop, run_virtually
from tests.unit.node.worlds import pause


class Engine:
    """An engine that is away, refuses, or does what it is told."""

    name, capabilities = "there", Capabilities()

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.forgotten: list[str] = []

    def reach(self) -> None:
        """Answer."""

    def submit(self, work: Sequence[Work]) -> list[Exception | None]:
        """Take all."""
        return [None] * len(work)

    def poll(self, ids: Sequence[str]) -> Mapping[str, Outcome]:
        """Know of no end."""
        return {}

    def cancel(self, ids: Sequence[str]) -> None:
        """Stop these."""
        if self.error is not None:
            raise self.error

    def forget(self, ids: Sequence[str]) -> None:
        """Free these."""
        if self.error is not None:
            raise self.error
        self.forgotten += ids

    def close(self) -> None:
        """Do nothing."""


def told(engine: Engine, story: Callable[[EngineDesk], Coroutine[Any, Any, None]]) -> None:
    """Let the story happen on virtual time."""

    async def main(_: VirtualLoop) -> None:
        desk = EngineDesk(engine)
        await story(desk)
        desk.close()

    run_virtually(main)


def test_results_are_freed_once_an_engine_answers_again() -> None:
    """It was told once, and kept what it had not heard of for ever."""
    engine = Engine(EngineUnreachable("away"))

    async def story(desk: EngineDesk) -> None:
        desk.forget_soon("first")
        await pause("3s")
        desk.forget_soon("second")
        engine.error = None
        await pause("2s")

    told(engine, story)

    assert engine.forgotten == ["first", "second"]


def test_an_engine_that_refuses_a_stop_keeps_no_attempt_waiting(caplog: pytest.LogCaptureFixture) -> None:
    """The answer of the others in the same call never came, and their attempts waited out their grace periods."""

    async def story(desk: EngineDesk) -> None:
        await desk.cancel("attempt")
        desk.forget_soon("attempt")
        await pause("5s")

    with caplog.at_level(logging.ERROR, "everytick.engines"):
        told(Engine(ValueError("no such task")), story)

    assert caplog.messages == [
        "there refuses to stop 1 tasks: they may go on there, and their results are not recorded",
        "there refuses to free 1 results: it keeps them until it is restarted",
    ]
