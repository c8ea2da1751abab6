"""The seam between the executor and what a task does.

A Body is made once for every task of a definition and run once for every attempt. The
executor stops an attempt by canceling the coroutine that runs it, after `context.halt`
has said why and `context.grace_seconds` how long the body may take to end. What that takes
for a thread or a process is the body's own business.
"""

from typing import Protocol

from everytick.domain.job import Job
from everytick.domain.outcome import Outcome
from everytick.runners.context import Context


class Body(Protocol):
    """What a task does."""

    wants_previous: bool
    """Whether its context must know, before it begins, which occurrence ended last."""

    begins_later: bool
    """Whether it may wait for a thread or a process first; it then calls `context.begin()`, and is timed from there."""

    async def run(self, context: Context) -> Outcome:
        """Carry out one attempt and say how it ended; whatever the task raises is an outcome.

        Canceled, it ends what it began, within `context.grace_seconds`, and raises
        CancelledError, or returns the outcome if the task had ended on its own.
        """
        ...


class Repertoire(Protocol):
    """What a node can run."""

    def bodies(self, job: Job) -> tuple[Body, ...] | None:
        """Return what the tasks of the job do, in their order; None if this node cannot run all of them."""
        ...

    def why(self, job: Job) -> str:
        """Say why the job cannot run here."""
        ...

    def forget(self, occurrence_id: str) -> None:
        """Remove what was kept for the occurrence, which is over here."""
        ...

    def close(self) -> None:
        """End whatever was kept ready; closing twice is harmless."""
        ...
