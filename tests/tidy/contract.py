"""The contract: every requirement by its number, and the tests that hold it.

What is asked for stands in `docs/contract.toml`; what is held is read from the docstrings of
the tests. Started by name (`python -m tests.tidy.contract`) it writes `docs/contract.md` anew.
"""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.tidy.tree import ROOT, parsed, under

DATA = ROOT / "docs/contract.toml"
PAGE = ROOT / "docs/contract.md"

# S0-081, and ranges: S0-081…083, S0-081 … S0-083, S0-081 to S0-083.
NAMED = re.compile(r"\b(?P<seed>S\d)-(?P<first>\d{3})(?:\s*(?:…|to)\s*(?:(?P=seed)-)?(?P<last>\d{3})\b)?")

Tests = Mapping[str, list[tuple[str, str]]]


@dataclass(frozen=True)
class Contract:
    """What is asked for: each number with its subject, and why one may have no test."""

    seeds: dict[str, str]
    subjects: dict[str, str]
    not_applicable: dict[str, str] = field(default_factory=dict)
    measured: dict[str, str] = field(default_factory=dict)
    later: dict[str, str] = field(default_factory=dict)


def numbers_in(text: str) -> Iterator[str]:
    """Give every number that a text names, each end of a range and what lies between."""
    for found in NAMED.finditer(text):
        first, last = int(found["first"]), int(found["last"] or found["first"])
        yield from (f"{found['seed']}-{number:03}" for number in range(first, last + 1))


def read(data: Mapping[str, Any]) -> Contract:
    """Return the contract that the data file states; a later subject holds its numbers as a text with ranges."""
    later = {number: part["subject"] for part in data["later"] for number in numbers_in(part["numbers"])}
    return Contract(data["seeds"], data["subjects"], data["not_applicable"], data.get("measured", {}), later)


def contract() -> Contract:
    return read(tomllib.loads(DATA.read_text(encoding="utf-8")))


def named_tests(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Give the name and the docstring of every test in a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""


def held(paths: Iterable[str]) -> Tests:
    """Return for each number the tests whose docstrings name it, as (file, test)."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in paths:
        for test, docstring in named_tests(parsed(path)):
            for number in dict.fromkeys(numbers_in(docstring)):
                found.setdefault(number, []).append((path, test))
    return found


def suite() -> list[str]:
    return [path for path in under("tests/") if Path(path).name.startswith("test_")]


# -------------------------------------------------------------------------------------------------------- faults


def faults(asked: Contract, tests: Tests) -> list[str]:
    """Return what is wrong between what is asked for and what is held, a sentence each."""
    excused = {**asked.not_applicable, **asked.measured, **asked.later}
    return [
        *(
            f"{number} is listed as measured by {bench}, and there is no such file"
            for number, bench in asked.measured.items()
            if not (ROOT / bench).is_file()
        ),
        *(
            f"{number} ({subject}) has no test: name it in the docstring of one, or list it in docs/contract.toml"
            for number, subject in asked.subjects.items()
            if number not in tests and number not in excused
        ),
        *(
            f"{number} is named by {place}::{test}, and docs/contract.toml does not know it"
            for number, [(place, test), *_] in tests.items()
            if number not in asked.subjects
        ),
        *(
            f"{number} is listed as not applicable, measured or for later, and docs/contract.toml has no subject for it"
            for number in excused
            if number not in asked.subjects
        ),
        *(
            f"{number} is listed both as not applicable and for later: one of them is wrong"
            for number in asked.not_applicable
            if number in asked.later
        ),
        *(
            f"{number} is listed as not applicable, and {tests[number][0][0]} tests it"
            for number in asked.not_applicable
            if number in tests
        ),
    ]


# ---------------------------------------------------------------------------------------------------------- page

HEAD = """\
# The contract

Every requirement of the five documents that everytick grew from, by its number, with the tests that hold it.
A number counts as held only if the docstring of a test names it. This page is written by `python3 dev.py docs`
from those docstrings and from `docs/contract.toml`; edit those, not this.

A figure is measured and never asserted: such a number names the file that measures it and says the limit.

| | in all | held by a test | of these more to come | measured | to come | not applicable |
|---|---|---|---|---|---|---|
"""


def page(asked: Contract, tests: Tests) -> str:
    """Return the page whole."""
    parts = [HEAD, *(count_row(seed, asked, tests) for seed in asked.seeds), "\n"]
    for seed, title in asked.seeds.items():
        rows = [row(number, asked, tests) for number in asked.subjects if number.startswith(seed)]
        parts += [f"## {seed}: {title}\n\n| number | subject | held by |\n|---|---|---|\n", *rows, "\n"]
    return "".join(parts).rstrip("\n") + "\n"


def count_row(seed: str, asked: Contract, tests: Tests) -> str:
    ours = [number for number in asked.subjects if number.startswith(seed)]
    tested = [number for number in ours if number in tests]
    both = [number for number in tested if number in asked.later]
    to_come = [number for number in ours if number in asked.later and number not in tests]
    figures = [number for number in ours if number in asked.measured]
    never = [number for number in ours if number in asked.not_applicable]
    counts = (ours, tested, both, figures, to_come, never)
    return f"| {seed} | {' | '.join(str(len(each)) for each in counts)} |\n"


def row(number: str, asked: Contract, tests: Tests) -> str:
    """Return one number's row: its tests by file, and what is said of it beside them."""
    said = [f"{link(path)}: {names}" for path, names in by_file(tests.get(number, [])).items()]
    if number in asked.not_applicable:
        said.append(f"not applicable: {asked.not_applicable[number]}")
    if number in asked.measured:
        said.append(f"measured by [{asked.measured[number]}](../{asked.measured[number]})")
    if number in asked.later:
        more = "⚠ tested, and more to come" if number in tests else "to come"
        said.append(f"{more}: *{asked.later[number]}*")
    return f"| {number} | {asked.subjects[number]} | {'<br>'.join(said)} |\n"


def by_file(places: Iterable[tuple[str, str]]) -> dict[str, str]:
    grouped: dict[str, str] = {}
    for path, test in places:
        grouped[path] = f"{grouped[path]}, `{test}`" if path in grouped else f"`{test}`"
    return grouped


def link(path: str) -> str:
    return f"[{path.removeprefix('tests/')}](../{path})"


def main() -> None:
    """The page says what the tests say now."""
    PAGE.write_text(page(contract(), held(suite())), encoding="utf-8")


if __name__ == "__main__":
    main()
