"""What has ended long ago stays in Redis only: the copy holds the newest of each job, and asks for the rest.

A verb that comes to a row which the copy does not hold raises `Cold`. The store reads what it asks for, and the verb
runs again from the beginning; nothing of it was written.
"""

from collections.abc import Iterator
from datetime import datetime
from itertools import takewhile
from typing import Any

from everytick.stores.memory.ordered import Ordered, Place
from everytick.stores.memory.rows import OccurrenceRow
from everytick.stores.redis.watched import Watched

OLDER = 500
"""How many older occurrences of a job are read at once when a verb goes back through its history."""


class Cold(BaseException):
    """A verb needs rows that the copy does not hold.

    They are one occurrence, named by `id_`, or older ones of the job `job_id`: all of them, those down to the instant
    `down_to`, or some more. It is no `Exception`: code that retries the items of a batch alone must not catch it.
    """

    def __init__(
        self, *, id_: str = "", job_id: str = "", down_to: datetime | None = None, is_all: bool = False
    ) -> None:
        super().__init__(id_ or job_id)
        self.id_, self.job_id, self.down_to, self.is_all = id_, job_id, down_to, is_all


class ColdHistory(Ordered[OccurrenceRow]):
    """The history of a job, of which the copy holds the part from `warm_from` on; all of it if that is None.

    Occurrences that have not ended are held too, however old. `is_patchy` lets a verb read only what is held.
    """

    __slots__ = ("is_patchy", "job_id", "warm_from")

    def __init__(self, job_id: str) -> None:
        super().__init__()
        self.job_id, self.is_patchy = job_id, False
        self.warm_from: datetime | None = None

    @property
    def is_whole(self) -> bool:
        """Whether a verb may walk over all of it."""
        return self.warm_from is None or self.is_patchy

    def __bool__(self) -> bool:
        return self.warm_from is not None or bool(self._parts)

    def __len__(self) -> int:
        return super().__len__() if self.is_whole else self._ask(is_all=True)

    @property
    def held(self) -> int:
        """How many occurrences the copy holds."""
        return super().__len__()

    @property
    def rows(self) -> Iterator[OccurrenceRow]:
        """The occurrences that the copy holds, newest first."""
        return super().__reversed__()

    def __iter__(self) -> Iterator[OccurrenceRow]:
        return super().__iter__() if self.is_whole else self._ask(is_all=True)

    def through(self, first: Any) -> Iterator[OccurrenceRow]:
        """Give the rows whose place begins with a value up to `first`, first to last."""
        return super().through(first) if self.is_whole else self._ask(is_all=True)

    def since(self, bound: Place) -> Iterator[OccurrenceRow]:
        """Give the rows at this place and behind it, first to last."""
        if not self.is_whole and self.warm_from is not None and bound[0] < self.warm_from:
            self._ask(down_to=bound[0])
        return super().since(bound)

    def before(self, bound: Place) -> Iterator[OccurrenceRow]:
        """Give the rows before this place, last to first."""
        return self._back(super().before(bound))

    def __reversed__(self) -> Iterator[OccurrenceRow]:
        return self._back(super().__reversed__())

    def _back(self, rows: Iterator[OccurrenceRow]) -> Iterator[OccurrenceRow]:
        if self.is_whole:
            yield from rows
            return
        yield from takewhile(self._is_warm, rows)
        self._ask()

    def _is_warm(self, row: OccurrenceRow) -> bool:
        return self.warm_from is None or row.creation.scheduled_for >= self.warm_from

    def _ask(self, *, down_to: datetime | None = None, is_all: bool = False) -> Any:
        raise Cold(job_id=self.job_id, down_to=down_to, is_all=is_all)


class HeldOccurrences(Watched[str, OccurrenceRow]):
    """The occurrences that the copy holds. `absent` are ids of which the server has none, as of this verb.

    `is_whole` says that the copy holds all.
    """

    def __init__(self) -> None:
        super().__init__()
        self.absent: set[str] = set()
        self.is_whole = True

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or (not self.is_whole and self._asked(key))

    def __getitem__(self, key: str) -> OccurrenceRow:
        if not super().__contains__(key) and not self.is_whole:
            self._asked(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the row, or the default if the server has none."""
        if not super().__contains__(key) and not self.is_whole:
            self._asked(key)
        return super().get(key, default)

    def _asked(self, key: object) -> bool:
        if key not in self.absent:
            raise Cold(id_=str(key))
        return False
