"""Rules of this house that a tool can see: nothing skipped, nothing slept through, nothing left for later."""

import ast
import re
import tomllib

from tests.tidy.tree import ROOT, lines, parsed, under, walked

PURE_LAYERS = ("deciding", "domain", "schedules")


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    refused = re.compile(r"mark\.(skip|skipif|xfail)\b|pytest\.(skip|xfail|importorskip)\b|unittest\.skip")
    here = "tests/tidy/test_house_rules.py"

    assert [
        place for path in under("tests/") if path != here for place, line in lines(path) if refused.search(line)
    ] == []


def test_no_test_sleeps() -> None:
    """A test waits for an event or moves a clock; `asyncio.sleep(0)` only lets others run."""
    found = []
    for path in under("tests/"):
        for node in walked(path):
            match node:
                case ast.Call(func=ast.Attribute(attr="sleep") | ast.Name(id="sleep"), args=[ast.Constant(value=0)]):
                    pass
                case ast.Call(func=ast.Attribute(attr="sleep") | ast.Name(id="sleep")):
                    found.append(f"{path}:{node.lineno}")

    assert found == []


def test_every_test_runs_to_its_end() -> None:
    """A test that returns early passes without testing.

    One that holds on some stores names them in its parameters; hypothesis has `assume` and `reject`.
    """
    assert [
        f"{path}:{line}"
        for path in under("tests/")
        for node in walked(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        for line in returns_of(node)
    ] == []


def returns_of(function: ast.AST) -> list[int]:
    """Return the lines on which this function returns; functions that are defined within it do not count."""
    found = []
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.Return):
            found.append(node.lineno)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            found += returns_of(node)
    return found


def test_no_call_has_more_than_eight_arguments_without_names() -> None:
    """A reader cannot count to the eleventh argument."""
    assert [
        f"{path}:{node.lineno}: {ast.unparse(node.func)}"
        for path in under("src/")
        for node in walked(path)
        if isinstance(node, ast.Call) and len(node.args) > 8
    ] == []


FASTER_WAYS = (
    "src/everytick/deciding/plain_plans.py",
    "src/everytick/deciding/plain_steps.py",
    "src/everytick/deciding/revise.py",
    "src/everytick/node/foresight.py",
    "src/everytick/simulate/world.py",
    "src/everytick/stores/postgres/asking.py",
    "src/everytick/stores/postgres/due.py",
    "src/everytick/stores/postgres/planning.py",
    "src/everytick/stores/postgres/running.py",
    "src/everytick/stores/redis/store.py",
    "src/everytick/stores/sqlite/claims.py",
)
"""Modules that do one thing in two ways. Each second way has to be read, tested and kept equal to the first."""

PRICE = re.compile(
    r"A second, faster way(?:, \w+)?: [^:]+?\. Price: `(bench/\w+\.py)`[^:`]*?, "
    r"([\d,.]+) (?:µs|ms|s|a second) with it and ([\d,.]+) without: (\d+) %\."
)


def test_each_faster_way_says_what_it_buys_end_to_end() -> None:
    """A way that buys less than 15 % in a bench is not worth a second way."""
    notes = {path: " ".join((ast.get_docstring(parsed(path)) or "").split()) for path in under("src/")}
    tagged = {path: PRICE.findall(note) for path, note in notes.items() if re.search("second, faster way|Price:", note)}

    assert tuple(sorted(tagged)) == FASTER_WAYS
    assert [path for path, prices in tagged.items() if len(prices) != 1] == []
    for path, [(bench, with_it, without, percent)] in tagged.items():
        less, more = sorted(float(figure.replace(",", "")) for figure in (with_it, without))
        assert (ROOT / bench).is_file(), f"{path}: {bench}"
        assert int(percent) >= 15, path
        assert abs(100 * (1 - less / more) - int(percent)) < 1, path


def test_a_function_for_few_or_plain_cases_stands_beside_its_price() -> None:
    """Their names give second ways away."""
    hints = re.compile(r"(?:\w+_(?:few|fast|quickly)|_?is_plain|plain_(?:step|plan))")
    found = {
        path
        for path in under("src/everytick/deciding/", "src/everytick/node/", "src/everytick/stores/")
        for node in walked(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and hints.fullmatch(node.name)
    }

    assert len(found) >= 5
    assert found - set(FASTER_WAYS) == set()


def test_nothing_in_the_package_is_left_for_later() -> None:
    later = re.compile(r"\b(TODO|FIXME|XXX)\b|\braise NotImplementedError\b")

    assert [place for path in under("src/") for place, line in lines(path) if later.search(line)] == []


def test_every_pure_layer_that_exists_is_held_to_purity() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    [purity] = [contract for contract in settings["importlinter"]["contracts"] if contract["type"] == "forbidden"]
    [clockless] = [key for key in settings["ruff"]["lint"]["per-file-ignores"] if key.startswith("!src/everytick/")]

    for layer in PURE_LAYERS:
        assert layer in clockless
        if (ROOT / "src/everytick" / layer).exists():
            assert f"everytick.{layer}" in purity["source_modules"]


def test_faces_use_no_private_name_of_an_application() -> None:
    """What a face needs beside the public verbs is a function of `app`, such as `open_store`: both can be found."""
    private = re.compile(r"\b_?(?:app|application|tick)\._[a-z]")
    faces = [f"src/everytick/{face}/" for face in ("beat", "cli", "declarative", "django", "simulate", "testing")]

    assert [place for path in under(*faces) for place, line in lines(path) if private.search(line)] == []


def test_a_part_of_a_node_touches_no_private_name_of_another_object() -> None:
    """What a part needs of another one it is given when it is made, or asks for by a public name."""
    found = [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for path in under("src/everytick/node/")
        for node in walked(path)
        if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr) and node.attr != "_replace"
        if ast.unparse(node.value) not in {"self", "cls"}
    ]

    assert found == []


def test_a_node_does_not_ask_which_kind_of_store_it_has() -> None:
    """A tick is the same for every store; what differs is an answer, such as `Ahead.alone`."""
    kinds = re.compile(
        r"is_in_memory|is_remote|\baddress\.kind"
        r"|(?:isinstance|hasattr|getattr)\([\w.]*(?:store|batch|plans),"
    )
    timed = "src/everytick/node/timed_store.py"  # passes every attribute on
    ours = [path for path in under("src/everytick/node/") if path != timed]

    assert len(ours) > 40
    assert [place for path in ours for place, line in lines(path) if kinds.search(line)] == []


PLAIN_STATE = {"alarm", "attempt", "context", "counts", "occurrence", "record"}
"""How `node` calls values that only hold what is known of one thing; several parts keep them up to date."""


def test_a_part_of_a_node_sets_no_attribute_of_another_part() -> None:
    """What a part knows is changed by its own methods, so that a reader finds every change in one file."""
    assert [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for path in under("src/everytick/node/")
        for node in walked(path)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del)
        if ast.unparse(node.value) != "self" and ast.unparse(node.value).split(".")[-1] not in PLAIN_STATE
    ] == []


def test_no_line_names_an_issue() -> None:
    """What a test holds is said in words: a reader of the code cannot look up where it was first written down."""
    named = re.compile(r"\b(?:issue|attack)s? [0-9]", re.IGNORECASE)

    assert [
        place for path in under("src/", "tests/", "bench/") for place, line in lines(path) if named.search(line)
    ] == []


def test_a_store_is_made_of_parts_and_not_of_a_chain_of_classes() -> None:
    """Who reads a verb finds it in one part, and sees what the part was given."""
    bases: dict[str, set[str]] = {}
    for path in under("src/everytick/stores/"):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef):
                names = {ast.unparse(base).partition("[")[0] for base in node.bases}
                if "Protocol" not in names:
                    bases.setdefault(node.name, set()).update(names)
    inherited = {name: own for name, known in bases.items() if (own := known & bases.keys())}

    assert len(bases) > 100
    assert {name: own for name, own in inherited.items() if len(own) > 1 or own & inherited.keys()} == {}
