"""From another scheduler to a store, a look at the coming days, and back again, as in a migration."""

import json
from pathlib import Path

from tests.acceptance.cli.terminal import Terminal, everytick

CRONTAB = """\
CRON_TZ=Europe/Berlin
MAILTO=ops
# every quarter of an hour
*/15 * * * * /bin/echo polled
30 2 * * 1-5 /bin/echo nightly
@reboot /bin/echo up
"""


def test_a_crontab_is_imported_checked_applied_foreseen_and_exported(tmp_path: Path) -> None:
    (tmp_path / "crontab").write_text(CRONTAB)
    store = ("--store", "sqlite:///jobs.db")

    imported = everytick(tmp_path, "import", "crontab", "crontab", "-o", "jobs")
    assert imported.returncode == 0
    assert "2 jobs imported, 2 things not carried over" in imported.stderr
    assert everytick(tmp_path, "validate", "jobs").returncode == 0
    assert everytick(tmp_path, "db", "migrate", *store).returncode == 0
    assert everytick(tmp_path, "apply", "jobs", *store).returncode == 0

    foreseen = json.loads(everytick(tmp_path, "simulate", "--days", "7", "--json", *store).stdout)
    runs = {job["job"]: job["runs"] for job in foreseen["jobs"]}
    # What passed between `apply` and `simulate` is late by then, and runs too.
    assert runs.keys() == {"echo", "echo-2"}
    assert (runs["echo"] - 7 * 24 * 4, runs["echo-2"] - 5) in ((0, 0), (1, 0), (1, 1), (0, 1))

    assert everytick(tmp_path, "export", "jobs", "-o", "out", *store).returncode == 0
    assert everytick(tmp_path, "diff", "out", *store).stdout == ""
    assert everytick(tmp_path, "export", "history", *store).stdout == ""


def test_on_a_terminal_the_week_is_a_map(tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text('version: 1\njobs: {x: {schedule: "0 9 * * *", command: a}}\n')

    # In whole weeks each hour of the week comes equally often; on one of the two days it is not nine right now.
    with Terminal(tmp_path, "simulate", "jobs.yaml", "--days", "28", "--utc", NO_COLOR="1") as terminal:
        terminal.see(r"(Mon|Thu) +@@")
        terminal.see("most: 1 start in an hour")
        assert terminal.ended() == 0
