"""Child processes in sessions of their own: their output is read, and their whole process group can be ended."""

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from logging import getLogger

from everytick.runners.guard import Guard

_log = getLogger("everytick.runners.children")

_CHUNK_BYTES = 64 * 1024
"""How much output is read at once: as much as a pipe holds."""

_KILLED_SECONDS = 5.0
"""How long to wait for the end of a killed process while the event loop goes on."""

_KILLED_BLOCKING_SECONDS = 0.5
"""The same while the event loop is blocked."""

_DRAINED_CHUNKS = 64
"""Most chunks that are read after the end: another process may write to the same pipe without end."""


class Child:
    """One process and its descendants. `keep` gets all that they write to standard output and standard error."""

    def __init__(self, process: "subprocess.Popen[bytes]", output: int, keep: Callable[[bytes], None], guard: Guard):
        self._process, self._output, self._guard = process, output, guard
        self._loop = asyncio.get_running_loop()
        self._handle = -1
        self.keep = keep
        self.group = process.pid
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self.silent: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(output, False)
        self._loop.add_reader(output, self._read)
        self._watch_exit()

    @classmethod
    def start(
        cls,
        arguments: Sequence[str],
        keep: Callable[[bytes], None],
        guard: Guard,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        pass_fds: Sequence[int] = (),
        stdin: int = subprocess.DEVNULL,
    ) -> "Child":
        """Start the process in its own session. It reads from `stdin`, and writes to one pipe."""
        output, theirs = os.pipe()
        try:
            process = subprocess.Popen(
                arguments,
                stdin=stdin,
                stdout=theirs,
                stderr=theirs,
                env=env,
                cwd=cwd,
                pass_fds=tuple(pass_fds),
                start_new_session=True,
            )
        except BaseException:
            os.close(output)
            raise
        finally:
            os.close(theirs)
        guard.watch(process.pid)
        return cls(process, output, keep, guard)

    async def stop(self, grace: float) -> None:
        """Ask the group to end, wait for the grace period in seconds, and kill the processes that are left.

        The group has ended when the process has ended and no process holds its output open.
        """
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait((self.exited, self.silent), timeout=grace)
            self._signal(signal.SIGKILL)
            await asyncio.wait((self.exited,), timeout=_KILLED_SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the whole group now."""
        if self._output < 0:
            return
        self._signal(signal.SIGKILL)
        try:
            self._ended(self._process.wait(_KILLED_BLOCKING_SECONDS))
        except subprocess.TimeoutExpired:
            # The kernel ends it once the disk or network share that it waits for answers.
            _log.warning(
                "process %d was killed and hangs in the kernel: it ends when that call returns; the node goes on",
                self.group,
            )
        self.close()

    def drain(self) -> None:
        """Read the output that is in the pipe now."""
        for _ in range(_DRAINED_CHUNKS):
            if self.silent.done() or not self._read():
                return

    def close(self) -> None:
        """Read the rest of the output and close the pipe. Other processes of the group may run on, unread."""
        if self._output < 0:
            return
        self.drain()
        self._loop.remove_reader(self._output)
        os.close(self._output)
        self._output = -1
        if self._handle >= 0:
            self._close_handle()
        if not self.silent.done():
            self.silent.set_result(None)
        self._guard.release(self.group)

    def _read(self) -> bool:
        """Hand on one chunk; say whether there may be more."""
        try:
            data = os.read(self._output, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self.keep(data)
            return True
        self._loop.remove_reader(self._output)
        if not self.silent.done():
            self.silent.set_result(None)
        return False

    def _signal(self, number: signal.Signals) -> None:
        # The leader may be gone and the others not; where all are gone there is nothing to do.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, number)

    def _watch_exit(self) -> None:
        """Get the exit code through a pidfd, or through a thread if the kernel has none."""
        try:
            self._handle = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):
            threading.Thread(target=self._wait, name=f"everytick child {self.group}", daemon=True).start()
            return
        self._loop.add_reader(self._handle, self._reap)

    def _reap(self) -> None:
        self._close_handle()
        self._ended(self._process.wait())

    def _close_handle(self) -> None:
        self._loop.remove_reader(self._handle)
        os.close(self._handle)
        self._handle = -1

    def _wait(self) -> None:
        code = self._process.wait()
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._ended, code)

    def _ended(self, code: int) -> None:
        if not self.exited.done():
            self.exited.set_result(code)


def ending(code: int) -> str:
    """Return in words how a process ended."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
