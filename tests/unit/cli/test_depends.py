"""depends_on on the command line: what a job depends on, what its next run needs, and what nothing comes of."""

import asyncio

from everytick import Everytick
from tests.unit.cli.conftest import Cli, stored


def chain(address: str) -> Everytick:
    app = Everytick(address, name="shop")
    app.job("0 * * * *", name="extract")(print)
    app.job("0 * * * *", name="load", depends_on={"job": "extract", "deadline": "30m"})(print)
    asyncio.run(stored(app))
    return app


def test_show_and_next_say_on_what_a_job_depends(cli: Cli, address: str) -> None:
    """S1-042."""
    chain(address)

    shown = {row[0]: row[1] for row in cli("show", "load").rows if len(row) > 1}
    assert shown["depends on"] == "extract for the same instant, waits up to 30m"
    notes = {row[1]: row[2] for row in cli("next").rows}
    assert notes == {"extract": "", "load": "depends on extract"}


def test_doctor_finds_jobs_that_wait_for_one_of_which_nothing_comes(cli: Cli, address: str) -> None:
    """S1-042: a removed one is a finding, a paused one a warning."""
    chain(address)
    assert not [row for row in cli("doctor").rows if row[0] == "dependencies"]

    cli("pause", "extract")
    [paused] = [row for row in cli("doctor").rows if row[0] == "dependencies"]
    assert paused[1:] == ["warning", "'load' depends on 'extract', which is paused: what waits for it is skipped"]
    cli("remove", "extract", "--yes")
    [removed] = [row for row in cli("doctor").rows if row[0] == "dependencies"]
    assert (removed[1], "which is removed" in removed[2]) == ("finding", True)
