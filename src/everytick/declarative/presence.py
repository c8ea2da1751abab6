"""Presence: a locked file that tells other processes on this host whether the process of an instance lives.

The operating system frees the lock when the process ends, by any cause. So the death of an instance is known at once
on its own host (C-43). On other hosts, and on systems without such locks, it is known by its silence.
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

_KEPT_SECONDS = 86_400.0
"""How long the file of a dead instance is kept. After a day its silence tells the same."""


class Presence:
    """The lock of one instance, while the instance lives."""

    def __init__(self, file: int | None, path: Path | None) -> None:
        self._file, self._path = file, path
        self._loop = asyncio.get_running_loop()

    @property
    def is_over(self) -> bool:
        """Whether the instance has ended though its process lives: its event loop was closed."""
        return self._loop.is_closed()

    def release(self, *, delete: bool) -> None:
        """Free the lock. With `delete`, delete its file too."""
        if self._path is not None and delete:
            with suppress(OSError):
                self._path.unlink()
                self._path.parent.rmdir()
        if self._file is not None:
            os.close(self._file)
            self._file = None


_here: dict[str, Presence | None] = {}
"""The instances of this process. None stands for one that died while the process lives."""


def folder_of(store: AnyStore) -> Path | None:
    """Return the folder of the lock files for this store. None if all instances share one process."""
    if store.address.is_in_memory:
        return None
    if store.address.file is not None:
        return Path(f"{store.address.file}-instances")
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir()) / f"everytick-{user}"


def show(folder: Path | None, instance: str) -> None:
    """Show other processes on this host from now on that the instance lives."""
    locked = None if folder is None or fcntl is None else _locked(folder, instance)
    _here[instance] = Presence(*(locked or (None, None)))


def withdraw(instance: str) -> None:
    """Free the lock of an instance that has stopped, and delete its file."""
    presence = _here.pop(instance, None)
    if presence is not None:
        presence.release(delete=True)


def die(instance: str) -> None:
    """Free the lock as the end of the process would. For tests, in which an instance dies and the process lives."""
    presence, _here[instance] = _here.get(instance), None
    if presence is not None:
        presence.release(delete=False)


def is_gone(folder: Path | None, instance: str) -> bool | None:
    """Whether the instance is dead. None if that cannot be known on this host."""
    if instance in _here:
        presence = _here[instance]
        return presence is None or presence.is_over
    if folder is None or fcntl is None:
        return None
    try:
        file = os.open(_path(folder, instance), os.O_RDONLY)
    except OSError:
        return None
    try:
        # A shared lock: several processes may check at the same time, and must not take each other for the instance.
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
    """Make the lock file of the instance. It gets its name after it is locked."""
    path = _path(folder, instance)
    draft = path.with_suffix(".new")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if not _is_ours(folder):
            raise PermissionError(f"{folder} belongs to another user")
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
        _log.info(
            "no lock file can be used in %s (%s): other instances notice the end of this one by its silence",
            folder,
            error,
        )
        return None
    return file, path


def _path(folder: Path, instance: str) -> Path:
    return folder / f"{instance}.lock"


def _is_ours(folder: Path) -> bool:
    """Whether the folder belongs to this user or to root: other users may write to the folder for temporary files."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and (not hasattr(os, "getuid") or status.st_uid in (os.getuid(), 0))


def _sweep(folder: Path) -> None:
    for path in folder.glob("*.lock"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT_SECONDS and is_gone(folder, path.stem) is not False:
                path.unlink()


@cache
def _host() -> bytes:
    """Return bytes that identify this boot of this host: the locks of other hosts' files may not be visible here."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return socket.gethostname().encode()


def _leave_to_parent() -> None:
    """Close the inherited files in a forked child: it would hold the locks after its parent's death."""
    for presence in _here.values():
        if presence is not None:
            presence.release(delete=False)
    _here.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
