"""The one decorator for values: slotted, equal by content, never changed once built.

Type checkers see every value as frozen. At run time only the values that users hold are frozen,
by `@value(frozen=True)`: a frozen dataclass takes three to five times as long to build, and a
tick builds several values per occurrence. Tests and production have the same classes.

All values share `__eq__`, `__hash__` and `__repr__`. A dataclass would compile its own three for
each of some two hundred classes, which a program would pay for at every start.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def value(cls: type[T], /) -> type[T]: ...


@overload
def value(*, frozen: bool) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T] | None = None, /, *, frozen: bool = False) -> Any:
    """Make the class a slotted value, equal and hashed by content; `frozen` if users hold it."""
    if cls is None:
        return lambda later: _make(later, frozen=frozen)
    return _make(cls, frozen=frozen)


def _make(cls: type[T], *, frozen: bool) -> type[T]:
    own = vars(cls)
    shared = {name: method for name, method in _SHARED.items() if name not in own}
    made: Any = dataclass(slots=True, eq=False, repr=False, frozen=frozen)(cls)
    made.__compared__ = _content(made)
    for name, method in shared.items():
        setattr(made, name, method)
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


_SHARED = {"__eq__": _eq, "__hash__": _hash, "__repr__": _repr}
