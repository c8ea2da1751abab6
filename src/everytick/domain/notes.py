"""Notes about an attempt while it runs, for people. No decision depends on them."""

from datetime import datetime

from everytick.domain.values import value


@value
class Progress:
    """How far an attempt has come; `total` is None if it is unknown."""

    done: float
    total: float | None = None
    text: str = ""


@value
class Log:
    """Where the output of an attempt is kept: a file of this path in the log folder of this node."""

    node: str
    path: str


@value
class Note:
    """That an attempt runs, how far it has come and where its output is; None leaves what was noted before."""

    task: str
    number: int
    started_at: datetime
    progress: Progress | None = None
    log: Log | None = None
