"""`beat_schedule` in Python source: found and read with `ast`; nothing of the file is run."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from everytick.domain.values import value
from everytick.errors import shown
from everytick.sources.importing.findings import UnreadableSource, Unsayable
from everytick.sources.importing.literals import BeatEntry, LeftOut, Unknown, literal, source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_TABLES = ("beat_schedule", "CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE")
_ZONES = ("timezone", "CELERY_TIMEZONE")
_UTC = ("enable_utc", "CELERY_ENABLE_UTC")
_WHEN_RUN = "known only when the file is run"


class BeatSchedule:
    """The entries, the settings about time, and the lines that were not understood."""

    def __init__(self) -> None:
        self.entries: list[BeatEntry] = []
        self.left: list[LeftOut] = []
        self.timezone: str | None = None
        self.is_local = 0
        """The line that says so, or 0."""


def read_python(text: str, file: str) -> BeatSchedule:
    """Return the entries of every beat_schedule that the source writes out."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UnreadableSource(file, line, f"is neither JSON nor Python: {shown(str(error))}") from None
    reader = _Source(tree)
    reader.read()
    if not reader.has_table:
        why = "there is no beat_schedule in it: name the file that sets it"
        raise UnreadableSource(file, 1, why)
    return reader.beat


class _Source:
    """One source, walked once, in its own order."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree, self.beat, self.has_table = tree, BeatSchedule(), False
        self._known = _constants(tree)
        self._scope: ast.AST = tree
        self._under: tuple[str, ...] = ()
        self._scopes: list[ast.AST] = []
        """Where each entry that was found is set."""
        self._own_tables = {
            node.id for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in _TABLES
        }  # fmt: skip

    def read(self) -> None:
        for statement in _statements(self._tree):
            self._scope, self._under = statement.scope, statement.under
            match statement.node:
                case ast.Assign(targets=[target], value=given):
                    self._assigned(target, given)
                case ast.AnnAssign(target=target, value=ast.expr() as given):
                    self._assigned(target, given)
                case ast.AugAssign(target=target, op=ast.BitOr(), value=given) if _last_name(target) in _TABLES:
                    self._setting(str(_last_name(target)), given)
            for part in _expressions(statement.node):
                self._expression(part)

    def _expression(self, node: ast.AST) -> None:
        match node:
            case ast.Call(func=ast.Attribute(attr="update", value=owner), args=[given, *_]) if (
                _last_name(owner) in _TABLES
            ):
                self.has_table = True
                self._entries(given)
            case ast.Call(func=ast.Attribute(attr="add_periodic_task")):
                why = f"not imported: the task's name is {_WHEN_RUN}; write it in beat_schedule"
                self.beat.left.append(LeftOut(node.lineno, "add_periodic_task", why))
                self.has_table = True
            case ast.Call(func=function, keywords=keywords):
                named = [(keyword.arg, keyword.value) for keyword in keywords if keyword.arg is not None]
                is_conf = isinstance(function, ast.Attribute) and _last_name(function.value) == "conf"
                self._settings(named, always=is_conf and _last_name(function) == "update")
            case ast.Dict(keys=keys, values=values):
                constants = [
                    (key.value, expression)
                    for key, expression in zip(keys, values, strict=True)
                    if isinstance(key, ast.Constant) and isinstance(key.value, str)
                ]
                self._settings(constants, always=False)

    def _settings(self, named: Sequence[tuple[str, ast.expr]], *, always: bool) -> None:
        """A table of settings that holds the schedule as one of them, or one that is Celery's for certain."""
        if always or any(name in _TABLES for name, _ in named):
            for name, expression in named:
                self._setting(name, expression)

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
            self.beat.left.append(LeftOut(given.lineno, name, f"{reason}: give --timezone, for here it is UTC"))
        if isinstance(found, str):
            self.beat.timezone = found

    def _entries(self, given: ast.expr) -> None:
        if isinstance(given, ast.Name) and given.id in self._own_tables:
            # A table of this file by its own name: its entries are read where they are set.
            return
        table = self._known.get(given.id, given) if isinstance(given, ast.Name) else given
        match table:
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                self._pairs([(key, expression) for key, expression in pairs])
            case ast.Call(func=ast.Name(id="dict"), args=[ast.Name(id=name), *more], keywords=[]) if (
                not more and name in self._known
            ):
                self._entries(self._known[name])
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                self._pairs([(_key(keyword), keyword.value) for keyword in keywords])
            case _:
                self._leave(given, "beat_schedule", f"'{source(given)}' is {_WHEN_RUN}")

    def _pairs(self, pairs: Sequence[tuple[ast.expr | None, ast.expr]]) -> None:
        for key, expression in pairs:
            if key is None:
                self._leave(expression, f"**{source(expression)}", f"it is {_WHEN_RUN}")
            else:
                self._entry(key, expression)

    def _entry(self, key: ast.expr, given: ast.expr) -> None:
        try:
            name = literal(key, self._known)
            found: Any = literal(_without_options(given), self._known)
        except Unsayable as reason:
            self._leave(key, f"entry {source(key)}", str(reason))
            return
        if isinstance(name, str) and isinstance(found, dict):
            options = _options_of(given, self._known)
            self._keep(BeatEntry(name, key.lineno, {**found, **({} if options is None else {"options": options})}))
        else:
            self._leave(key, f"entry {source(key)}", "it is no table with a name")

    def _keep(self, entry: BeatEntry) -> None:
        """Add an entry. It replaces an earlier one in the same place if it is always set."""
        if self._under:
            entry = replace(entry, under=" and ".join(self._under))
        else:
            self._forget(entry)
        self.beat.entries.append(entry)
        self._scopes.append(self._scope)

    def _forget(self, later: BeatEntry) -> None:
        for number, entry in reversed(list(enumerate(self.beat.entries))):
            if entry.name == later.name and self._scopes[number] is self._scope:
                why = f"not imported: it is set again in line {later.line}, which counts"
                self.beat.left.append(LeftOut(entry.line, f"entry '{entry.name}'", why))
                del self.beat.entries[number], self._scopes[number]

    def _leave(self, node: ast.expr, what: str, why: str) -> None:
        self.beat.left.append(LeftOut(node.lineno, what, f"not imported: {why}"))


@value
class _Statement:
    """One statement, the function, class or file that contains it, and the conditions under which it runs."""

    node: ast.stmt
    scope: ast.AST
    under: tuple[str, ...] = ()


def _statements(tree: ast.Module) -> Iterator[_Statement]:
    """Give every statement in the order of the source. No recursion: a chain of elif may exceed its limit."""
    waiting = [_Statement(statement, tree) for statement in reversed(tree.body)]
    while waiting:
        statement = waiting.pop()
        yield statement
        node = statement.node
        is_scope = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        for block, condition in reversed(list(_blocks(node))):
            scope = node if is_scope else statement.scope
            under = statement.under if condition is None else (*statement.under, condition)
            waiting += [_Statement(statement, scope, under) for statement in reversed(block)]


def _blocks(node: ast.stmt) -> Iterator[tuple[list[ast.stmt], str | None]]:
    """Give the blocks of a statement, each with the condition under which it runs, if any."""
    match node:
        case ast.If(test=test, body=body, orelse=orelse):
            yield body, f"if {source(test)}"
            yield orelse, f"not if {source(test)}"
        case ast.While(test=test, body=body, orelse=orelse):
            yield body, f"while {source(test)}"
            yield orelse, None
        case ast.For(iter=walked, body=body, orelse=orelse) | ast.AsyncFor(iter=walked, body=body, orelse=orelse):
            yield body, f"for … in {source(walked)}"
            yield orelse, None
        case ast.Match(subject=subject, cases=cases):
            for case in cases:
                yield case.body, f"match {source(subject)}"
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
            yield body, None
            for handler in handlers:
                yield handler.body, "except"
            yield from ((orelse, None), (final, None))
        case (
            ast.FunctionDef(body=body)
            | ast.AsyncFunctionDef(body=body)
            | ast.ClassDef(body=body)
            | ast.With(body=body)
            | ast.AsyncWith(body=body)
        ):
            yield body, None


def _expressions(node: ast.stmt) -> Iterator[ast.AST]:
    """Give every expression of one statement, and of no statement inside it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.expr, ast.withitem, ast.arguments, ast.keyword)):
            yield from ast.walk(child)


def _key(keyword: ast.keyword) -> ast.expr | None:
    """The name of a keyword as an expression; None for what is given with **."""
    return None if keyword.arg is None else ast.copy_location(ast.Constant(keyword.arg), keyword)


def _without_options(given: ast.expr) -> ast.expr:
    """The table of an entry without its options, each of which may be left by itself."""
    if not isinstance(given, ast.Dict):
        return given
    kept = [(key, expression) for key, expression in zip(given.keys, given.values, strict=True) if not _is_options(key)]
    return ast.copy_location(ast.Dict([key for key, _ in kept], [expression for _, expression in kept]), given)


def _options_of(given: ast.expr, known: Mapping[str, ast.expr]) -> dict[str, Any] | None:
    """Return the options of an entry, if it has any, with `Unknown` for those that only a run would tell."""
    if not isinstance(given, ast.Dict):
        return None
    for key, expression in zip(given.keys, given.values, strict=True):
        if _is_options(key):
            return _options(expression, known)
    return None


def _is_options(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value == "options"


def _options(given: ast.expr, known: Mapping[str, ast.expr]) -> dict[str, Any]:
    table = known.get(given.id, given) if isinstance(given, ast.Name) else given
    if isinstance(table, ast.Dict) and all(isinstance(key, ast.Constant) for key in table.keys):
        pairs = [(str(key.value), expression) for key, expression in zip(table.keys, table.values, strict=True)
                 if isinstance(key, ast.Constant)]  # fmt: skip
        return {name: _known_or_not(expression, known) for name, expression in pairs}
    return {source(table): Unknown(f"'{source(table)}' is {_WHEN_RUN}")}


def _known_or_not(given: ast.expr, known: Mapping[str, ast.expr]) -> Any:
    try:
        return literal(given, known)
    except Unsayable as reason:
        return Unknown(str(reason))


def _constants(tree: ast.Module) -> Mapping[str, ast.expr]:
    """The names that the source sets once, on its outermost level or in a class there.

    They mean the same wherever they stand; those of a class are written with it, as `Queues.SLOW`.
    """
    expressions = dict(_named(tree.body))
    times = Counter(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    known = {name: given for name, given in expressions.items() if times[name] == 1}
    elsewhere = {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    for name, body in _classes(tree).items():
        inside = Counter(key for key, _ in _named(body))
        once = [(key, given) for key, given in _named(body) if inside[key] == 1 and key not in elsewhere]
        known |= {f"{name}.{key}": given for key, given in once}
    return known


def _classes(tree: ast.Module) -> Mapping[str, list[ast.stmt]]:
    """Return the bodies of the outermost classes, by name. Classes with the same name are left out."""
    classes = [statement for statement in tree.body if isinstance(statement, ast.ClassDef)]
    times = Counter(statement.name for statement in classes)
    return {statement.name: statement.body for statement in classes if times[statement.name] == 1}


def _named(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for node in body:
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
