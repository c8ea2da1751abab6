"""The contract is whole: every number is held by a test, or a sentence says why it is not, and its page is current."""

import ast
from dataclasses import replace

import pytest

from tests.tidy.contract import PAGE, Contract, contract, faults, held, named_tests, numbers_in, page, read, suite


def test_every_number_is_held_by_a_test_or_listed_with_a_reason() -> None:
    assert faults(contract(), held(suite())) == []


def test_the_page_says_what_the_tests_say() -> None:
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""

    assert written == page(contract(), held(suite())), "the page is old; run: python3 dev.py docs"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("S0-081.", ["S0-081"]),
        ("C-33, S0-081, S1-002: both", ["S0-081", "S1-002"]),
        ("S0-081…083, C-33", ["S0-081", "S0-082", "S0-083"]),
        ("S2-029 … S2-031; J5", ["S2-029", "S2-030", "S2-031"]),
        ("S0-092 to S0-094.", ["S0-092", "S0-093", "S0-094"]),
        ("S0-008 to the last", ["S0-008"]),
        ("S0-008 … S1-003", ["S0-008", "S1-003"]),
        ("A1 … A29, C-01 … C-03, XS0-001", []),
    ],
)
def test_a_docstring_names_numbers_and_ranges_of_them(text: str, numbers: list[str]) -> None:
    assert list(numbers_in(text)) == numbers


def test_only_the_docstrings_of_tests_count() -> None:
    tree = ast.parse(
        '"""S0-001"""\n'
        'def helper():\n    """S0-002"""\n'
        "def test_a():\n    # S0-003\n    assert 'S0-004'\n"
        'async def test_b():\n    """S0-005."""\n'
        'class TestMore:\n    def test_c(self):\n        """S0-006."""\n'
    )

    assert sorted(named_tests(tree)) == [("test_a", ""), ("test_b", "S0-005."), ("test_c", "S0-006.")]


ASKED = Contract(
    {"S0": "All"},
    {"S0-001": "one", "S0-002": "two", "S0-003": "three"},
    not_applicable={"S0-002": "a migration of others"},
    later={"S0-003": "Metrics"},
)
TESTED = {"S0-001": [("tests/test_a.py", "test_one")]}


def test_a_number_that_is_held_or_excused_is_no_fault() -> None:
    assert faults(ASKED, TESTED) == []


def test_a_number_without_test_and_excuse_is_a_fault() -> None:
    [said] = faults(ASKED, {})

    assert said.startswith("S0-001 (one) has no test: name it in the docstring of one, or list it in")


def test_a_number_that_is_measured_names_a_file_that_exists() -> None:
    """A figure is no test: what measures it stands in its place, and can be run."""
    measured = replace(ASKED, measured={"S0-001": "bench/plan.py"})

    assert faults(measured, {}) == []
    assert "measured by [bench/plan.py](../bench/plan.py)" in page(measured, {})
    assert faults(replace(ASKED, measured={"S0-001": "bench/never.py"}), {}) == [
        "S0-001 is listed as measured by bench/never.py, and there is no such file"
    ]


def test_an_unknown_requirement_number_is_a_fault() -> None:
    [said] = faults(ASKED, {**TESTED, "S0-999": [("tests/test_a.py", "test_one")]})

    assert said == "S0-999 is named by tests/test_a.py::test_one, and docs/contract.toml does not know it"


def test_an_excuse_that_is_no_longer_true_is_a_fault() -> None:
    [said] = faults(ASKED, {**TESTED, "S0-002": [("tests/test_a.py", "test_two")]})

    assert said == "S0-002 is listed as not applicable, and tests/test_a.py tests it"


def test_excuses_for_numbers_that_do_not_exist_or_for_both_reasons_are_faults() -> None:
    twice = Contract(ASKED.seeds, ASKED.subjects, {"S0-002": "no", "S0-777": "no"}, later={"S0-002": "Metrics"})

    assert [said[:6] for said in faults(twice, {**TESTED, "S0-003": [("tests/test_a.py", "test_x")]})] == [
        "S0-777",
        "S0-002",
    ]


def test_what_is_tested_before_its_time_is_only_remarked_on_the_page() -> None:
    early = {**TESTED, "S0-003": [("tests/test_a.py", "test_x"), ("tests/test_a.py", "test_y")]}

    assert faults(ASKED, early) == []
    assert "| S0-003 | three | [test_a.py](../tests/test_a.py): `test_x`, `test_y`<br>⚠ tested" in page(ASKED, early)


def test_the_page_counts_and_shows_every_number_once() -> None:
    written = page(ASKED, TESTED)

    assert "| S0 | 3 | 1 | 0 | 0 | 1 | 1 |\n" in written
    assert "| S0-001 | one | [test_a.py](../tests/test_a.py): `test_one` |\n" in written
    assert "| S0-002 | two | not applicable: a migration of others |\n" in written
    assert "| S0-003 | three | to come: *Metrics* |\n" in written


def test_later_subjects_hold_ranges_of_numbers() -> None:
    data = {
        "seeds": {"S0": "All"},
        "subjects": {},
        "not_applicable": {},
        "later": [{"subject": "Metrics", "numbers": "S0-105…107, S1-027"}],
    }

    assert list(read(data).later) == ["S0-105", "S0-106", "S0-107", "S1-027"]
