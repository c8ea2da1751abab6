"""Output of tasks: found in the log folder, never outside of it, and never raw on a terminal."""

import asyncio
import sys
from pathlib import Path

import pytest

from everytick import Everytick, every
from everytick.app.outputs import inside
from everytick.cli.logs import readable
from tests.unit.cli.conftest import Cli


@pytest.fixture
def spoken(address: str) -> str:
    """A job of two tasks has run on a node and said something; return the occurrence's id."""
    app = Everytick(address, name="talk")
    talk = app.define("talk", every("1h"))

    @talk.task
    def first() -> None:
        sys.stdout.write("one \x1b[31mred\n")

    @talk.task(after=["first"])
    def second() -> None:
        sys.stdout.write("two\n")

    async def run() -> str:
        async with app:
            ended = await (await app.trigger("talk")).wait("20s")
        return ended.id

    return asyncio.run(run())


def test_the_output_of_all_attempts_is_written_as_it_was(cli: Cli, spoken: str) -> None:
    done = cli("logs", spoken)

    assert (done.code, done.out) == (0, "one \x1b[31mred\ntwo\n")
    assert done.err == "==> first, attempt 1 <==\n==> second, attempt 1 <==\n"


def test_of_a_job_the_latest_is_shown_and_may_be_narrowed(cli: Cli, spoken: str) -> None:
    assert cli("logs", "talk", "--task", "second").out == "two\n"
    assert cli("logs", "talk", "-f").out == "one \x1b[31mred\ntwo\n"
    assert "no output was kept" in cli("logs", "talk", "--attempt", "2").err


def test_output_that_is_kept_elsewhere_is_told_by_its_node_and_path(cli: Cli, spoken: str, tmp_path: Path) -> None:
    (tmp_path / "shop-logs").rename(tmp_path / "elsewhere")

    done = cli("logs", spoken)

    assert (done.code, done.out) == (0, "")
    assert f"{spoken}/first.1.log in the log folder of node" in done.err


def test_a_job_that_has_not_run_has_no_output(cli: Cli, shop: Everytick) -> None:
    done = cli("logs", "nightly")

    assert done.code == 3
    assert "no occurrence of 'nightly' has started yet" in done.err


def test_a_path_that_leads_out_of_the_folder_is_no_output(tmp_path: Path) -> None:
    assert inside(tmp_path / "logs", "2026-01-01/occ/a.1.log") == tmp_path / "logs/2026-01-01/occ/a.1.log"
    assert inside(tmp_path / "logs", "../secret") is None
    assert inside(tmp_path / "logs", "/etc/passwd") is None


def test_a_terminal_is_shown_lines_and_nothing_that_moves_it() -> None:
    assert readable("a\tb\r\nc\x1b[2Jd\x07\n") == "a       b\nc\\x1b[2Jd\\x07\n"
