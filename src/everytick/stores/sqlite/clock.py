"""The time of a file, as its tables have it."""

from collections.abc import Callable
from datetime import datetime
from threading import Lock

from everytick.stores.sqlite.rows import micros


class StoreClock:
    """Gives microseconds; its source is asked by one thread at a time."""

    def __init__(self, source: Callable[[], datetime]) -> None:
        self._source = source
        self._lock = Lock()

    def now(self) -> int:
        """Return the store's time."""
        with self._lock:
            return micros(self._source())
