"""Python values that can be read without running anything: literals, sums of numbers, and calls by their name."""

from __future__ import annotations

import ast
from operator import add, mul, sub, truediv
from typing import TYPE_CHECKING, Any

from everytick.domain.values import value
from everytick.errors import shown
from everytick.sources.importing.findings import Unsayable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SUMS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.Div: truediv,
}
_DEEPEST = 50
"""Expressions within each other."""

_UNDERSTOOD = ("crontab", "schedule", "solar", "timedelta")


@value
class LiteralCall:
    """A call in the source: the last part of its name, and its arguments."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: tuple[tuple[str, Any], ...] = ()


@value
class BeatEntry:
    """One entry of a table: its name, its line, its value, and the condition under which it is set, if any."""

    name: str
    line: int
    given: Mapping[str, Any]
    under: str = ""


@value
class Unknown:
    """A value that cannot be read, and why."""

    why: str


@value
class LeftOut:
    """A line that was not understood, and why."""

    line: int
    what: str
    why: str


def literal(node: ast.expr, known: Mapping[str, ast.expr], depth: int = 0) -> Any:
    """Return the value of an expression. Names have the values in `known`; anything else is refused."""
    if depth > _DEEPEST:
        raise Unsayable("values stand in each other too deeply")
    match node:
        case ast.Constant(value=found):
            return found
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return [literal(part, known, depth + 1) for part in parts]
        case ast.Dict(keys=keys, values=values):
            return _table(keys, values, known, depth)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(literal(operand, known, depth + 1), node)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _SUMS:
            return _sum(operator, literal(left, known, depth + 1), literal(right, known, depth + 1), node)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args, keywords=keywords) if (
            name in _UNDERSTOOD
        ):
            return _call(name, args, keywords, known, depth)
        case ast.Call(func=ast.Name(id="int" | "float" as name), args=[given], keywords=[]):
            return _converted(name, literal(given, known, depth + 1), node)
        case ast.Name(id=name) if name in known:
            return literal(known[name], known, depth + 1)
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if f"{owner}.{name}" in known:
            return literal(known[f"{owner}.{name}"], known, depth + 1)
    raise Unsayable(f"'{source(node)}' is known only when the file is run")


def source(node: ast.expr) -> str:
    """Return how an expression is written, cut short."""
    try:
        return shown(ast.unparse(node), 60)
    except RecursionError:
        return "…"


def _table(keys: list[ast.expr | None], values: list[ast.expr], known: Mapping[str, ast.expr], depth: int) -> Any:
    found = {}
    for key, expression in zip(keys, values, strict=True):
        if key is None:
            raise Unsayable(f"'**{source(expression)}' is known only when the file is run")
        name = literal(key, known, depth + 1)
        if not isinstance(name, (str, int, float, bool)):
            raise Unsayable("a table has a key that is not plain")
        found[name] = literal(expression, known, depth + 1)
    return found


def _call(
    name: str, args: list[ast.expr], keywords: list[ast.keyword], known: Mapping[str, ast.expr], depth: int
) -> LiteralCall:
    if any(keyword.arg is None for keyword in keywords):
        raise Unsayable(f"what {shown(name)}() is given with ** is known only when the file is run")
    return LiteralCall(
        name,
        tuple(literal(argument, known, depth + 1) for argument in args),
        tuple((str(keyword.arg), _lenient(keyword, known, depth)) for keyword in keywords),
    )


def _lenient(keyword: ast.keyword, known: Mapping[str, ast.expr], depth: int) -> Any:
    """Return an argument. A function is returned by its name only; the reader of the call decides what it means."""
    if isinstance(keyword.value, (ast.Lambda, ast.Name, ast.Attribute)) and keyword.arg in ("nowfun", "app"):
        return source(keyword.value)
    return literal(keyword.value, known, depth + 1)


def _number(found: object, node: ast.expr) -> Any:
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return found
    raise Unsayable(f"'{source(node)}' is known only when the file is run")


def _converted(name: str, found: object, node: ast.expr) -> Any:
    try:
        return (int if name == "int" else float)(_number(found, node))
    except (ArithmeticError, ValueError):
        raise Unsayable(f"'{source(node)}' is no number") from None


def _sum(operator: ast.operator, left: object, right: object, node: ast.expr) -> Any:
    try:
        return _SUMS[type(operator)](_number(left, node), _number(right, node))
    except (ArithmeticError, ValueError):
        raise Unsayable(f"'{source(node)}' is no number") from None
