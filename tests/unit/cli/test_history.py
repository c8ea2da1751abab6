"""`history` tells what ran, newest first."""

import json
from dataclasses import replace
from datetime import UTC, datetime

from everytick import Everytick
from everytick.cli.history import why
from everytick.domain.occurrence import Occurrence
from everytick.domain.statuses import OccurrenceStatus
from tests.unit.cli.conftest import Cli, ran


def test_history_gives_newest_first_with_cause_and_reason(cli: Cli, shop: Everytick) -> None:
    first, second = ran(shop, "nightly", "broken")

    rows = cli("history").rows

    assert {row[5] for row in rows} == {first, second}
    [bad] = [row for row in rows if row[1] == "broken"]
    assert bad[2:4] == ["failed", "trigger"]
    assert bad[6].startswith("ValueError: no \\x1b[31mgood")


def test_the_error_is_the_whole_answer_where_a_run_failed_on_time() -> None:
    """A2: its type and message, and how often it was tried."""
    at = datetime(2026, 7, 1, tzinfo=UTC)
    failed = Occurrence(
        "occ_1", "job_1", 1, at, OccurrenceStatus.FAILED, reason="on time", error="ValueError: boom (4 attempts)"
    )

    assert why(failed) == "ValueError: boom (4 attempts)"
    assert why(replace(failed, reason="asked for")) == "ValueError: boom (4 attempts); asked for"
    assert why(replace(failed, error=None)) == "on time"


def test_history_can_be_narrowed(cli: Cli, shop: Everytick) -> None:
    ran(shop, "nightly", "broken", "nightly")

    assert [row[1] for row in cli("history", "--failed").rows] == ["broken"]
    assert len(cli("history", "nightly").rows) == 2
    assert len(cli("history", "-n", "1").rows) == 1
    assert len(cli("history", "--since", "1h").rows) == 3
    assert cli("history", "--through", "2020-01-01").rows == []
    assert cli("history", "--cause", "replay").rows == []
    assert [row[1] for row in cli("history", "--status", "failed").rows] == ["broken"]


def test_history_as_json_is_one_document(cli: Cli, shop: Everytick) -> None:
    [id_] = ran(shop, "broken")

    [found] = json.loads(cli("history", "broken", "--cause", "trigger", "--json").out)

    assert (found["id"], found["status"], found["job"]) == (id_, "failed", "broken")


def test_mistaken_words_and_times_are_wrong_usage(cli: Cli, shop: Everytick) -> None:
    for arguments in (
        ["history", "--status", "faild"],
        ["history", "--since", "yesterday"],
        ["history", "--after", "soon"],
        ["history", "--since", "1h", "--after", "2026-01-01"],
        ["history", "-n", "0"],
    ):
        done = cli(*arguments)

        assert done.code == 2, arguments
        assert done.err.startswith("everytick: "), arguments


def test_watching_needs_a_terminal(cli: Cli, shop: Everytick) -> None:
    done = cli("list", "--watch")

    assert (done.code, done.out) == (2, "")
    assert "--watch needs a terminal" in done.err
