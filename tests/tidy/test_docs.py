"""The docs name nothing that is not there: links, headings, files of the repository."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.tidy.tree import ROOT, files, lines, parsed

PAGES = [path for path in files() if path.endswith(".md")]
FOLDERS = r"(?:\.ci|bench|docs|examples|requirements|src|tests)"

LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
NAMED_FILE = re.compile(rf"(?<![\w./-]){FOLDERS}/[\w./-]*\w/?")


def links(page: str) -> Iterator[tuple[str, str]]:
    for place, line in lines(page):
        for found in LINK.finditer(line):
            yield place, found["target"]


def anchors(page: str) -> set[str]:
    """Return the anchors that a reader of the page can jump to: one per heading."""
    headings = (line.lstrip("#") for _, line in lines(page) if line.startswith("#"))
    return {re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def is_there(page: str, target: str) -> bool:
    """Say whether a relative link leads to a file, and to a heading in it if it names one."""
    path, _, anchor = target.partition("#")
    reached = ((ROOT / page).parent / path).resolve() if path else ROOT / page
    if not reached.exists() or not reached.is_relative_to(ROOT):
        return False
    return not anchor or anchor in anchors(str(reached.relative_to(ROOT)))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    inner = [(place, target) for place, target in links(page) if not re.match(r"https?://|mailto:", target)]

    assert [f"{place}: {target}" for place, target in inner if not is_there(page, target)] == []


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_only_files_that_exist(page: str) -> None:
    named = [(place, name) for place, line in lines(page) for name in NAMED_FILE.findall(line)]

    assert [f"{place}: {name}" for place, name in named if not (ROOT / name).exists()] == []


def test_code_and_settings_name_only_pages_and_benchmarks_that_exist() -> None:
    named = [
        (place, name)
        for path in files()
        if not path.endswith((".md", "/test_contract.py"))  # that one names a file which is not there
        for place, line in lines(path)
        for name in re.findall(r"(?<![\w./-])(?:docs/[\w./-]+\.md|bench/\w+\.py)", line)
    ]

    assert [f"{place}: {name}" for place, name in named if not (ROOT / name).exists()] == []


def test_every_page_of_the_docs_can_be_reached_from_its_index() -> None:
    reached = {
        str(((ROOT / page).parent / target.partition("#")[0]).resolve().relative_to(ROOT))
        for page in PAGES
        if page.startswith("docs/")
        for _, target in links(page)
        if "://" not in target
    }

    assert [page for page in PAGES if page.startswith("docs/") and page not in reached | {"docs/index.md"}] == []


MAPPED = "access answers app beat cli client deciding metrics node runners simulate stores testing".split()
"""The packages of which the architecture page names every module."""


@pytest.mark.parametrize("folder", [f"src/everytick/{package}/" for package in MAPPED])
def test_the_architecture_names_every_module(folder: str) -> None:
    """A reader who opens the source for the first time finds each module by what it does, and none that is gone."""
    page = "\n".join(line for _, line in lines("docs/architecture.md"))
    _, _, after = page.partition(f"\n### `{folder}`")
    section = re.split(r"^##", after, maxsplit=1, flags=re.MULTILINE)[0]
    paths = {name.removeprefix(folder) for name in re.findall(r"`([\w/]+\.py)`", section)}
    named = {path for path in paths if not path.startswith(("src/", "tests/"))}
    modules = {path.removeprefix(folder) for path in files() if path.startswith(folder) and path.endswith(".py")}

    assert named == {module for module in modules if not module.endswith("__init__.py")}


ARCHITECTURE = "docs/architecture.md"
PROTOCOLS = "src/everytick/stores/protocols.py"


def verbs() -> dict[str, set[str]]:
    """Return the verbs of each part of the seam; what a part repeats of `Store` is no verb of its own."""
    parts = {
        node.name: {
            each.name
            for each in node.body
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not each.decorator_list
        }
        for node in parsed(PROTOCOLS).body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Store")
    }
    return {part: names if part == "Store" else names - parts["Store"] for part, names in parts.items()}


def test_the_architecture_names_and_counts_every_verb_of_a_store() -> None:
    """S0-053: a reader who builds a store finds every verb in the table, and none that is gone."""
    page = (ROOT / ARCHITECTURE).read_text()
    rows = re.findall(r"^\| `(\w+Store|Store)`[^|]*\| ([^|]*) \|$", page, flags=re.MULTILINE)
    counted = re.search(
        r"^(\d+) verbs, (\d+) of them of tick, run and jobs and (\d+) about people,", page, flags=re.MULTILINE
    )

    known = verbs()
    assert {part: set(re.findall(r"`(\w+)`", named)) for part, named in rows} == known
    of_a_tick = sum(len(known[part]) for part in ("Store", "PlanStore", "RunStore", "JobStore"))
    assert counted is not None
    assert tuple(map(int, counted.groups())) == (sum(map(len, known.values())), of_a_tick, len(known["AccessStore"]))
    assert of_a_tick <= 30, "what only looks is a question of ask, and what a person asks for is a fact or an edit"


def test_the_tree_of_a_node_shows_every_part_that_is_made_for_it() -> None:
    """What `Node` and `Engine` make is in the drawing, by the name of its module."""
    [tree] = re.findall(r"^```\n(node\.py .*?)^```", (ROOT / ARCHITECTURE).read_text(), flags=re.MULTILINE | re.DOTALL)
    drawn, made = set(re.findall(r"(\w+)\.py", tree)), set()
    for owner in ("node", "engine"):
        code = parsed(f"src/everytick/node/{owner}.py")
        called = {
            node.func.id for node in ast.walk(code) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        made |= {
            node.module.removeprefix("everytick.node.")
            for node in ast.walk(code)
            if isinstance(node, ast.ImportFrom)
            and node.module is not None
            and node.module.startswith("everytick.node.")
            if called & {alias.name for alias in node.names}
        }

    assert made - drawn == set()


def test_the_index_lists_every_decision() -> None:
    """The test above lets a page pass that any other page links; a reader looks for decisions in the index."""
    listed = {target for _, target in links("docs/index.md")}
    decisions = [page.removeprefix("docs/") for page in PAGES if page.startswith("docs/decisions/")]

    assert [page for page in decisions if page not in listed] == []
