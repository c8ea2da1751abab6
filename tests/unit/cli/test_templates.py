"""`templates`, and what `show` says of a job that was made from some."""

import json
from pathlib import Path

from tests.unit.cli.conftest import Cli

FILE = """version: 1
templates:
  nightly: {description: At night, schedule: "0 3 * * *", retry: {max: 3, interval: 30s}, command: "true"}
jobs:
  sales: {template: nightly, priority: 2}
"""


def test_the_templates_are_listed_with_their_place(plain: Cli, tmp_path: Path) -> None:
    """S1-039."""
    (tmp_path / "a.yaml").write_text(FILE)
    done = plain("templates", "a.yaml")

    assert ["Daily 9 AM", "cron: 0 9 * * *", "", "Every day at 9 AM", "built in"] in done.rows
    assert done.rows[-1] == ["nightly", "cron: 0 3 * * *", "tasks, retry", "At night", "a.yaml:3"]
    assert json.loads(plain("templates", "a.yaml", "--json").out)[-1]["policies"] == {
        "retry": {"max": 3, "interval": "30s"}
    }


def test_the_templates_of_an_application_are_listed(plain: Cli, tmp_path: Path) -> None:
    (tmp_path / "shop_templates.py").write_text(
        'from everytick import Everytick\ntick = Everytick("memory://")\ntick.template("hourly", "5 * * * *")\n'
    )
    rows = plain("templates", "-a", "shop_templates:tick").rows

    assert [row[0] for row in rows if row[0].lower() == "hourly"] == ["Hourly", "hourly"]


def test_a_mistake_in_a_file_is_told_and_ends_with_65(plain: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(FILE.replace("retry", "rety"))
    done = plain("templates", "a.yaml")

    assert done.code == 65
    assert "unknown key 'rety' (did you mean 'retry'?)" in done.out


def test_show_says_from_which_template_a_value_comes(plain: Cli, tmp_path: Path) -> None:
    """S1-039."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(FILE)
    assert plain("apply", "jobs").code == 0
    shown = plain("show", "sales", "--jobs", "jobs")

    assert ["templates", "nightly"] in shown.rows
    assert ["schedule", "cron: 0 3 * * *; tz=UTC (from template 'nightly')"] in shown.rows
    assert ["tasks (from template 'nightly')", "sales"] in shown.rows
    assert ["policies", "retry = {'max': 3, 'interval': '30s'} (set by template 'nightly')"] in shown.rows
    assert json.loads(plain("show", "sales", "--jobs", "jobs", "--json").out)["templates"] == {
        "names": ["nightly"],
        "parts": {"retry": "nightly", "schedule": "nightly", "tasks": "nightly"},
    }
