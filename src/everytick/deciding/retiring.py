"""Retiring: which of the jobs that a start left out no living node defines any more."""

from collections.abc import Collection, Mapping
from datetime import timedelta

from everytick.domain.definers import Undefined, UndefinedJob

STARTING = timedelta(minutes=2)
"""A set of names that was stored within this time counts as a living node's. The node that stored it may still be
starting; a node that runs tells the store of a new set within a minute."""


def retirable(undefined: Undefined, living: Collection[str]) -> tuple[UndefinedJob, ...]:
    """Return the jobs that no living node defines; `living` are the hashes that the living nodes name.

    While a living node names a set that the store does not have, nothing is known of its jobs, and none retires.
    """
    if not set(living).issubset(each.hash for each in undefined.sets):
        return ()
    fresh = undefined.now - STARTING
    kept = {name for each in undefined.sets if each.hash in living or each.stored_at > fresh for name in each.names}
    return tuple(job for job in undefined.jobs if job.name not in kept)


def defined_by(undefined: Undefined, nodes: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    """Return which of the jobs that were left out each node defines, by name; `nodes` gives each node's hashes."""
    names = {each.hash: each.names for each in undefined.sets}
    found = {
        node: tuple(job.name for job in undefined.jobs if any(job.name in names.get(each, ()) for each in hashes))
        for node, hashes in nodes.items()
    }
    return {node: jobs for node, jobs in found.items() if jobs}
