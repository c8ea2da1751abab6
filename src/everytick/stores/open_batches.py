"""Open batches: which jobs a node is planning now, so that no other batch of the same node has them."""

from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Generic, TypeVar

K = TypeVar("K", int, str)


class OpenBatches(Generic[K]):
    """The jobs of batches that are open now, by node.

    Nodes may share a store object, and one of them may die with its batch open: other nodes still get its jobs. If
    two nodes plan the same job, the revision check accepts one plan.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, set[K]] = {}

    def of(self, node: str) -> Set[K]:
        """Return the jobs of the node's open batches."""
        return self._jobs.get(node, frozenset())

    @contextmanager
    def opened(self, node: str, jobs: Set[K]) -> Iterator[None]:
        """Keep these jobs out of other batches of this node until the context ends."""
        open_jobs = self._jobs.setdefault(node, set())
        open_jobs |= jobs
        try:
            yield
        finally:
            open_jobs -= jobs
