"""Small tables that know what a verb has touched, each one hash in Redis."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from everytick.stores.memory.rows import CountedStart
from everytick.stores.redis import codec

K = TypeVar("K")
V = TypeVar("V")

_EMPTY = codec.write([])


class Watched(dict[K, V], Generic[K, V]):
    """A dict that remembers which keys a verb has asked for or set: only these may have changed."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.touched: set[K] = set()

    def peek(self, key: K) -> V | None:
        """Return what stands under the key, for reading only."""
        return super().get(key)

    def __getitem__(self, key: K) -> V:
        self.touched.add(key)
        return super().__getitem__(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.touched.add(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        self.touched.add(key)
        super().__delitem__(key)

    def get(self, key: K, default: Any = None) -> Any:
        self.touched.add(key)
        return super().get(key, default)

    def pop(self, key: K, *default: Any) -> Any:
        self.touched.add(key)
        return super().pop(key, *default)

    def setdefault(self, key: K, default: Any = None) -> Any:
        self.touched.add(key)
        return super().setdefault(key, default)

    def update(self, *given: Any, **named: Any) -> None:
        super().update(*given, **named)
        self.touched.update(dict(*given, **named))

    def values(self) -> Any:
        self.touched.update(self)
        return super().values()

    def items(self) -> Any:
        self.touched.update(self)
        return super().items()


class Numbers(Iterator[int]):
    """Numbers that go on from the last one any process has drawn."""

    def __init__(self) -> None:
        self.last = 0

    def __next__(self) -> int:
        self.last += 1
        return self.last


class Starts(Watched[str, list[CountedStart]]):
    """The starts that limits count, by reach."""

    def __missing__(self, key: str) -> list[CountedStart]:
        made: list[CountedStart] = []
        self[key] = made
        return made


class KeptTable(Generic[K, V]):
    """A small table that is a dict in memory and one hash in Redis, with a field for each key."""

    def __init__(self, key: str, owner: object, name: str, made: "type[Watched[K, V]]" = Watched) -> None:
        self.key, self._owner, self._name, self._made = key, owner, name, made
        self._texts: dict[K, str] = {}
        setattr(owner, name, made())

    @property
    def rows(self) -> "Watched[K, V]":
        """The rows. A verb may have replaced the whole dict: then all of it is touched."""
        rows: dict[K, V] = getattr(self._owner, self._name)
        if isinstance(rows, Watched):
            return rows
        watched = self._made(rows)
        watched.touched = {*rows, *self._texts}
        setattr(self._owner, self._name, watched)
        return watched

    def changes(self) -> dict[str, str | None]:
        """Return the fields of the rows that a verb has changed."""
        rows, changes = self.rows, dict[str, str | None]()
        for key in rows.touched:
            text = codec.write(dict.__getitem__(rows, key)) if key in rows else None
            text = None if text == _EMPTY else text
            if text != self._texts.get(key):
                changes[codec.write(key)] = text
        return changes

    def keep(self, changes: Mapping[str, str | None]) -> None:
        """Take these fields for what Redis has."""
        for field, text in changes.items():
            key = codec.read(field)
            if text is None:
                self._texts.pop(key, None)
            else:
                self._texts[key] = text

    def put_back(self, changes: Iterable[str]) -> None:
        """Make the rows of these fields what Redis has."""
        rows = self.rows
        for field in changes:
            key = codec.read(field)
            text = self._texts.get(key)
            if text is None:
                rows.pop(key, None)
            else:
                rows[key] = codec.read(text)

    def forget(self) -> None:
        """Forget what was touched."""
        self.rows.touched = set()


class KeptList:
    """A list that only grows: one hash in Redis, with a field for each number."""

    def __init__(self, key: str, items: list[Any]) -> None:
        self.key, self.items, self.count = key, items, 0

    def changes(self) -> dict[str, str | None]:
        """Return a field for each new item."""
        return {str(number): codec.write(self.items[number]) for number in range(self.count, len(self.items))}

    def keep(self, changes: Mapping[str, str | None]) -> None:
        """Take these items for what Redis has."""
        self.count += len(changes)

    def undo(self) -> None:
        """Drop the items that Redis does not have."""
        del self.items[self.count :]

    def add(self, changes: Mapping[str, str | None]) -> None:
        """Add items that another process has written, unless they are there."""
        for number, text in sorted(changes.items(), key=lambda item: int(item[0])):
            if int(number) == len(self.items) and text is not None:
                self.items.append(codec.read(text))
        self.count = len(self.items)
