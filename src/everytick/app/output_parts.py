"""The output of attempts, read by range from the files that nodes of this host keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.app.outputs import inside, log_folder
from everytick.app.store_access import StoreAccess
from everytick.domain.values import value

if TYPE_CHECKING:
    from pathlib import Path

    from everytick.domain.notes import Log
    from everytick.node.settings import NodeSettings
    from everytick.stores.base import Whole

READ_AT_ONCE = 64 * 1024
"""Most bytes of one answer. An attempt may have written ten megabytes."""


@value(frozen=True)
class OutputPart:
    """Bytes `start` to `end` of an output of `size` bytes. It begins and ends between lines, unless one is very long.

    `is_kept` says that the attempt has an output at all, `is_here` that its file is on this host, `node` where it is.
    """

    text: str = ""
    start: int = 0
    end: int = 0
    size: int = 0
    is_kept: bool = False
    is_here: bool = False
    node: str = ""


class OutputParts(StoreAccess):
    """The output of tasks, a part at a time."""

    settings: NodeSettings

    async def _output(
        self, whole: Whole, task: str, attempt: int, start: int | None = None, most_lines: int | None = None
    ) -> OutputPart:
        """Return a part of the output of an attempt from this byte on; without one, the end of it.

        It has 64 KB at most, and at most so many lines.
        """
        log = _log_of(whole, task, attempt)
        if log is None:
            return OutputPart()
        found = await self._output_file(log)
        if found is None:
            return OutputPart(is_kept=True, node=log.node)
        from asyncio import to_thread

        return await to_thread(_read, found, start, log.node, most_lines)

    async def _output_file(self, log: Log) -> Path | None:
        """Return the file of an output, None if it is not on this host or lies outside of the folder of logs."""
        folder = self.settings.log_folder or log_folder(await self._opened())
        found = None if folder is None else inside(folder, log.path)
        return found if found is not None and found.is_file() else None


def _log_of(whole: Whole, task: str, attempt: int) -> Log | None:
    return next((tried.log for name, tried in whole.attempts if name == task and tried.number == attempt), None)


def _read(path: Path, start: int | None, node: str, most_lines: int | None) -> OutputPart:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        begin = max(size - READ_AT_ONCE, 0) if start is None else min(max(start, 0), size)
        file.seek(begin)
        data = file.read(READ_AT_ONCE)
    if start is None:
        lines = data.splitlines(keepends=True)
        # The first line of the end is cut somewhere, unless the end is all there is.
        kept = b"".join((lines[1:] if begin else lines)[-(most_lines or len(lines)) :])
        begin, data = begin + len(data) - len(kept), kept
    else:
        data = _whole_lines(data, most_lines, is_end=begin + len(data) >= size)
    return OutputPart(data.decode("utf-8", "replace"), begin, begin + len(data), size, True, True, node)


def _whole_lines(data: bytes, most_lines: int | None, *, is_end: bool) -> bytes:
    """Return the lines that are whole. One that is still being written waits, unless nothing else is there."""
    if not is_end:
        data = data[: data.rfind(b"\n") + 1] or data
    lines = data.splitlines(keepends=True)
    return data if most_lines is None or len(lines) <= most_lines else b"".join(lines[:most_lines])
