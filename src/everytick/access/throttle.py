"""How often one address or person may ask within a time, in the memory of this process."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

_MOST_KEYS = 10_000
"""Beyond so many the one that was quiet longest is forgotten: strangers must not fill the memory."""


class Throttle:
    """Lets `most` through at once, and then as many in `seconds`, for each key: a bucket that fills up again."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._rate, self._clock = float(most), most / seconds, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> int:
        """Take one; return 0, or the seconds after which one is there again."""
        left = self._left(key)
        if left < 1:
            return math.ceil((1 - left) / self._rate)
        self._keep(key, left - 1)
        return 0

    def wait(self, key: str) -> int:
        """Return the seconds after which `take` would let one through; 0 for now. Nothing is taken."""
        left = self._left(key)
        return 0 if left >= 1 else math.ceil((1 - left) / self._rate)

    def _left(self, key: str) -> float:
        left, at = self._buckets.get(key, (self._most, self._clock()))
        return min(self._most, left + (self._clock() - at) * self._rate)

    def _keep(self, key: str, left: float) -> None:
        self._buckets[key] = (left, self._clock())
        self._buckets.move_to_end(key)
        if len(self._buckets) > _MOST_KEYS:
            self._buckets.popitem(last=False)
