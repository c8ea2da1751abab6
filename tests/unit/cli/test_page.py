"""The page of the command line names what there is, and nothing else."""

import re
from pathlib import Path

from everytick.cli.main import SECTIONS
from everytick.config.settings import KEYS, shown_value
from everytick.exits import Exit

PAGE = (Path(__file__).resolve().parents[3] / "docs/cli.md").read_text()


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_page_lists_every_verb_and_no_other() -> None:
    first_columns = re.findall(r"^\| (`.*?`) \|", section("Verbs"), re.MULTILINE)
    named = {word for column in first_columns for word in re.findall(r"`(\w+)", column)}

    assert named - {"zsh", "fish"} == {verb for verbs in SECTIONS.values() for verb in verbs}


def test_the_page_lists_every_exit_code() -> None:
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", section("Exit codes"), re.MULTILINE)} == set(Exit)


def test_the_page_lists_every_setting_with_its_built_in_value() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (?:`(.*?)`)? ?\| ", section("Configuration"), re.MULTILINE)

    assert dict(rows) == {name: shown_value(name, key.built_in) for name, key in KEYS.items()}
