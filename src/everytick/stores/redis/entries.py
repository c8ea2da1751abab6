"""The text of what one commit writes: a line for each command, its words between tabs.

`HSET path field text …`, `HDEL path field …` and `DEL path` change rows, and stand in the log for the copies of others.
`ZADD`, `ZREM`, `SADD` and `SREM` change the sets by which rows are found, and are not kept. No word has a tab or a line
break in it: paths are made of ids, and texts are JSON, which writes control characters as escapes.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias, cast

Changes: TypeAlias = dict[str, dict[str, str | None] | None]
"""By path, the fields of a hash that are written, None for each that is deleted; None where the whole hash is."""

Member: TypeAlias = tuple[str, str, str] | tuple[str, str, str, str]
"""A change of a set: the command, the path of the set, the score for ZADD, and the member."""

_MOST_WORDS = 1_000
"""Most words of one line. Lua passes the words of a command on its stack, which has room for 8,000."""


def entry_of(changes: Changes) -> str:
    """Return the lines that make these changes."""
    return "\n".join(_lines_of(changes))


def _lines_of(changes: Changes) -> Iterator[str]:
    for path, fields in changes.items():
        if fields is None:
            yield f"DEL\t{path}"
            continue
        gone = [field for field, text in fields.items() if text is None]
        written = ((field, text) for field, text in fields.items() if text is not None) if gone else fields.items()
        yield from _lines("HDEL", path, gone)
        # What is None was left out above.
        yield from _lines("HSET", path, cast("list[str]", list(chain.from_iterable(written))))


def _lines(command: str, path: str, words: Sequence[str]) -> Iterator[str]:
    for at in range(0, len(words), _MOST_WORDS):
        yield "\t".join((command, path, *words[at : at + _MOST_WORDS]))


def changes_in(entry: str) -> Changes:
    """Return the changes that the lines of an entry make."""
    changes: Changes = {}
    for line in entry.split("\n") if entry else ():
        command, path, *words = line.split("\t")
        if command == "DEL":
            changes[path] = None
            continue
        fields = changes.setdefault(path, {})
        assert fields is not None, f"{path} is deleted and written in one entry"
        fields.update(dict.fromkeys(words) if command == "HDEL" else zip(words[::2], words[1::2], strict=True))
    return changes


def member_lines(members: Iterable[Member]) -> str:
    """Return the lines that make these changes of sets, one for all of a set."""
    words: dict[tuple[str, str], list[str]] = {}
    for command, path, *member in members:
        words.setdefault((command, path), []).extend(member)
    return "\n".join(line for (command, path), given in words.items() for line in _lines(command, path, given))
