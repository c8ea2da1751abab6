"""One word per concept: identifiers that we define do not use the others."""

import ast
import re
import tomllib
from collections.abc import Iterator

import pytest

from tests.tidy.tree import ROOT, parsed, under

RULES = tomllib.loads((ROOT / "tests/tidy/words.toml").read_text())
REFUSED: dict[str, str] = RULES["words"]
MIRRORED = re.compile(r"stores/(?:memory|postgres|sqlite)/.*")
EXEMPT: tuple[str, ...] = tuple(RULES["exempt"]["paths"])


def defined(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Give every identifier that this file gives to something, with its line; what it only uses is others' naming."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((node.lineno, alias.asname) for alias in names if alias.asname)


def refused_in(identifier: str) -> list[str]:
    """Return the refused words that stand as whole words in an identifier, in snake or in camel case."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", identifier).lower()
    return [word for word in REFUSED if f"_{word}_" in f"_{snake}_"]


def test_identifiers_use_one_word_per_concept() -> None:
    checked = [path for path in under("src/") if not path.startswith(EXEMPT)]
    named = [(path, line, name) for path in checked for line, name in defined(parsed(path))]
    named += [(path, 1, name) for path in checked for name in path.removesuffix(".py").split("/")]

    found = [
        f"{path}:{line}: {name}: do not say {word}, say {REFUSED[word]}"
        for path, line, name in named
        for word in refused_in(name)
    ]

    assert len(named) > 100
    assert found == []


def test_one_class_name_is_one_concept() -> None:
    """A reader who searches for a class finds one; the three stores mirror each other and count as one place."""
    places: dict[str, set[str]] = {}
    for path in under("src/"):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, set()).add(MIRRORED.sub("stores/", path))

    repeated = {name: sorted(found) for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in repeated.items() if name not in RULES["repeated"]["classes"]} == {}
    assert [name for name in RULES["repeated"]["classes"] if name not in repeated] == []


def test_every_exempt_path_exists() -> None:
    assert [path for path in EXEMPT if not under(path)] == []


@pytest.mark.parametrize(
    ("identifier", "words"),
    [
        ("fire_time", ["fire_time"]),
        ("last_fire_time_utc", ["fire_time"]),
        ("TickerStore", ["ticker"]),
        ("DAGRun", ["dag"]),
        ("is_cancelled", ["cancelled"]),
        ("CancelledOccurrence", ["cancelled"]),
        ("diagonal", []),
        ("stickers", []),
        ("scheduled_for", []),
    ],
)
def test_only_whole_words_are_refused(identifier: str, words: list[str]) -> None:
    assert refused_in(identifier) == words


def test_names_of_others_may_be_used_and_not_given() -> None:
    used = ast.parse("try:\n    await_it()\nexcept asyncio.CancelledError:\n    task.cancelled()")
    given = ast.parse("def f(workflow): x.dag = 1\nimport a as ticker\nclass Misfire: recurrence: int = 1")

    assert [name for _, name in defined(used) if refused_in(name)] == []
    assert {name for _, name in defined(given) if refused_in(name)} == {
        "workflow",
        "dag",
        "ticker",
        "Misfire",
        "recurrence",
    }
