"""Rules of this house that a tool can see: nothing skipped, nothing slept through, nothing left for later."""

import ast
import re
import tomllib

from tests.tidy.tree import ROOT, lines, parsed, under

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
        for node in ast.walk(parsed(path)):
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
        for node in ast.walk(parsed(path))
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


BUILT_ONCE_PER_OCCURRENCE = frozenset(
    f"src/everytick/{path}"
    for path in (
        "deciding/draft.py",
        "deciding/life.py",
        "deciding/newcomers.py",
        "deciding/plan.py",
        "deciding/tick.py",
        "simulate/simulated_job.py",
        "stores/memory/planning.py",
        "stores/postgres/due.py",
    )
)
"""Names cost 0.6 µs for a value of 14 fields, and a tick builds several (`bench/plan.py`, `bench/advance.py`)."""

TABLES_OF_ROWS = {"_metrics"}
"""Functions whose arguments are the rows of a table."""


def test_no_call_has_more_than_eight_arguments_without_names() -> None:
    """A reader cannot count to the eleventh argument."""
    found = {
        path: [call.lineno for call in calls if len(call.args) > 8 and ast.unparse(call.func) not in TABLES_OF_ROWS]
        for path in under("src/")
        for calls in [[node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]]
    }

    assert {path for path, crowded in found.items() if crowded} == BUILT_ONCE_PER_OCCURRENCE


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
