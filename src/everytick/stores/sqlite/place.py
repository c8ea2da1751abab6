"""Which file it is that stands at a path: a store whose file was deleted or replaced must not go on.

SQLite would: it holds the file open, and writes to one that has no name any more, while
another process opens the new one and runs the same instants.
"""

import os
from pathlib import Path

from everytick.errors import StoreGone


class StoreFile:
    """A path, and the file that was there when the store was opened; a look costs two microseconds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: tuple[int, int] | None = None

    def remember(self) -> None:
        """From now on the file that is there is the right one."""
        self._opened = self._found()

    def check(self) -> None:
        """Return if the file is still the one that was opened."""
        if self._opened is None or (found := self._found()) == self._opened:
            return
        reason = "the file was deleted" if found is None else "another file was put in its place"
        raise StoreGone(str(self._path), reason)

    def _found(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino
