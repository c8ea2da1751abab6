"""Scratch: a folder for every occurrence that wants one, on this node, gone after the occurrence."""

import shutil
import tempfile
import threading
from pathlib import Path


class Scratch:
    """The folders of one node. They are nobody else's to read."""

    def __init__(self, root: Path | None = None) -> None:
        self._given, self._root = root, root
        self._folders: dict[str, Path] = {}

    def folder(self, occurrence_id: str) -> Path:
        """Return the occurrence's folder; it exists now, and all its tasks on this node share it."""
        found = self._folders.get(occurrence_id)
        if found is None:
            found = self._folders[occurrence_id] = self._home() / occurrence_id
            found.mkdir(mode=0o700, exist_ok=True)
        return found

    def forget(self, occurrence_id: str) -> None:
        """Remove the occurrence's folder, if it had one; a large one is removed while the node goes on."""
        found = self._folders.pop(occurrence_id, None)
        if found is not None:
            threading.Thread(target=_remove, args=(found,), name="everytick scratch", daemon=True).start()

    def close(self) -> None:
        """Remove all of them."""
        for folder in self._folders.values():
            _remove(folder)
        self._folders.clear()
        if self._root is not None and self._given is None:
            _remove(self._root)
            self._root = None

    def _home(self) -> Path:
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="everytick-"))
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._root


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
