"""Presence: a locked file that tells everybody on this host whether the process of an instance lives.

The system frees the lock when the process ends, however it ends. So the death of an instance
is known at once on its own host (C-43); on every other host, and where there are no such
locks, it is known by its silence.
"""

import asyncio
import logging
import os
import socket
import stat
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from everytick.stores.addresses import AnyStore

try:
    import fcntl
except ImportError:  # a system without this kind of lock
    fcntl = None  # type: ignore[assignment]

_log = logging.getLogger("everytick.declarative")

_KEPT = 86_400.0
"""Seconds after which the file of an instance that died is deleted: a day later its silence says the same."""


class Presence:
    """The sign of life of one instance, while it is held."""

    def __init__(self, file: int | None, path: Path | None) -> None:
        self._file, self._path = file, path
        self._loop = asyncio.get_running_loop()

    @property
    def is_over(self) -> bool:
        """Whether the instance is gone though its process lives: its event loop was closed."""
        return self._loop.is_closed()

    def let_go(self, *, forget: bool) -> None:
        """Free the lock; with `forget` the file goes too, for there is nothing left to find out."""
        if self._path is not None and forget:
            with suppress(OSError):
                self._path.unlink()
                self._path.parent.rmdir()
        if self._file is not None:
            os.close(self._file)
            self._file = None


_here: dict[str, Presence | None] = {}
"""The instances of this process; None stands for one that died and has not taken the process with it."""


def folder_of(store: AnyStore) -> Path | None:
    """Return where instances on this store leave their files; None where all of them share one process."""
    if store.address.is_in_memory:
        return None
    if store.address.file is not None:
        return Path(f"{store.address.file}-instances")
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir()) / f"everytick-{user}"


def show(folder: Path | None, instance: str) -> None:
    """Let everybody on this host know from now on that the instance lives."""
    made = None if folder is None or fcntl is None else _locked(folder, instance)
    _here[instance] = Presence(*(made or (None, None)))


def withdraw(instance: str) -> None:
    """The instance has stopped: nothing is left of its file."""
    held = _here.pop(instance, None)
    if held is not None:
        held.let_go(forget=True)


def die(instance: str) -> None:
    """Free the lock as the end of the process would: for tests, in which an instance dies alone."""
    held, _here[instance] = _here.get(instance), None
    if held is not None:
        held.let_go(forget=False)


def is_gone(folder: Path | None, instance: str) -> bool | None:
    """Whether the instance is dead; None where that cannot be found out on this host."""
    if instance in _here:
        held = _here[instance]
        return held is None or held.is_over
    if folder is None or fcntl is None:
        return None
    try:
        file = os.open(_path(folder, instance), os.O_RDONLY)
    except OSError:
        return None
    try:
        # Shared: several may look at the same time, and none of them must take another for the instance.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    else:
        return True if os.read(file, 200) == _host() else None
    finally:
        os.close(file)


def _locked(folder: Path, instance: str) -> tuple[int, Path] | None:
    """Make the file of the instance, which appears under its name once it is locked."""
    path = _path(folder, instance)
    draft = path.with_suffix(".new")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if not _is_ours(folder):
            raise PermissionError(f"{folder} belongs to somebody else")
        _sweep(folder)
        file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(file, _host())
            draft.replace(path)
        except BaseException:
            os.close(file)
            raise
    except OSError as error:
        _log.info("no lock can be held in %s (%s): other instances learn of the end of this one later", folder, error)
        return None
    return file, path


def _path(folder: Path, instance: str) -> Path:
    return folder / f"{instance}.lock"


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can have put files there: the folder for temporary files is everybody's."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and (not hasattr(os, "getuid") or found.st_uid in (os.getuid(), 0))


def _sweep(folder: Path) -> None:
    for path in folder.glob("*.lock"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT and is_gone(folder, path.stem) is not False:
                path.unlink()


@cache
def _host() -> bytes:
    """Return what no other host writes: a shared folder may hold files of many, whose locks may not be seen here."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return socket.gethostname().encode()


def _leave_to_parent() -> None:
    """Close the copies of a child that was forked: it would hold the locks beyond its parent's death."""
    for held in _here.values():
        if held is not None:
            held.let_go(forget=False)
    _here.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
