"""Definers: which jobs the nodes of a fleet define, so that what one start leaves out is not taken from another.

A start stores the names of its jobs once, under a hash of them, and its node's row names the hash.
"""

from collections.abc import Iterable
from datetime import datetime

from everytick.domain.values import value


@value
class UndefinedJob:
    """A job in service that a start of its owner has left out, and since when."""

    job_id: str
    name: str
    since: datetime


@value
class NameSet:
    """The names of the jobs that one start defines, and when such a start was last seen."""

    hash: str
    names: frozenset[str]
    stored_at: datetime


@value
class Undefined:
    """What a store knows of jobs that were left out: its time, then the jobs, then every set of names.

    It is read in this order, so that a start meanwhile can only keep a job. `sets` is empty where no job was left out.
    """

    now: datetime
    jobs: tuple[UndefinedJob, ...] = ()
    sets: tuple[NameSet, ...] = ()


def hash_of(names: Iterable[str]) -> str:
    """Return the hash of a set of names, which is the same in every process."""
    from hashlib import sha256  # only here: importing the application loads nothing heavy

    return sha256("\n".join(sorted(names)).encode("utf-8", "surrogatepass")).hexdigest()[:32]
