"""`coverage` tells which data of a job are done, and how to repair the rest."""

import asyncio
import json

import pytest

from everytick import Everytick, backfill_from, cron
from tests.unit.cli.conftest import Cli, ran, stored

SPAN = "--after", "2026-01-01", "--through", "2026-01-03", "--utc"


@pytest.fixture
def shop(address: str) -> Everytick:
    """An application with `nightly`, which begins in the past and makes up for nothing."""
    app = Everytick(address, name="shop")
    since = backfill_from("2026-01-01T00:00:00Z")

    @app.job(cron("30 2 * * *", tz="Europe/Berlin"), recovery="mark_as_missed", on_create=since)
    def nightly() -> None: ...

    asyncio.run(stored(app))
    return app


def test_coverage_tells_gaps_and_the_backfill_that_fills_them(cli: Cli, shop: Everytick) -> None:
    """B7: an instant that did not run is missing, and the reason is told."""
    ran(shop, "nightly")
    said = cli("coverage", "nightly", *SPAN)
    [gap] = said.rows
    assert said.code == 1
    assert gap[2:] == ["missing", "2", "missed"]
    assert (
        "everytick backfill plan nightly --after 2025-12-31T01:30:00+00:00 --through 2026-01-02T01:30:00+00:00"
        in said.err
    )


def test_coverage_is_told_as_json_too(cli: Cli, shop: Everytick) -> None:
    ran(shop, "nightly")
    said = cli("coverage", "nightly", *SPAN, "--json")
    ledger = json.loads(said.out)
    assert (ledger["job"], [each["state"] for each in ledger["spans"]]) == ("nightly", ["missing"])


def test_what_history_does_not_tell_of_is_no_gap(cli: Cli, shop: Everytick) -> None:
    ran(shop, "nightly")
    said = cli("coverage", "nightly", "--after", "2025-01-01", "--through", "2025-01-03", "--utc")
    assert said.code == 0
    assert [row[2:] for row in said.rows] == [["unknown", "2", "before the job was stored"]]
    assert "backfill" not in said.err


def test_a_time_without_an_instant_is_whole(cli: Cli, shop: Everytick) -> None:
    ran(shop, "nightly")
    said = cli("coverage", "nightly", "--after", "2026-01-01T02:00Z", "--through", "2026-01-01T03:00Z")
    assert (said.code, said.rows) == (0, [])
    assert "no instant in that time" in said.err
