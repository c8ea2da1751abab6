"""The output of tasks: files in the log folder of the node that ran them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import Whole


def log_folder(store: AnyStore) -> Path | None:
    """Return the default folder of logs: beside the file of a SQLite store, else in the user's state folder."""
    from pathlib import Path

    address = store.address
    if address.is_in_memory:
        return None
    if address.file is not None:
        return address.file.with_name(f"{address.file.stem}-logs")
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local/state") / "everytick/logs"


def inside(folder: Path, path: str) -> Path | None:
    """Return the file in the folder, None for a path that leads out of it."""
    found = (folder / path).resolve()
    return found if found.is_relative_to(folder.resolve()) else None


def output_of(folder: Path | None, whole: Whole, task: str | None, attempt: int | None, most: int) -> bytes:
    """Return what the attempts of an occurrence wrote, in their order: of these tasks, the last `most` bytes."""
    found = b""
    for name, tried in whole.attempts:
        is_wanted = task in (None, name) and attempt in (None, tried.number)
        file = inside(folder, tried.log.path) if folder is not None and is_wanted and tried.log is not None else None
        if file is not None and file.is_file():
            found = (found + _end_of(file, most))[-most:]
    return found


def output_from(folder: Path | None, whole: Whole, task: str, attempt: int, start: int, most: int) -> bytes | None:
    """Return the output of an attempt from byte `start` on, at most `most` bytes; None if it is not on this host."""
    for name, tried in whole.attempts:
        if (name, tried.number) == (task, attempt) and tried.log is not None and folder is not None:
            file = inside(folder, tried.log.path)
            if file is not None and file.is_file():
                with file.open("rb") as opened:
                    opened.seek(start)
                    return opened.read(most)
    return None


def _end_of(file: Path, most: int) -> bytes:
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - most))
        return opened.read(most)
