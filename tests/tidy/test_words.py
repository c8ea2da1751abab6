"""One word per concept: identifiers that we define do not use the others."""

import ast
import re
import tokenize
import tomllib
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.tidy.tree import ROOT, lines, parsed, under, walked

RULES = tomllib.loads((ROOT / "tests/tidy/words.toml").read_text())
REFUSED: dict[str, str] = RULES["words"]
MIRRORED = re.compile(r"stores/(?:memory|postgres|sqlite)/.*")
STORES = re.compile(r"stores/.*")
ALL_STORES = "src/everytick/stores/"
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


def types_of(path: str) -> Iterator[tuple[str, bool]]:
    """Give the name of each class and each alias of a type that a module defines, and whether it is an alias."""
    statements = list(parsed(path).body)
    # Aliases for type checkers alone stand below `if TYPE_CHECKING`.
    statements += [inner for node in statements if isinstance(node, ast.If) for inner in node.body]
    for node in statements:
        match node:
            case ast.ClassDef(name=name):
                yield name, False
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                yield name, True
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() | ast.Attribute() | ast.BinOp()):
                if re.fullmatch(r"[A-Z][a-z]\w*", name):
                    yield name, True


def test_one_class_name_is_one_concept() -> None:
    """A reader who searches for a class finds one; the three stores mirror each other and count as one place.

    All stores together count as one place for aliases, and `web` may call what stands in a request as the value.
    """
    places: dict[str, set[str]] = {}
    for path in under("src/"):
        for name, is_alias in types_of(path):
            if name.startswith("_") or (is_alias and "/web/" in path):
                continue
            place = STORES.sub("stores/", path) if is_alias else MIRRORED.sub("stores/", path)
            places.setdefault(name, set()).add(place)

    for found in places.values():
        if any(STORES.search(place) and place != ALL_STORES for place in found):
            found.discard(ALL_STORES)
    repeated = {name: sorted(found) for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in repeated.items() if name not in RULES["repeated"]["classes"]} == {}
    assert [name for name in RULES["repeated"]["classes"] if name not in repeated] == []


TEMPLATE_CODE = re.compile(r"{{.*?}}|{%.*?%}|{#.*?#}")


def visible_texts(path: str) -> Iterator[tuple[str, str]]:
    """Give the text literals of a file that people may read, and the text of a template, each with its place.

    Docstrings are no such texts, nor is what reads as Python: names of types in quotes do.
    """
    if path.endswith(".html"):
        yield from ((place, TEMPLATE_CODE.sub("", line)) for place, line in lines(path))
        return
    tree = parsed(path)
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(values=parts):
                yield (
                    f"{path}:{node.lineno}",
                    "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in parts),
                )
            case ast.Constant(value=str(text)) if id(node) not in statements | inner and not is_code(text):
                yield f"{path}:{node.lineno}", text


def is_code(text: str) -> bool:
    """Whether a text is an expression of Python, such as a type in quotes."""
    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True


def test_no_text_of_a_page_names_one_of_our_classes() -> None:
    """A class that was renamed by search and replace took its first word along in what people read."""
    nodes = [node for path in under("src/") for node in walked(path)]
    classes = {node.name.lstrip("_") for node in nodes if isinstance(node, ast.ClassDef)}
    ours = {name for name in classes if re.match(r"[A-Z][a-z]+[A-Z]", name)}
    pages = [*under("src/everytick/web/"), *under("src/everytick/web/", suffix=".html")]
    texts = [(place, text) for path in pages for place, text in visible_texts(path)]

    assert len(texts) > 100
    assert [
        f"{place}: {name}" for place, text in texts for name in re.findall(r"(?<![\w/])[A-Z]\w+", text) if name in ours
    ] == []


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


NAMELESS = {"asked", "each", "found", "kept", "made"}
_NAMED = "access answers beat config deciding declarative domain metrics node runners schedules simulate testing"
NAMED_PACKAGES = tuple(f"src/everytick/{name}/" for name in _NAMED.split())
EACH_PACKAGES = tuple(f"src/everytick/{name}/" for name in "app cli client sources stores web".split())
"""Here *found* and *asked* are still names of what a statement has returned and of what a verb was asked."""


def test_loops_and_locals_are_named_after_what_they_hold() -> None:
    """A reader of a loop learns from its variable whether it is an occurrence, a claim or an instant."""
    functions = [
        (path, function)
        for path in under(*NAMED_PACKAGES, *EACH_PACKAGES)
        for function in walked(path)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    named = {
        f"{path}:{node.lineno}: {name}"
        for path, function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Name | ast.arg)
        for name in [node.id if isinstance(node, ast.Name) else node.arg]
        if name in ({"each"} if path.startswith(EACH_PACKAGES) else NAMELESS)
    }

    assert len(functions) > 1000
    assert named == set()


UNNAMED = re.compile(r"\b(?:(?:any|every|no|some)(?:body|one)|whoever|executor)\b", re.IGNORECASE)
"""A person, node, job or program has a name; the executor is a part that is gone."""


def prose(path: str) -> Iterator[tuple[int, str]]:
    """Give each line of the docstrings and comments of a file, with its number."""
    for node in walked(path):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text), lineno=first)):
                yield from enumerate(text.split("\n"), first)
    with (ROOT / path).open(encoding="utf-8") as source:
        for token in tokenize.generate_tokens(source.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def test_docstrings_and_comments_name_the_thing() -> None:
    """Nobody and somebody cost a second reading: is it a node, a person, a caller or another transaction?"""
    paths = [path for path in under("src/", "tests/", "bench/", "examples/") if path != "tests/tidy/test_words.py"]
    found = [(path, line, text) for path in paths for line, text in prose(path)]

    assert len(found) > 20_000
    # `nobody` is an account of the system.
    told = [(path, line, text) for path, line, text in found if UNNAMED.search(text.replace("`nobody`", ""))]
    assert [f"{path}:{line}: {text.strip()}" for path, line, text in told] == []


def numbers_of(path: str) -> Iterator[tuple[int, str, bool]]:
    """Give each constant of a file that is a number, with its line, and whether a docstring follows it.

    The members of an enum are codes, and no numbers of anything.
    """
    tree = parsed(path)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    others = [cls for cls in classes if not any("Enum" in ast.unparse(base) for base in cls.bases)]
    for body in (tree.body, *(cls.body for cls in others)):
        for node, after in pairwise([*body, None]):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=content) if name.isupper() and is_number(content):
                    yield node.lineno, name, isinstance(after, ast.Expr)


def is_number(content: ast.expr) -> bool:
    match content:
        case ast.Constant(value=number):
            return isinstance(number, int | float) and not isinstance(number, bool)
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
    return False


def says_unit(name: str) -> bool:
    """Whether a word of the name is a plural, such as SECONDS, ROWS or JOBS."""
    return any(re.fullmatch("[A-Z]{2,}S", word) for word in name.split("_"))


def test_every_number_says_what_it_counts() -> None:
    """By its name, or by the docstring below it: 200 of what, and 0.05 of what?"""
    found = [(path, line, name, is_told) for path in under("src/") for line, name, is_told in numbers_of(path)]

    assert len(found) > 500
    assert [f"{path}:{line}: {name}" for path, line, name, is_told in found if not (is_told or says_unit(name))] == []
