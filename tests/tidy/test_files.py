"""Every file of the package is imported by something: what nobody needs is deleted."""

import ast
from collections.abc import Iterator

from tests.tidy.tree import module_name, parsed, under

# Started by name, or by the interpreter, and therefore imported by nobody.
DOORS = {
    "everytick",
    "everytick.__main__",
    "everytick.django.apps",
    "everytick.django.management.commands.everytick",
}


def references(path: str) -> Iterator[str]:
    """Give the names of modules that a file imports, or may import later by a name it holds as text."""
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.Constant(value=str(text)) if text.isascii() and len(text) < 100:
                yield text if text.startswith("everytick.") else f"everytick.{text.lstrip('.')}"


def with_parents(name: str) -> Iterator[str]:
    """Give a module and the packages that are imported with it."""
    parts = name.split(".")
    return (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def test_every_file_of_the_package_is_imported_by_something() -> None:
    ours = {module_name(path): path for path in under("src/")}
    imported = {
        reached
        for path in under("src/", "tests/", "bench/", "examples/")
        for name in references(path)
        if name != module_name(path)
        for reached in with_parents(name)
    }

    unused = sorted(path for name, path in ours.items() if name not in imported | DOORS)

    assert unused == []
