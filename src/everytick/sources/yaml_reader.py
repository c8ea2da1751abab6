"""Reads YAML with the values of JSON: text, numbers, true, false, null, lists and tables, each with its place.

PyYAML's C parser tells what stands in the text; what it means is decided here, by the core
schema of YAML 1.2: `NO`, `on`, `12:30` and `2026-01-31` stay text. Tags are refused, so are keys
that come twice, control characters, and whatever is larger or deeper than any file of jobs: a
few lines of anchors can stand for more values than a machine can hold.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from yaml import CBaseLoader, YAMLError
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from everytick.domain.values import value
from everytick.errors import shown
from everytick.sources.yaml_slips import known_slip

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LARGEST_FILE = 2 * 1024 * 1024
"""The most bytes of one file."""

MOST_NODES = 100_000
"""The most values in one file; the values of an alias count each time."""

DEEPEST = 40
"""The most levels of lists and tables inside each other."""

MOST_MISTAKES = 100
"""Reading stops after this many mistakes: it is probably not a file of jobs."""

PathStep: TypeAlias = str | int
# What the parser gives has no types.
YamlEvent: TypeAlias = Any
YamlMark: TypeAlias = Any

# Tabs and line ends are layout; of the rest, what YAML itself calls printable.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_SWITCH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
# A leading zero is octal in YAML 1.1 and not a number in 1.2: the value stays text.
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_BASED = re.compile(r"0o[0-7]{1,20}|0x[0-9a-fA-F]{1,15}")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]{1,300}|(?:0|[1-9][0-9]{0,300})(?:\.[0-9]{0,300})?)(?:[eE][-+]?[0-9]{1,3})?")
_ENDLESS = re.compile(r"([-+]?)\.(inf|Inf|INF|nan|NaN|NAN)")
_BEGIN_NUMBERS = frozenset("0123456789-+.")
# How far the parser comes in `* * * * *` or `*/5 * * * *` without quotes.
_QUOTED = "while scanning a quoted scalar"
_LAYOUT = (StreamStartEvent, StreamEndEvent, DocumentEndEvent)


class Position(NamedTuple):
    """A line and a column, counted from one as in editors."""

    line: int
    column: int


@value
class Mistake:
    """A mistake in a file, its place, and what to do about it. A warning does not invalidate the file."""

    file: str
    line: int
    column: int
    message: str
    is_warning: bool = False

    def __str__(self) -> str:
        word = "warning: " if self.is_warning else ""
        return f"{shown(self.file, 1000)}:{self.line}:{self.column}: {word}{self.message}"


class Several(ValueError):
    """Mistakes inside one value: the path in it, and the mistake."""

    def __init__(self, found: list[tuple[tuple[PathStep, ...], str]]) -> None:
        super().__init__("; ".join(said for _, said in found))
        self.found = found


# Most values hold no others; those that do have tables of their own.
_NOTHING: dict[Any, Any] = {}


class YamlNode:
    """A value, its place, and the nodes inside it. `size` counts them all."""

    __slots__ = ("data", "inside", "keys", "mark", "size")

    def __init__(self, mark: YamlMark) -> None:
        self.data: Any = None
        self.mark, self.size = mark, 1
        self.inside: dict[PathStep, YamlNode] = _NOTHING
        self.keys: dict[str, YamlMark] = _NOTHING

    def place_of(self, path: Sequence[PathStep], *, key: bool = False) -> Position:
        """Return the place of the value at a path, or of the nearest value around it; with `key`, that of its key."""
        node = self
        for position, step in enumerate(path):
            if key and position == len(path) - 1 and step in node.keys:
                return _place(node.keys[str(step)])
            if step not in node.inside:
                break
            node = node.inside[step]
        return _place(node.mark)


@value
class Document:
    """The content of a file: its root, or None if it could not be read to its end, and its mistakes."""

    root: YamlNode | None
    mistakes: tuple[Mistake, ...]


def read_yaml(raw: bytes, file: str) -> Document:
    """Return the one document of a file. It raises nothing."""
    reader = _YamlReader(file)
    try:
        root = reader.read(raw)
    except _Refused as refused:
        reader.note(refused.place, refused.reason)
        root = None
    return Document(root, tuple(reader.mistakes))


class _Refused(Exception):
    """Reading cannot go on."""

    def __init__(self, place: Position, reason: str) -> None:
        super().__init__(reason)
        self.place, self.reason = place, reason


class _YamlReader:
    """Reads one file."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.mistakes: list[Mistake] = []
        self._anchors: dict[str, YamlNode | None] = {}
        self._left = MOST_NODES
        self._next: Callable[[], YamlEvent]

    def note(self, place: Position, reason: str) -> None:
        """Add a mistake, and read on unless there are too many."""
        self.mistakes.append(Mistake(self._file, place.line, place.column, reason))
        if len(self.mistakes) == MOST_MISTAKES:
            raise _Refused(place, f"{MOST_MISTAKES} mistakes so far: the rest is not read")

    def read(self, raw: bytes) -> YamlNode:
        """Return the root of the one document."""
        text = _text(raw)
        parser: Any = CBaseLoader(text)
        self._next = parser.get_event
        try:
            root = self._document()
        except YAMLError as error:
            raise _unparsed(error, text) from None
        if root is None:
            raise _Refused(Position(1, 1), "the file is empty")
        return root

    def _document(self) -> YamlNode | None:
        root = None
        while (event := self._next()) is not None:
            if isinstance(event, DocumentStartEvent):
                if root is not None:
                    reason = "a second document begins: write it into a file of its own"
                    raise _Refused(_place(event.start_mark), reason)
                _refuse_directives(event)
            elif not isinstance(event, _LAYOUT):
                root = self._node(event, 0)
        return root

    def _node(self, event: YamlEvent, depth: int) -> YamlNode:
        kind, anchor = event.__class__, event.anchor
        if kind is AliasEvent:
            return self._known(event)
        _refuse_tag(event)
        if depth > DEEPEST:
            reason = f"values stand in each other more than {DEEPEST} deep: write them flatter"
            raise _Refused(_place(event.start_mark), reason)
        if anchor is not None:
            # None until the value is complete: a value that contains itself would have no end.
            self._anchors[anchor] = None
        node = YamlNode(event.start_mark)
        if kind is ScalarEvent:
            node.data = self._scalar(event)
        elif kind is SequenceStartEvent:
            self._fill_list(node, depth)
        else:
            self._fill_table(node, depth)
        self._spend(1, event)
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _plain(self, event: YamlEvent, depth: int) -> YamlNode | None:
        """Return the node of a plain value, which most are. None if it has an anchor, a tag or values inside."""
        if event.__class__ is not ScalarEvent or event.tag is not None or event.anchor is not None:
            return None
        if depth >= DEEPEST or self._left < 1:
            return None
        self._left -= 1
        node = YamlNode(event.start_mark)
        node.data = self._scalar(event)
        return node

    def _known(self, event: YamlEvent) -> YamlNode:
        anchor, name = event.anchor, shown(event.anchor, 60)
        if anchor not in self._anchors:
            raise _Refused(_place(event.start_mark), f"*{name} stands for nothing: no &{name} comes before it")
        node = self._anchors[anchor]
        if node is None:
            reason = f"*{name} stands inside of what it stands for, and would have no end"
            raise _Refused(_place(event.start_mark), reason)
        self._spend(node.size, event)
        return node

    def _spend(self, nodes: int, event: YamlEvent) -> None:
        self._left -= nodes
        if self._left < 0:
            raise _Refused(_place(event.start_mark), f"the file holds more than {MOST_NODES:,} values: split it")

    def _fill_list(self, node: YamlNode, depth: int) -> None:
        data: list[Any] = []
        node.inside = {}
        while (event := self._next()).__class__ is not SequenceEndEvent:
            one = self._plain(event, depth) or self._node(event, depth + 1)
            node.inside[len(data)] = one
            data.append(one.data)
            node.size += one.size
        node.data = data

    def _fill_table(self, node: YamlNode, depth: int) -> None:
        data: dict[str, Any] = {}
        node.inside, node.keys = {}, {}
        while (event := self._next()).__class__ is not MappingEndEvent:
            key, following = self._key(event), self._next()
            one = self._plain(following, depth) or self._node(following, depth + 1)
            node.size += one.size
            if key in data:
                first = _place(node.keys[key]).line
                self.note(
                    _place(event.start_mark), f"the key '{shown(key, 60)}' stands here twice, first in line {first}"
                )
            else:
                node.keys[key], node.inside[key], data[key] = event.start_mark, one, one.data
        node.data = data

    def _key(self, event: YamlEvent) -> str:
        """Return the key as text, also if it looks like another type: `on:` and `404:`."""
        if event.__class__ is not ScalarEvent:
            raise _Refused(_place(event.start_mark), "a key must be plain text, not a list, a table or an alias")
        _refuse_tag(event)
        text: str = event.value
        if text == "<<" and event.implicit[0]:
            reason = "<< is not YAML 1.2: put what jobs have in common under defaults:, or write it out"
            self.note(_place(event.start_mark), reason)
        self._refuse_control(text, event)
        return text

    def _scalar(self, event: YamlEvent) -> Any:
        text: str = event.value
        # Only a plain scalar may be anything but text.
        if event.implicit[0]:
            if text in _NULL:
                return None
            if text in _SWITCH:
                return _SWITCH[text]
            if text[0] in _BEGIN_NUMBERS:
                return _number(text)
        self._refuse_control(text, event)
        return text

    def _refuse_control(self, text: str, event: YamlEvent) -> None:
        if not text.isprintable() and (found := _CONTROL.search(text)):
            reason = f"'{shown(text, 60)}' holds the control character U+{ord(found.group()):04X}: remove it"
            self.note(_place(event.start_mark), reason)


def _number(text: str) -> Any:
    if _WHOLE.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _NUMBER.fullmatch(text):
        return float(text)
    endless = _ENDLESS.fullmatch(text)
    return text if endless is None else float("".join(endless.groups()))


def _text(raw: bytes) -> str:
    if len(raw) > LARGEST_FILE:
        raise _Refused(Position(1, 1), f"the file has more than {LARGEST_FILE:,} bytes: split it")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8", "replace")
        raise _Refused(_at(before, len(before)), "this is not UTF-8: save the file as UTF-8") from None
    if found := _UNPRINTABLE.search(text):
        reason = f"the control character U+{ord(found.group()):04X} is refused: remove it"
        raise _Refused(_at(text, found.start()), reason)
    return text


def _at(text: str, position: int) -> Position:
    """Return the place of a character."""
    before = text[:position]
    return Position(before.count("\n") + 1, position - before.rfind("\n"))


def _unparsed(error: Any, text: str) -> _Refused:
    context, problem = getattr(error, "context", None), getattr(error, "problem", None) or str(error)
    if context == _QUOTED:
        return _Refused(_place(error.context_mark), "the quote that begins here has no end")
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    place = Position(1, 1) if mark is None else _place(mark)
    known = known_slip(text, place.line, place.column, problem)
    return _Refused(place, known or f"not YAML: {shown(problem)}{f' ({shown(context)})' if context else ''}")


def _refuse_directives(event: YamlEvent) -> None:
    if event.tags:
        raise _Refused(_place(event.start_mark), "%TAG is refused: files hold plain data")
    if event.version not in (None, (1, 2)):
        raise _Refused(_place(event.start_mark), "files are read as YAML 1.2: leave out the %YAML line")


def _refuse_tag(event: YamlEvent) -> None:
    if event.tag is not None:
        reason = f"the tag '{shown(event.tag, 60)}' is refused: files hold plain data, write the value"
        raise _Refused(_place(event.start_mark), reason)


def _place(mark: YamlMark) -> Position:
    return Position(mark.line + 1, mark.column + 1)
