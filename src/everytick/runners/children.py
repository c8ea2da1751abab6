"""Children: processes with a session of their own, whose output is read and whose whole group can be ended."""

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

_CHUNK = 64 * 1024
_DYING = 5.0
_DYING_NOW = 0.5
"""So many seconds a killed process has to be gone, where others can go on meanwhile and where they cannot."""

_DRAINED = 64
"""So many chunks are read after the end at most: somebody else may still write to the same pipe, for ever."""


class Child:
    """One process and what it starts; `keep` is given all they write to their outputs."""

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
    ) -> "Child":
        """Start the process in a session of its own, with nothing to read and one pipe for what it writes."""
        output, theirs = os.pipe()
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
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
        """Ask the group to end, give it the grace period, and kill what is left of it.

        It is over when the process has ended and everybody has let go of its output.
        """
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait((self.exited, self.silent), timeout=grace)
            self._signal(signal.SIGKILL)
            await asyncio.wait((self.exited,), timeout=_DYING)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the whole group, now."""
        if self._output < 0:
            return
        self._signal(signal.SIGKILL)
        try:
            self._ended(self._process.wait(_DYING_NOW))
        except subprocess.TimeoutExpired:
            # The kernel holds it, for as long as some disk or network share does not answer.
            _log.warning("process %d was killed and does not end: it waits inside the kernel", self.group)
        self.close()

    def drain(self) -> None:
        """Read what is in the pipe by now."""
        for _ in range(_DRAINED):
            if self.silent.done() or not self._read():
                return

    def close(self) -> None:
        """Read what is left, and let go of the process; others of its group may go on, unheard."""
        if self._output < 0:
            return
        self.drain()
        self._loop.remove_reader(self._output)
        os.close(self._output)
        self._output = -1
        if self._handle >= 0:
            self._let_go_of_handle()
        if not self.silent.done():
            self.silent.set_result(None)
        self._guard.release(self.group)

    def _read(self) -> bool:
        """Hand on one chunk; say whether there may be more."""
        try:
            data = os.read(self._output, _CHUNK)
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
        """Learn of the end from the kernel, or from a thread where it offers no such thing."""
        try:
            self._handle = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):
            threading.Thread(target=self._wait, name=f"everytick child {self.group}", daemon=True).start()
            return
        self._loop.add_reader(self._handle, self._reap)

    def _reap(self) -> None:
        self._let_go_of_handle()
        self._ended(self._process.wait())

    def _let_go_of_handle(self) -> None:
        self._loop.remove_reader(self._handle)
        os.close(self._handle)
        self._handle = -1

    def _wait(self) -> None:
        code = self._process.wait()
        with suppress(RuntimeError):  # the loop is closed, and nobody is left to know
            self._loop.call_soon_threadsafe(self._ended, code)

    def _ended(self, code: int) -> None:
        if not self.exited.done():
            self.exited.set_result(code)


def ending(code: int) -> str:
    """Say how a process ended."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
