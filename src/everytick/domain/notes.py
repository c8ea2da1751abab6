"""Notes about an attempt while it runs. All but `handed_to` are for people: no decision depends on them."""

from datetime import datetime
from typing import NamedTuple

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


class HandedAttempt(NamedTuple):
    """An open attempt that an engine carries out, and its name there."""

    task: str
    number: int
    handed_to: str


@value
class Note:
    """That an attempt runs, how far it has come and where its output is; None leaves what was noted before.

    `handed_to` is the engine that carries it out, and its id there. It is the one part on which something depends: an
    attempt that was handed over outlives its node (`RunStore.reattach`).
    """

    task: str
    number: int
    started_at: datetime
    progress: Progress | None = None
    log: Log | None = None
    handed_to: str | None = None
