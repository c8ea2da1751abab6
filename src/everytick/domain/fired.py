"""What a node ran while its store did not answer, as the store records it afterwards."""

from collections.abc import Sequence
from datetime import datetime

from everytick.domain.decisions import Creation, Span
from everytick.domain.steps import RunRow, failure_of
from everytick.domain.values import value


@value
class FiredRun:
    """One occurrence that was created without the store, as it stands now.

    `creation` has its status. `rows` are its attempts in order, each with the state of its run.
    If it has not ended, `owner` goes on with it under `fence` and `token` from step `number` on.
    Without an owner the next claim goes on with it. `node` ran it.
    """

    creation: Creation
    started_at: datetime | None
    ended_at: datetime | None
    error: str | None
    rows: tuple[RunRow, ...]
    owner: str | None = None
    fence: int = 1
    number: int = 1
    claimed_at: datetime | None = None
    lost: int = 0
    superseded_by_next: bool = False
    report_due: bool = False
    token: int = 0
    node: str | None = None

    @property
    def is_begun(self) -> bool:
        """Whether a node has begun it."""
        return self.fence > 0

    @property
    def failure(self) -> str | None:
        """What its job remembers as its last error; None where it has not ended, or ended well."""
        runs = {row.task: row.run for row in self.rows}
        return None if self.ended_at is None else failure_of(self.creation.status, runs.values(), self.error)

    @property
    def reason(self) -> str:
        """Why it exists. A store recognises by it what it has recorded before."""
        creation = self.creation
        return f"{creation.why}, {creation.detail}" if creation.detail else str(creation.why)


@value
class Fired:
    """What was decided and run of one job: every instant in `(after, through]` is a run or in a span, here or before.

    If more follows, `through` is `after`: nothing counts as decided before all of it is recorded.
    """

    after: datetime
    through: datetime
    runs: tuple[FiredRun, ...] = ()
    spans: tuple[Span, ...] = ()

    def ends(self, handles: Sequence[int | None]) -> list[tuple[datetime, int, FiredRun]]:
        """Return what has ended and has a handle: when, the handle and the run, in the order of their ends."""
        ends = [
            (run.ended_at, handle, run)
            for run, handle in zip(self.runs, handles, strict=True)
            if run.ended_at is not None and handle is not None
        ]
        return sorted(ends, key=lambda end: end[:2])
