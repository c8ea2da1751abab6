"""Formal Theory of Observable Behavior: the page of the theory and this suite belong together."""

import ast
import re
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs/declarative-theory.md"
STATEMENT = re.compile(r"^\| (?P<number>[CSTIPDELN]\d+) \| (?P<said>.+) \| (?P<tests>.+) \|$", re.MULTILINE)


def statements() -> dict[str, list[str]]:
    """Return each statement's number and the tests that it names."""
    found = [(row["number"], re.findall(r"`(test_\w+)`", row["tests"])) for row in STATEMENT.finditer(PAGE.read_text())]
    assert len(found) == len(dict(found)), "a number stands twice"
    return dict(found)


@cache
def suite() -> set[str]:
    """Return the names of all tests of this folder."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in HERE.glob("test_*.py")]
    functions = [node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name for node in functions if node.name.startswith("test_")}


def test_formal_theory_every_statement_is_held_by_tests_that_exist() -> None:
    """S2-072, S2-004."""
    found = statements()

    assert len(found) > 40
    assert {number: set(named) - suite() for number, named in found.items() if not named or set(named) - suite()} == {}


def test_formal_theory_every_test_of_the_suite_holds_a_statement() -> None:
    """S2-072: what is tested is said; the exceptions are about the suite itself, or about forms of the language."""
    named = {test for each in statements().values() for test in each}
    about_forms = {
        "test_registration_format_takes_lists_and_tuples_and_every_form_of_a_duration",
        "test_registration_format_every_async_callable_is_a_callback",
        "test_states_are_only_read",
    }

    assert {test for test in suite() if not test.startswith("test_formal_theory")} - named == about_forms
