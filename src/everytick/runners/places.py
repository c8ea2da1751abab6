"""Places: the address of a function, `module:qualified.name`, in this process and in a store."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MAIN = "__main__"


def place_of(function: Callable[..., Any]) -> str:
    """Return the address of a function in this process."""
    named: Any = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def stored_place_of(function: Callable[..., Any]) -> str:
    """Return the address of a function as a definition has it: equal whether its file is started or imported."""
    module, _, names = place_of(function).partition(":")
    if module == _MAIN:
        file = module_name(vars(sys.modules[_MAIN]))
        # A file that cannot be imported, like my-jobs.py, is only ever started.
        module = file if all(part.isidentifier() for part in file.split(".")) else module
    return f"{module}:{names}"


def module_name(module: Mapping[str, Any]) -> str:
    """Return the name of the module. For a script, which calls itself `__main__`, it is that of the file."""
    name = str(module.get("__name__", _MAIN))
    if name != _MAIN:
        return name
    spec = module.get("__spec__")
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = str(module.get("__file__", name))
    return file.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".py")
