"""SQL texts: codes have names, and the tables of both stores know the same ones."""

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import pytest

from everytick.domain.codes import ATTEMPT_CODE, CAUSE_CODE, IN_SQL, RUN_CODE, STATUS_CODE
from tests.tidy.tree import ROOT

STORES = ROOT / "src/everytick/stores"
MIGRATIONS = sorted(STORES.glob("*/migrations/*.sql"))
TEXTS = sorted(path for path in STORES.glob("*/**/*.sql") if path not in MIGRATIONS)

_BARE = re.compile(r"(?:status|cause)\s*(?:=|<>|<=?|>=?|(?:not )?in \(|between)\s*\d", re.IGNORECASE)
_MARKER = re.compile(r"\{([a-z_]+\.[a-z_]+)\}")


def test_codes_stand_by_name_in_sql() -> None:
    """A number beside status or cause says nothing to a reader, and outlives a change of the table unseen."""
    assert len(TEXTS) >= 3
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in TEXTS
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if _BARE.search(line) and not line.startswith("--")
    ]
    assert found == []


def test_every_code_that_a_text_names_is_known() -> None:
    named = {name for path in TEXTS for name in _MARKER.findall(path.read_text("utf-8"))}
    assert named <= set(IN_SQL)


@pytest.mark.parametrize(
    ("table", "codes"),
    [
        ("occurrence_status", STATUS_CODE),
        ("run_status", RUN_CODE),
        ("attempt_status", ATTEMPT_CODE),
        ("cause", CAUSE_CODE),
    ],
)
@pytest.mark.parametrize("path", MIGRATIONS, ids=lambda path: path.parts[-3])
def test_the_numbers_in_the_tables_are_those_of_the_code(path: Path, table: str, codes: Mapping[StrEnum, int]) -> None:
    """S0-055: a status or cause is a small number in the tables, and each number has one meaning for ever."""
    text = path.read_text("utf-8")
    [rows] = re.findall(rf"insert into (?:everytick\.)?{table} values\s([^;]*);", text)
    assert {name: int(code) for code, name in re.findall(r"\((\d+), '(\w+)'\)", rows)} == {
        str(member): code for member, code in codes.items()
    }
