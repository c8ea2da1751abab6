"""Retiring: jobs that a start left out and that no living node defines any more."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from everytick.domain.definers import Undefined, UndefinedJob
from everytick.domain.values import value

STARTING = timedelta(minutes=1)
"""How long a start may take from storing its names until its node is heard of."""


@value
class Definer:
    """A node that names sets of job names by their hashes, when it was last heard of, and whether it lives."""

    node: str
    hashes: tuple[str, ...]
    beat_at: datetime
    lives: bool


def retirable(undefined: Undefined, nodes: Collection[Definer]) -> tuple[UndefinedJob, ...]:
    """Return the jobs that no living node defines, nor a start that is under way.

    A start is under way if its names were stored within the last minute, and no node that names them was heard of
    since. While a living node names a set that the store does not have, nothing is known of its jobs: none retires.
    """
    living = {hash_ for node in nodes if node.lives for hash_ in node.hashes}
    if not living.issubset(names.hash for names in undefined.sets):
        return ()
    heard = {hash_: node.beat_at for node in sorted(nodes, key=lambda node: node.beat_at) for hash_ in node.hashes}
    starting = {
        names.hash
        for names in undefined.sets
        if names.stored_at > undefined.now - STARTING and heard.get(names.hash, names.stored_at) <= names.stored_at
    }
    kept_names = {name for names in undefined.sets if names.hash in living | starting for name in names.names}
    return tuple(job for job in undefined.jobs if job.name not in kept_names)


def defined_by(undefined: Undefined, nodes: Collection[Definer]) -> Mapping[str, tuple[str, ...]]:
    """Return which of the jobs that were left out each of these nodes defines, by name."""
    names = {names.hash: names.names for names in undefined.sets}
    jobs_of = {
        node.node: tuple(
            job.name for job in undefined.jobs if any(job.name in names.get(hash_, ()) for hash_ in node.hashes)
        )
        for node in nodes
    }
    return {node: jobs for node, jobs in jobs_of.items() if jobs}
