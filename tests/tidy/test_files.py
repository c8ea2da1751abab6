"""Every file of the package is imported by something, and every function is used: what is not needed is deleted."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tests.tidy.tree import ROOT, module_name, under, walked

# Started by name, or by the interpreter, and therefore imported nowhere.
DOORS = {
    "everytick",
    "everytick.__main__",
    "everytick.django.apps",
    "everytick.django.management.commands.everytick",
}


def references(path: str) -> Iterator[str]:
    """Give the names of modules that a file imports, or may import later by a name it holds as text."""
    for node in walked(path):
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


BY_USERS = "people call it"
BY_OTHERS = "another library calls it"
BY_TESTS = "tests look at it, and could not see this otherwise"

CALLED_FROM_OUTSIDE = {
    **dict.fromkeys(("web_url", "max_lateness", "is_unverified", "retry_count"), BY_USERS),
    **dict.fromkeys(("assert_ran", "assert_skipped", "assert_failed"), BY_USERS),
    **dict.fromkeys(("to_string", "capture_signals", "emit", "writelines"), BY_OTHERS),
    **dict.fromkeys(("EverytickConfig", "run_from_argv", "add_arguments"), BY_OTHERS),
    **dict.fromkeys(("setup_schedule", "should_sync"), BY_OTHERS),
    **dict.fromkeys(("definitions_compiled", "open_streams", "role_needed", "standing_still"), BY_TESTS),
    **dict.fromkeys(("header_of", "life_of"), "tests and benchmarks begin a life as a store does"),
}
"""Functions and classes that the package defines and names nowhere else."""


def named_once() -> Iterator[str]:
    """Give each function, method and class whose name stands in the package only where it is defined."""
    paths = [*under("src/"), *under("src/", suffix=".html")]
    words = Counter(word for path in paths for word in re.findall(r"\w+", (ROOT / path).read_text(encoding="utf-8")))
    for path in under("src/"):
        for node in walked(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and words[node.name] == 1:
                # A route or a verb of the command line is registered by its decorator.
                is_registered = any(isinstance(mark, ast.Call) for mark in node.decorator_list)
                if not is_registered and not node.name.startswith("__"):
                    yield node.name


def test_every_function_of_the_package_is_used_by_it() -> None:
    assert set(named_once()) == set(CALLED_FROM_OUTSIDE)
