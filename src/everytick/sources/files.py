"""A folder of job files: which jobs it names now, and what changed since it was last read.

A job is known by its name, wherever it stands: renaming a file changes nothing. A file with a
mistake keeps its last good version in force. If there is none, no job of the folder counts as
deleted until the file is corrected, since it may define the missing ones.
"""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from hashlib import blake2b
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING
from zlib import compress, decompress

from everytick.domain.values import value
from everytick.errors import shown
from everytick.sources.job_files import FILE, FileJob, JobFile, read_jobs
from everytick.sources.yaml_reader import LARGEST_FILE, Mistake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

SUFFIXES = (".yaml", ".yml")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FRESH_NANOSECONDS = 2_000_000_000
"""A file that changed less than two seconds ago is read again: a second change may get the same time stamp."""


class SourceEventKind(StrEnum):
    """The kinds of change of a job."""

    ADDED = "added"
    UPDATED = "updated"
    DELETED = "deleted"


@value
class SourceEvent:
    """A job was added, updated or deleted; a deleted one has a name only."""

    kind: SourceEventKind
    name: str
    job: FileJob | None = None


@value
class FileState:
    """A file of a folder: its jobs in force, its mistakes and warnings, its text now, and when that was last good.

    `text` is empty if the file could not be read, and `good` if it was never good.
    """

    path: Path
    jobs: tuple[FileJob, ...]
    mistakes: tuple[Mistake, ...]
    warnings: tuple[Mistake, ...]
    changed_at: datetime | None
    text: str = ""
    good: str = ""


def job_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Give the named files, and the files in the named folders at any depth, sorted by name.

    Names that begin with a dot are left out: they belong to editors and version control.
    """
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                if name.endswith(SUFFIXES) and not name.startswith("."):
                    yield Path(folder, name)


def read_file(path: Path, *, owner: str = FILE) -> JobFile:
    """Return the jobs of a file, or its mistakes. It raises nothing."""
    try:
        raw = read_bytes(path)
    except OSError as error:
        return refused(path, f"cannot be read: {error.strerror or error}")
    return raw if isinstance(raw, JobFile) else read_jobs(raw, str(path), owner=owner)


def read_all(
    paths: Iterable[Path], *, owner: str = FILE, tell: Callable[[int, int], None] = lambda done, total: None
) -> list[JobFile]:
    """Return the jobs of these files and folders. A name that comes twice is a mistake in the second file.

    Before each file, `tell` is called with how many were read and how many there are.
    """
    known: dict[str, FileJob] = {}
    files: list[JobFile] = []
    named_files = [(argument, path) for argument in paths for path in job_files([argument])]
    for named, path in named_files:
        tell(len(files), len(named_files))
        # A file that is named was chosen. A file in a folder may come from every user who may write to the folder.
        closed = None if path == named else open_to_others(path.parent)
        files.append(_without_clash(closed or read_file(path, owner=owner), known))
    return files


def without_clashes(files: Iterable[JobFile]) -> list[JobFile]:
    """Return the files. A name that comes twice is a mistake in the second one."""
    known: dict[str, FileJob] = {}
    return [_without_clash(file, known) for file in files]


def _without_clash(one: JobFile, known: dict[str, FileJob]) -> JobFile:
    """Return the file, refused if it names a known job; its jobs are known then."""
    clashes = tuple(_clash(file_job, known[file_job.job.name]) for file_job in one.jobs if file_job.job.name in known)
    if clashes:
        return JobFile(one.file, (), (*one.mistakes, *clashes), one.warnings)
    known.update((file_job.job.name, file_job) for file_job in one.jobs)
    return one


def refused(path: Path, reason: str) -> JobFile:
    """Return the file as refused: it has one mistake and no jobs."""
    return JobFile(str(path), (), (Mistake(str(path), 1, 1, reason),))


def open_to_others(folder: Path) -> JobFile | None:
    """Return why a folder that every user may write to is refused, else None."""
    try:
        mode = folder.stat().st_mode
    except OSError as error:
        return refused(folder, f"cannot be read: {error.strerror or error}")
    return refused(folder, _others("folder", folder)) if _is_open(mode) else None


def read_bytes(path: Path) -> bytes | JobFile:
    """Return the content of the file. Its kind and rights are checked after it was opened, on what is read."""
    # Non-blocking: opening a pipe would wait for a writer.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return refused(path, "is no plain file")
        if _is_open(found.st_mode):
            return refused(path, _others("file", path))
        return _read(handle, found.st_size)
    finally:
        os.close(handle)


def _read(handle: int, expected: int) -> bytes:
    """Return the content, or a little more than the limit. The buffer has the file's size: a large one is slow."""
    raw = os.read(handle, min(expected, LARGEST_FILE) + 1)
    while len(raw) <= LARGEST_FILE and (more := os.read(handle, 4096)):
        raw += more
    return raw


def _is_open(mode: int) -> bool:
    return os.name == "posix" and bool(mode & stat.S_IWOTH)


def _others(what: str, path: Path) -> str:
    return f"everybody may write to this {what}, and what it says is run: chmod o-w '{shown(str(path), 500)}'"


def _clash(second: FileJob, first: FileJob) -> Mistake:
    where = f"{shown(first.file, 500)}:{first.place.line}"
    said = f"job '{second.job.name}' stands in {where} already: give one of them another name"
    return Mistake(second.file, second.place.line, second.place.column, said)


class _JobFile:
    """One file of a folder: its latest content, and the version of it that is in force."""

    __slots__ = ("beside", "digest", "good", "in_force", "is_fresh", "latest", "mistakes", "packed", "stamp")

    def __init__(self, latest: JobFile, stamp: object, digest: bytes, is_fresh: bool) -> None:
        self.latest, self.stamp, self.digest, self.is_fresh = latest, stamp, digest, is_fresh
        self.beside = _stamps(latest)
        self.in_force: JobFile | None = None
        self.mistakes: tuple[Mistake, ...] = ()
        # The texts, compressed: as it is now, and as it was when it was last good.
        self.packed = self.good = b""


class Folder:
    """The jobs of a folder as it was last loaded."""

    def __init__(self, path: Path | str, *, owner: str = FILE) -> None:
        self.path, self.owner = Path(path), owner
        self._files: dict[Path, _JobFile] = {}
        self._jobs: dict[str, FileJob] = {}
        self._closed: JobFile | None = None
        self._is_open = cache(open_to_others)

    @property
    def jobs(self) -> Mapping[str, FileJob]:
        """Every job in force, by name."""
        return self._jobs

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """The mistakes in the folder. The last good version of a file with mistakes stays in force."""
        own = () if self._closed is None else self._closed.mistakes
        return (*own, *(mistake for file in self._files.values() for mistake in file.mistakes))

    @property
    def stale(self) -> Mapping[str, str]:
        """The jobs that go on with the last good version of their file, each with that file."""
        broken = [file for file in self._files.values() if file.mistakes and file.in_force is not None]
        return {file_job.job.name: file_job.file for file in broken if file.in_force for file_job in file.in_force.jobs}

    @property
    def files(self) -> list[FileState]:
        """Every file of the folder, by its path."""
        return [_state(path, file) for path, file in self._files.items()]

    @property
    def file_count(self) -> int:
        """The number of job files in the folder."""
        return len(self._files)

    @property
    def warnings(self) -> tuple[Mistake, ...]:
        """Warnings: things that are allowed but rarely meant."""
        return tuple(warning for file in self._files.values() for warning in file.latest.warnings)

    @property
    def is_whole(self) -> bool:
        """Whether a job that is not listed is certainly removed: every file was read at least once."""
        return self._closed is None and all(file.in_force is not None for file in self._files.values())

    def load(self) -> list[SourceEvent]:
        """Read the files that changed since the last time, and return which jobs that changed.

        The whole folder is looked at each time, so that a lost event of the file system makes no difference.
        """
        self._closed = _unusable(self.path)
        if self._closed is not None:
            return []
        self._is_open = cache(open_to_others)
        self._files = {path: self._file(path) for path in job_files([self.path])}
        return self._events(self._settled())

    def _file(self, path: Path) -> _JobFile:
        known, stamp = self._files.get(path), _stamp(path)
        if known is not None and known.latest.beside and known.beside != _stamps(known.latest):
            known.digest = b""
        # A file that was refused unread is tried every time: its rights or its folder's may have changed.
        if known is not None and known.stamp == stamp and known.digest and not known.is_fresh:
            return known
        begun = time_ns()
        closed = self._is_open(path.parent)
        try:
            raw = closed or read_bytes(path)
        except OSError as error:
            raw = refused(path, f"cannot be read: {error.strerror or error}")
        digest = b"" if isinstance(raw, JobFile) else blake2b(raw).digest()
        is_fresh = stamp is None or begun - stamp[0] < _FRESH_NANOSECONDS
        if known is not None and digest and known.digest == digest:
            known.stamp, known.is_fresh = stamp, is_fresh
            return known
        latest = raw if isinstance(raw, JobFile) else read_jobs(raw, str(path), owner=self.owner)
        found = _JobFile(latest, stamp, digest, is_fresh)
        found.packed = b"" if isinstance(raw, JobFile) else compress(raw)
        found.in_force, found.good = (None, b"") if known is None else (known.in_force, known.good)
        return found

    def _settled(self) -> dict[str, FileJob]:
        """Decide which version of each file is in force. Unchanged files keep their names; then files go by name."""
        taken: dict[str, FileJob] = {}
        files = self._files.values()
        for file in files:
            if file.latest is file.in_force:
                taken.update((file_job.job.name, file_job) for file_job in file.latest.jobs)
        for file in files:
            if file.latest is not file.in_force:
                self._accept(file, taken)
        return taken if self.is_whole else {**self._jobs, **taken}

    def _accept(self, file: _JobFile, taken: dict[str, FileJob]) -> None:
        clashes = [
            _clash(file_job, taken[file_job.job.name]) for file_job in file.latest.jobs if file_job.job.name in taken
        ]
        file.mistakes = (*file.latest.mistakes, *clashes)
        if not file.mistakes:
            file.in_force, file.good = file.latest, file.packed
        for file_job in file.in_force.jobs if file.in_force is not None else ():
            taken.setdefault(file_job.job.name, file_job)

    def _events(self, now: dict[str, FileJob]) -> list[SourceEvent]:
        before, self._jobs = self._jobs, now
        gone = [SourceEvent(SourceEventKind.DELETED, name) for name in before if name not in self._jobs]
        come = [
            SourceEvent(SourceEventKind.UPDATED if name in before else SourceEventKind.ADDED, name, job)
            for name, job in self._jobs.items()
            if name not in before or _differs(before[name], job)
        ]
        return [*gone, *come]


def _state(path: Path, file: _JobFile) -> FileState:
    texts = [decompress(packed).decode("utf-8", "replace") if packed else "" for packed in (file.packed, file.good)]
    stamp = _stamp(path)
    changed_at = None if stamp is None else _EPOCH + timedelta(microseconds=stamp[0] // 1000)
    jobs = () if file.in_force is None else file.in_force.jobs
    return FileState(path, jobs, file.mistakes, file.latest.warnings, changed_at, *texts)


def _differs(one: FileJob, other: FileJob) -> bool:
    """Tell whether the definitions differ; the file and the line do not matter."""
    return one.job != other.job or one.suspended != other.suspended


def _unusable(folder: Path) -> JobFile | None:
    if not folder.is_dir():
        return refused(folder, "there is no such folder: jobs that came from it stay as they are until it is back")
    return open_to_others(folder)


def _stamps(file: JobFile) -> tuple[object, ...]:
    """Return the stamps of the files that this file is read with."""
    return tuple(map(_stamp, file.beside))


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Return values that differ after a change of the file, or None if it cannot be read."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode
