"""Scratch folders: one for every occurrence that asks for it, on this node, removed after the occurrence."""

import shutil
import tempfile
import threading
from pathlib import Path


class Scratch:
    """The folders of one node. Only its user can read them."""

    def __init__(self, root: Path | None = None) -> None:
        self._given, self._root = root, root
        self._folders: dict[str, Path] = {}

    def folder(self, occurrence_id: str) -> Path:
        """Return the occurrence's folder, which exists now. All its tasks on this node share it."""
        folder = self._folders.get(occurrence_id)
        if folder is None:
            folder = self._folders[occurrence_id] = self._made_root() / occurrence_id
            folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def forget(self, occurrence_id: str) -> None:
        """Remove the occurrence's folder, if it had one, in a thread: it may be large."""
        folder = self._folders.pop(occurrence_id, None)
        if folder is not None:
            threading.Thread(target=_remove, args=(folder,), name="everytick scratch", daemon=True).start()

    def close(self) -> None:
        """Remove all folders."""
        for folder in self._folders.values():
            _remove(folder)
        self._folders.clear()
        if self._root is not None and self._given is None:
            _remove(self._root)
            self._root = None

    def _made_root(self) -> Path:
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="everytick-"))
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._root


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
