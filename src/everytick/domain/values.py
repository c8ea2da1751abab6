"""The one decorator for values: slotted, compared by content, frozen where it is checked.

A frozen dataclass takes three times as long to build as a plain one, and a tick builds
several values per occurrence. So values are frozen for type checkers always and at run
time while tests run, and merely slotted in production.

There they also share three methods that a dataclass would write, and compile, for each
class anew: with a hundred classes that is a good part of the time a program takes to start.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")

FROZEN = "pytest" in sys.modules


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Make the class a slotted value: equal by content, hashable, never changed after it was built."""
    return dataclass(slots=True, frozen=True)(cls) if FROZEN else light(cls)


def light(cls: type[T]) -> type[T]:
    """Make the class a value as it is in production: what it is equal by and how it is shown are as in a dataclass."""
    own = vars(cls)
    written = "__eq__" in own, "__hash__" in own, "__repr__" in own
    made: Any = dataclass(slots=True, eq=False, repr=False)(cls)
    made.__compared__ = _content(made)
    for name, shared, is_written in zip(("__eq__", "__hash__", "__repr__"), (_eq, _hash, _repr), written, strict=True):
        if not is_written:
            setattr(made, name, shared)
    return made  # type: ignore[no-any-return]


def _content(cls: Any) -> Callable[[Any], Any]:
    names = [each.name for each in fields(cls) if each.compare]
    return attrgetter(*names) if names else _nothing


def _nothing(one: Any) -> Any:
    return ()


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    content = self.__class__.__compared__
    return content(self) == content(other)


def _hash(self: Any) -> int:
    return hash(self.__class__.__compared__(self))


def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"
