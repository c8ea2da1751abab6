"""Sorted rows: the next one is found at once, and a change does not walk the others."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from itertools import chain, islice, takewhile
from operator import itemgetter
from typing import Any, Generic, TypeAlias, TypeVar

R = TypeVar("R")

Place: TypeAlias = tuple[Any, ...]
"""The sort key of a row, unique, with the row itself as the last item."""

_LONGEST = 1_000
"""Most places in one part. Longer parts make an insert slow, shorter ones make the list of parts long."""

_first, _row = itemgetter(0), itemgetter(-1)


class Ordered(Generic[R]):
    """Rows sorted by their places.

    The places are stored in parts of bounded length, none of them empty. In one long list every insert would move
    all places behind it.
    """

    __slots__ = ("_longest", "_parts")

    def __init__(self, longest: int = _LONGEST) -> None:
        self._longest = longest
        self._parts: list[list[Place]] = []

    def __len__(self) -> int:
        return sum(map(len, self._parts)) if self._parts else 0

    def __iter__(self) -> Iterator[R]:
        return map(_row, chain.from_iterable(self._parts))

    def __reversed__(self) -> Iterator[R]:
        return map(_row, chain.from_iterable(map(reversed, reversed(self._parts))))

    def add(self, place: Place) -> None:
        """Insert a row at this place."""
        parts = self._parts
        if not parts:
            parts.append([place])
            return
        part = parts[-1]
        # Most places come in order: a new instant goes behind all others.
        if part[-1] < place:
            if len(part) < self._longest:
                part.append(place)
            else:
                parts.append([place])
            return
        part = parts[0] if len(parts) == 1 else parts[self._part_of(place)]
        insort(part, place)
        if len(part) > self._longest:
            number, middle = self._part_of(place), len(part) // 2
            parts[number : number + 1] = [part[:middle], part[middle:]]

    def remove(self, place: Place) -> None:
        """Remove the row at this place. There must be one."""
        parts = self._parts
        part = parts[0]
        # Most rows are removed in order: due jobs and ready occurrences are taken from the front.
        if part[0][-1] is place[-1]:
            at = 0
        else:
            part = part if len(parts) == 1 else parts[self._part_of(place)]
            at = bisect_left(part, place)
        assert part[at] == place, f"there is no row at {place}"
        del part[at]
        if not part:
            parts.remove(part)

    def through(self, first: Any) -> Iterator[R]:
        """Give the rows whose place begins with a value up to `first`, first to last."""
        return map(_row, takewhile(lambda place: bool(place[0] <= first), chain.from_iterable(self._parts)))

    def since(self, bound: Place) -> Iterator[R]:
        """Give the rows at this place and behind it, first to last."""
        if not self._parts:
            return iter(())
        number = self._part_of(bound)
        part = self._parts[number]
        later = chain.from_iterable(islice(self._parts, number + 1, None))
        return map(_row, chain(islice(part, bisect_left(part, bound), None), later))

    def before(self, bound: Place) -> Iterator[R]:
        """Give the rows before this place, last to first."""
        if not self._parts:
            return iter(())
        number = self._part_of(bound)
        part = self._parts[number]
        earlier = chain.from_iterable(map(reversed, self._parts[:number][::-1]))
        return map(_row, chain(part[: bisect_left(part, bound)][::-1], earlier))

    def _part_of(self, place: Place) -> int:
        """Return the number of the last part that does not begin behind the place."""
        return max(bisect_right(self._parts, place, key=_first) - 1, 0)
