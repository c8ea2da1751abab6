"""Every Python block on a page runs, and prints what the page says it prints.

The blocks of one page share their names, in order. A block marked `text` right after one
marked `python` is what that one prints.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\s*^```text\n(?P<prints>.*?)^```$)?", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_EXAMPLES = [page for page in PAGES if BLOCK.search(page.read_text())]


def run_page(page: Path) -> list[tuple[str, str | None]]:
    """Run the blocks of a page; return what each printed and what the page says it prints."""
    names: dict[str, object] = {"__name__": "__page__"}
    text = page.read_text()
    told = []
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start("code"))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + block["code"], str(page), "exec"), names)
        told.append((printed.getvalue(), block["prints"]))
    return told


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run_and_print_what_it_says(page: Path) -> None:
    for printed, promised in run_page(page):
        assert promised is None or printed == promised


def test_the_readme_has_an_example_with_its_output() -> None:
    assert any(promised for _, promised in run_page(ROOT / "README.md"))
