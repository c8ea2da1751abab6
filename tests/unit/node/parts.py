"""What a part of a node is made with in a test of this part alone."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from everytick.domain.job import Job
from everytick.node.inbox import Inbox
from everytick.runners.base import Body


def inbox(hear: Callable[[Any], None] = lambda event: None) -> Inbox:
    """Return an inbox that passes every event on, of whatever kind it is."""
    return Inbox(defaultdict(lambda: hear))


class EveryJob:
    """A repertoire that has a body for every job, and runs none."""

    def bodies(self, job: Job) -> tuple[Body, ...]:
        return ()

    def why(self, job: Job) -> str:
        raise AssertionError("every job can run")

    def forget(self, occurrence_id: str) -> None:
        return

    def close(self) -> None:
        return
