"""Open batches: which jobs a node is planning now, so that no other batch of the same node has them."""

from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Generic, TypeVar

K = TypeVar("K", int, str)


class OpenBatches(Generic[K]):
    """The jobs of batches that are open now, by node.

    Nodes may share a store object, and one of them may die without leaving its batch: its jobs
    are not kept from the others. The revision settles it where two nodes plan the same job.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, set[K]] = {}

    def of(self, node: str) -> Set[K]:
        """Return the jobs of the node's open batches."""
        return self._jobs.get(node, frozenset())

    @contextmanager
    def opened(self, node: str, jobs: Set[K]) -> Iterator[None]:
        """Let no other batch of this node have these jobs as long as this one is open, however it ends."""
        held = self._jobs.setdefault(node, set())
        held |= jobs
        try:
            yield
        finally:
            held -= jobs
