"""How long a loop waits after a failure: longer each time, never in step with other nodes."""

from random import random

from everytick.errors import StoreBroken

_FIRST, _MOST = 0.1, 2.0

BROKEN_EVERY = 5.0
"""Seconds between two tries on a store that is broken: only people can mend it, and then it is noticed soon."""


class Backoff:
    """Counts failures in a row."""

    __slots__ = ("_failures",)

    def __init__(self) -> None:
        self._failures = 0

    def succeeded(self) -> None:
        """Start over."""
        self._failures = 0

    def failed(self, error: Exception | None = None) -> float:
        """Return how many seconds to wait before the next try."""
        if isinstance(error, StoreBroken):
            return BROKEN_EVERY
        self._failures += 1
        most: float = min(_MOST, _FIRST * 2.0 ** min(self._failures - 1, 10))
        return most * (0.5 + 0.5 * random())
