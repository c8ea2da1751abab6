"""What everytick exports is what its page lists and what type checkers see."""

import ast
import re
import tomllib

import everytick
from everytick import errors
from tests.tidy.tree import ROOT, parsed


def names_on_the_page() -> list[str]:
    """Return the names in the first column of the tables."""
    return re.findall(r"^\| `(\w+)", (ROOT / "docs/api.md").read_text(), re.MULTILINE)


def names_for_type_checkers() -> list[str]:
    """Return what the package imports where only a type checker looks."""
    [checked] = [node for node in parsed("src/everytick/__init__.py").body if isinstance(node, ast.If)]
    return [alias.name for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names]


def test_the_page_lists_every_public_name_once() -> None:
    assert sorted(names_on_the_page()) == sorted(everytick.__all__)


def test_type_checkers_see_every_public_name() -> None:
    """Names resolve lazily; one that is missing there would be a mere object to mypy."""
    assert sorted(names_for_type_checkers()) == sorted(everytick.__all__)


def test_every_public_name_resolves() -> None:
    for name in everytick.__all__:
        assert getattr(everytick, name) is not None


def test_the_package_and_the_project_have_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert everytick.__version__ == project["version"]


def errors_in_the_tree() -> dict[str, str]:
    """Return every error that the tree above `errors.py` draws, with the error under which it stands."""
    under: dict[int, str] = {0: "Exception"}
    drawn: dict[str, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"    (?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w+)(?!,)\b", line)
        if found is not None and (found["branch"] or found["name"] == "EverytickError"):
            depth = len(found["branch"]) // 4 + 1
            under[depth] = found["name"]
            drawn[found["name"]] = under[depth - 1]
    return drawn


def test_the_tree_of_errors_names_every_error_under_its_base() -> None:
    """A reader of `errors.py` finds each error in the tree at its top."""
    drawn = errors_in_the_tree()
    public = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.EverytickError) and not name.startswith("_")
    }

    assert set(drawn) == public
    assert [
        name for name, base in drawn.items() if base not in {kind.__name__ for kind in getattr(errors, name).__mro__}
    ] == []
