"""The one decorator for values: slotted, equal by content, never changed once built.

Type checkers see every value as frozen. At run time only the values that users hold are frozen,
by `@value(frozen=True)`: a frozen dataclass takes three to five times as long to build, and a
tick builds several values per occurrence. Tests and production have the same classes. Those values are
built through `by_name`.

All values share `__eq__`, `__hash__` and `__repr__`, and the frozen ones what refuses a change. A
dataclass would compile its own for each of some two hundred classes, which a program would pay for at
every start. For the same reason `__init__` is compiled when the first value of its class is built:
most programs never build half of them. Together this is a tenth of the time to the first run in
`bench/startup.py`.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")
_LINE = "self.{name} = {content}"
_FROZEN_LINE = "_set_{name}(self, {content})"


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


def by_name(cls: type[T]) -> type[T]:
    """Return a function that builds this value from named fields, in less than half the time that its class takes.

    A class that is called by name is given a dict, which Python unpacks again; a function is not. So a tick can
    name each field of what it writes, at the price of a call whose places no reader can count.
    """
    line = _FROZEN_LINE if cls.__setattr__ is _refuse else _LINE
    known = {"_new": object.__new__, "_cls": cls}
    build: Any = _function(cls, line, known, name="by_name", begin="self = _new(_cls)", end="return self")
    return build  # type: ignore[no-any-return]


def _make(cls: type[T], *, frozen: bool) -> type[T]:
    own = vars(cls)
    shared = _SHARED | _FROZEN if frozen else _SHARED
    missing = {name: method for name, method in shared.items() if name not in own}
    new_class: Any = dataclass(slots=True, init=False, eq=False, repr=False)(cls)
    new_class.__compared__ = _content(new_class)
    if "__init__" not in own:
        new_class.__init__ = _init_of(new_class, frozen=frozen)
    for name, method in missing.items():
        setattr(new_class, name, method)
    return new_class  # type: ignore[no-any-return]


def _init_of(cls: Any, *, frozen: bool) -> Callable[..., None]:
    """Return what builds the first value, and leaves the compiled `__init__` in its own place."""

    def __init__(self: Any, *given: Any, **named: Any) -> None:
        cls.__init__ = _compiled(cls, _FROZEN_LINE if frozen else _LINE)
        cls.__init__(self, *given, **named)

    return __init__


def _compiled(cls: Any, line: str) -> Any:
    """Compile the `__init__` that a dataclass would have; `__post_init__` fills the fields with `init=False`."""
    return _function(cls, line, {}, name="__init__", given="self")


def _function(
    cls: Any, line: str, known: dict[str, Any], *, name: str, given: str = "", begin: str = "", end: str = ""
) -> Any:
    """Compile a function that takes the fields of a class and sets each on `self`, by `line`."""
    parameters, lines = [given] if given else [], [begin] if begin else []
    for part in fields(cls):
        if not part.init:
            continue
        field_name = part.name
        if line is _FROZEN_LINE:
            # That of the slot: `object.__setattr__` would look for it, and take twice as long.
            known[f"_set_{field_name}"] = getattr(cls, field_name).__set__
        default = known[f"_{field_name}"] = _default(part)
        parameters.append(field_name if default is MISSING else f"{field_name}=_{field_name}")
        is_called = part.default_factory is not MISSING
        content = f"_{field_name}() if {field_name} is _{field_name} else {field_name}" if is_called else field_name
        lines.append(line.format(name=field_name, content=content))
    lines += [*(["self.__post_init__()"] if hasattr(cls, "__post_init__") else ()), *([end] if end else ())]
    head = f"def {name}({', '.join(parameters)}):\n "
    exec(head + "\n ".join(lines or ["pass"]), known)  # noqa: S102, names of fields
    known[name].__qualname__ = f"{cls.__qualname__}.{name}"
    return known[name]


def _default(part: Field[Any]) -> Any:
    return part.default if part.default_factory is MISSING else part.default_factory


def _content(cls: Any) -> Callable[[Any], Any]:
    names = [part.name for part in fields(cls) if part.compare]
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
    shown = (f"{part.name}={getattr(self, part.name)!r}" for part in fields(self) if part.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse(self: Any, name: str, *_: object) -> None:
    raise FrozenInstanceError(f"cannot change {name!r} of a {self.__class__.__qualname__}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, part.name) for part in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for part, content in zip(fields(self), state, strict=True):
        object.__setattr__(self, part.name, content)


_SHARED = {"__eq__": _eq, "__hash__": _hash, "__repr__": _repr}
_FROZEN = {"__setattr__": _refuse, "__delattr__": _refuse, "__getstate__": _state, "__setstate__": _set_state}
