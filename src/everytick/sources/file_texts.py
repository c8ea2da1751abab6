"""Job files that come as texts and not from a disk: a client sends them, with the files that they name beside them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from everytick.sources.job_files import JobFile
    from everytick.sources.yaml_calendars import SharedParts


class FileTexts:
    """Texts by the names of their files. Names are compared as they are written: no disk is asked."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = {_key(name): text for name, text in texts.items()}
        # Each file that others use is read once, however many files use it.
        self.shared: dict[Path, SharedParts] = {}

    def place(self, path: Path) -> Path:
        """Return the one way to write this path."""
        return Path(_key(str(path)))

    def text(self, path: Path) -> str | None:
        """Return the text of a file, None if it was not sent."""
        return self._texts.get(_key(str(path)))


def _key(name: str) -> str:
    return os.path.normpath(name)


def read_texts(files: Mapping[str, str], beside: Mapping[str, str], *, owner: str) -> list[JobFile]:
    """Return the jobs of these files. What they use must be among the files or beside them."""
    from everytick.sources.files import without_clashes
    from everytick.sources.job_files import read_jobs

    texts = FileTexts({**beside, **files})
    return without_clashes(read_jobs(text.encode(), name, owner=owner, texts=texts) for name, text in files.items())


def texts_of(files: Iterable[JobFile]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of files that were read, and those of the files beside them, by name.

    A file that cannot be read any more raises OSError or UnicodeDecodeError.
    """
    read = list(files)
    own = {file.file: _text(Path(file.file)) for file in read}
    named = {str(path): path for file in read for path in file.beside if str(path) not in own}
    return own, {name: _text(path) for name, path in named.items()}


def _text(path: Path) -> str:
    return path.read_bytes().decode()
