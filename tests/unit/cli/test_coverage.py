"""`coverage` tells which data of a job are done, and how to repair the rest."""

import json

from everytick import Everytick
from tests.unit.cli.conftest import Cli, ran

SPAN = "--after", "2026-01-01", "--through", "2026-01-03", "--utc"


def test_coverage_tells_gaps_and_the_backfill_that_fills_them(cli: Cli, shop: Everytick) -> None:
    """B7: an instant without an occurrence is missing."""
    ran(shop, "nightly")
    said = cli("coverage", "nightly", *SPAN)
    [gap] = said.rows
    assert said.code == 1
    assert gap[2:] == ["missing", "2", "no occurrence"]
    assert (
        "everytick backfill plan nightly --after 2025-12-31T01:30:00+00:00 --through 2026-01-02T01:30:00+00:00"
        in said.err
    )


def test_coverage_is_told_as_json_too(cli: Cli, shop: Everytick) -> None:
    ran(shop, "nightly")
    said = cli("coverage", "nightly", *SPAN, "--json")
    ledger = json.loads(said.out)
    assert (ledger["job"], [each["state"] for each in ledger["spans"]]) == ("nightly", ["missing"])


def test_a_time_without_an_instant_is_whole(cli: Cli, shop: Everytick) -> None:
    ran(shop, "nightly")
    said = cli("coverage", "nightly", "--after", "2026-01-01T02:00Z", "--through", "2026-01-01T03:00Z")
    assert (said.code, said.rows) == (0, [])
    assert "no instant in that time" in said.err
