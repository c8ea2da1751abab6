"""Every Python block on a page runs, and prints what the page says it prints. Every file of jobs is valid.

The blocks of one page share their names, in order. A block marked `text` right after one
marked `python` is what that one prints.
"""

import contextlib
import io
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from everytick.sources.files import read_file

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\s*^```text\n(?P<prints>.*?)^```$)?", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_EXAMPLES = [page for page in PAGES if BLOCK.search(page.read_text())]


JOBS = re.compile(r"^```yaml\n(?P<text>(?:#[^\n]*\n)?version: 1\n.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_JOBS = [
    (page, number) for page in PAGES for number, _ in enumerate(JOBS.finditer(page.read_text(encoding="utf-8")))
]
BESIDE = {
    "fairs.ics": "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//y//EN\r\nEND:VCALENDAR\r\n",
    "shared.yaml": "version: 1\ncalendars: {closed: {weekdays: [sat, sun]}}\n"
    "templates: {nightly-report: {schedule: '0 3 * * *', command: report}}\njobs: {}\n",
}
"""Files that the examples name."""


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


@pytest.mark.parametrize(("page", "number"), WITH_JOBS, ids=lambda given: getattr(given, "stem", str(given)))
def test_a_file_of_jobs_on_a_page_is_valid_and_its_jobs_run(page: Path, number: int, tmp_path: Path) -> None:
    """A reader copies it: it has no mistake and no warning, and no schedule of it is over."""
    for name, text in BESIDE.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "page.yaml").write_text([found["text"] for found in JOBS.finditer(page.read_text())][number])

    read = read_file(tmp_path / "page.yaml")

    assert (read.mistakes, read.warnings) == ((), ())
    assert [found.job.name for found in read.jobs if found.job.is_over(datetime.now(UTC))] == []
