"""The names of the test kit: all resolve, type checkers see them, and its page lists them."""

import ast
import re
from pathlib import Path

import pytest

from everytick import testing

ROOT = Path(__file__).resolve().parents[3]


def test_every_name_resolves_and_is_listed() -> None:
    assert all(getattr(testing, name) is not None for name in testing.__all__)
    assert dir(testing) == sorted(testing.__all__)


def test_a_name_that_is_not_there_is_said_so() -> None:
    with pytest.raises(AttributeError, match=r"module 'everytick\.testing' has no attribute 'simulat'"):
        _ = testing.simulat


def test_type_checkers_see_every_name() -> None:
    tree = ast.parse((ROOT / "src/everytick/testing/__init__.py").read_text())
    [checked] = [node for node in tree.body if isinstance(node, ast.If)]

    assert sorted(
        alias.name for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ) == sorted(testing.__all__)


def test_the_page_lists_every_name() -> None:
    rows = re.findall(r"^\| (`.+?`) \|", (ROOT / "docs/testing.md").read_text(), re.MULTILINE)

    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == sorted(testing.__all__)
