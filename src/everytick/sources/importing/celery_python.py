"""`beat_schedule` in Python source: found and read with `ast`; nothing of the file is run."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, Any

from everytick.errors import shown
from everytick.sources.importing.found import Unreadable, Unsayable
from everytick.sources.importing.literals import Entry, Place, literal, source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TABLES = ("beat_schedule", "CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE")
_ZONES = ("timezone", "CELERY_TIMEZONE")
_UTC = ("enable_utc", "CELERY_ENABLE_UTC")


class Beat:
    """What was found: the entries, the settings that matter to time, and what was not understood."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.left: list[Place] = []
        self.timezone: str | None = None
        self.is_local = 0
        """The line that says so, or 0."""


def read_python(text: str, file: str) -> Beat:
    """Return the entries of every beat_schedule that the source writes out."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise Unreadable(file, line, f"is neither JSON nor Python: {shown(str(error))}") from None
    reader = _Source(tree)
    reader.read()
    if not reader.has_table:
        why = "there is no beat_schedule in it: name the file that sets it"
        raise Unreadable(file, 1, why)
    return reader.beat


class _Source:
    """One source, walked once."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree, self.beat, self.has_table = tree, Beat(), False
        self._known = _constants(tree)

    def read(self) -> None:
        for node in ast.walk(self._tree):
            match node:
                case ast.Assign(targets=[target], value=given):
                    self._assigned(target, given)
                case ast.AnnAssign(target=target, value=ast.expr() as given):
                    self._assigned(target, given)
                case ast.Call(func=ast.Attribute(attr="update", value=owner), args=args, keywords=keywords):
                    self._updated(owner, args, keywords)
                case ast.Call(func=ast.Attribute(attr="add_periodic_task")):
                    why = "not imported: the task's name is known only when the file is run; write it in beat_schedule"
                    self.beat.left.append(Place(node.lineno, "add_periodic_task", why))
                    self.has_table = True
                case ast.Dict(keys=keys, values=values):
                    self._nested(keys, values)

    def _assigned(self, target: ast.expr, given: ast.expr) -> None:
        if isinstance(target, ast.Subscript) and _last_name(target.value) in _TABLES:
            self.has_table = True
            self._entry(target.slice, given)
        elif (name := _last_name(target)) is not None:
            self._setting(name, given)

    def _setting(self, name: str, given: ast.expr) -> None:
        if name in _TABLES:
            self.has_table = True
            self._entries(given)
        elif name in _ZONES:
            self._zone(name, given)
        elif name in _UTC and isinstance(given, ast.Constant) and given.value is False:
            self.beat.is_local = given.lineno

    def _zone(self, name: str, given: ast.expr) -> None:
        try:
            found = literal(given, self._known)
        except Unsayable as reason:
            found = None
            self.beat.left.append(Place(given.lineno, name, f"{reason}: give --timezone, for here it is UTC"))
        if isinstance(found, str):
            self.beat.timezone = found

    def _updated(self, owner: ast.expr, args: list[ast.expr], keywords: list[ast.keyword]) -> None:
        """`conf.update(beat_schedule={…})` and `beat_schedule.update({…})`."""
        if _last_name(owner) in _TABLES and args:
            self._entries(args[0])
        for each in keywords:
            if each.arg is not None and _last_name(owner) == "conf":
                self._setting(each.arg, each.value)

    def _nested(self, keys: list[ast.expr | None], values: list[ast.expr]) -> None:
        """A table of settings that holds the schedule as one of them."""
        named = [(key.value, each) for key, each in zip(keys, values, strict=True) if isinstance(key, ast.Constant)]
        if any(name in _TABLES for name, _ in named):
            for name, each in named:
                if isinstance(name, str):
                    self._setting(name, each)

    def _entries(self, given: ast.expr) -> None:
        table = self._known.get(given.id, given) if isinstance(given, ast.Name) else given
        if not isinstance(table, ast.Dict):
            self._leave(given, "beat_schedule", f"'{source(given)}' is known only when the file is run")
            return
        for key, each in zip(table.keys, table.values, strict=True):
            if key is None:
                self._leave(each, f"**{source(each)}", "it is known only when the file is run")
            else:
                self._entry(key, each)

    def _entry(self, key: ast.expr, given: ast.expr) -> None:
        try:
            name = literal(key, self._known)
            found: Any = literal(given, self._known)
        except Unsayable as reason:
            self._leave(key, f"entry {source(key)}", str(reason))
            return
        if isinstance(name, str) and isinstance(found, dict):
            self.beat.entries.append(Entry(name, key.lineno, found))
        else:
            self._leave(key, f"entry {source(key)}", "it is no table with a name")

    def _leave(self, node: ast.expr, what: str, why: str) -> None:
        self.beat.left.append(Place(node.lineno, what, f"not imported: {why}"))


def _constants(tree: ast.Module) -> Mapping[str, ast.expr]:
    """The names that the source sets once, on its outermost level: they mean the same wherever they stand."""
    found = dict(_named(tree))
    times = Counter(
        each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    )
    return {name: given for name, given in found.items() if times[name] == 1}


def _named(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=given):
                yield name, given
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as given):
                yield name, given


def _last_name(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return None
