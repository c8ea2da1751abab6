"""At a terminal: tables, colour, the zone by its name; and never an escape sequence of others."""

import re
import signal
from pathlib import Path

import pytest

from tests.acceptance.cli.terminal import Terminal, everytick


def test_a_table_has_headings_colour_and_the_zones_name(folder: Path) -> None:
    everytick(folder, "run", "--once", "-a", "shop")

    with Terminal(folder, "list", "-a", "shop", TZ="Europe/Berlin") as terminal:
        assert terminal.ended() == 0

    heading, *rows, last = terminal.text.strip().splitlines()
    assert last == "no node is running: everytick run -a shop starts one"
    assert "next run (Europe/Berlin)" in heading
    assert [row.split()[0] for row in rows] == ["broken", "nightly", "pulse"]
    assert re.search(r"\d\d:\d\d:\d\d ", rows[1])
    assert "\x1b[1m" in terminal.raw


def test_columns_stay_in_line_under_wide_letters_and_in_a_narrow_window(folder: Path) -> None:
    (folder / "wide.py").write_text(
        "from everytick import Everytick\n"
        "tick = Everytick('sqlite:///wide.db')\n"
        "for name in ('夜間バックアップ', 'plain', 'cafe\\u0301'):\n"
        "    tick.define(name, '0 0 1 1 *').command('work', ['true'])\n"
    )
    everytick(folder, "run", "--once", "-a", "wide")

    with Terminal(folder, "list", "-a", "wide", COLUMNS="100", NO_COLOR="1") as terminal:
        assert terminal.ended() == 0

    _, *rows, _ = terminal.text.strip().splitlines()
    beginnings = {row[: row.index("enabled")] for row in rows}
    assert beginnings == {"夜間バックアップ  ", "plain" + " " * 13, "cafe\u0301" + " " * 14}


def test_a_long_last_column_is_wrapped_and_never_cut(folder: Path) -> None:
    """A2, A10: a finding that is cut says nothing."""
    everytick(folder, "run", "--once", "-a", "shop")

    with Terminal(folder, "doctor", "-a", "shop", COLUMNS="70", NO_COLOR="1") as terminal:
        assert terminal.ended() in (0, 1)

    assert all(len(line) <= 70 for line in terminal.text.splitlines())
    assert "…" not in terminal.text
    finding = "there are enabled jobs and no node is alive: everytick run -a shop starts one"
    assert finding in " ".join(terminal.text.split())


def test_a_table_can_be_watched_until_ctrl_c(folder: Path) -> None:
    everytick(folder, "run", "--once", "-a", "shop")

    with Terminal(folder, "list", "--watch", "-a", "shop") as terminal:
        terminal.see(r"(?s)nightly.*nightly.*nightly")
        everytick(folder, "pause", "nightly", "-a", "shop")
        terminal.see(r"nightly +paused")
        terminal.signal(signal.SIGINT)
        assert terminal.ended() == 130

    assert "Traceback" not in terminal.text


def test_a_traceback_reaches_no_terminal_raw(folder: Path) -> None:
    (folder / "evil.py").write_text("raise ValueError('\\x1b[2Jgone')\n")

    with Terminal(folder, "run", "-a", "evil", "--debug", NO_COLOR="1") as terminal:
        assert terminal.ended() == 65

    assert "Traceback" in terminal.text
    assert "\x1b" not in terminal.raw


@pytest.mark.parametrize("wish", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_who_wants_no_colour_gets_none(folder: Path, wish: dict[str, str]) -> None:
    with Terminal(folder, "explain", "61 * * * *", **wish) as terminal:
        assert terminal.ended() == 2

    assert "\x1b" not in terminal.raw
    assert terminal.text.startswith("everytick: Invalid cron expression")


def test_an_error_is_one_sentence_in_red(folder: Path) -> None:
    with Terminal(folder, "explain", "61 * * * *") as terminal:
        assert terminal.ended() == 2

    assert terminal.raw.startswith("\x1b[31meverytick: Invalid cron expression")
    assert len(terminal.text.strip().splitlines()) == 1


def test_what_others_wrote_reaches_no_terminal_raw(folder: Path) -> None:
    (folder / "evil.py").write_text(
        "from everytick import Everytick\n"
        "tick = Everytick('sqlite:///evil.db')\n"
        "@tick.job('0 0 1 1 *', description='\\x1b]0;owned\\x07', on_create='immediately')\n"
        "def evil():\n    raise ValueError('\\x1b[2Jgone\\x9b31m')\n"
    )
    everytick(folder, "run", "--once", "-a", "evil")
    [[*_, id_, _]] = everytick(folder, "history", "-a", "evil").rows

    for arguments in (["show", "evil"], ["show", id_], ["history"], ["show", "no\x1b[31mjob"]):
        with Terminal(folder, *arguments, "-a", "evil", NO_COLOR="1") as terminal:
            terminal.ended()
        assert "\x1b" not in terminal.raw, arguments
        assert "\x9b" not in terminal.raw, arguments
        assert "\x07" not in terminal.raw, arguments


def test_a_reader_that_has_seen_enough_is_no_error(folder: Path) -> None:
    import subprocess

    from tests.acceptance.cli.terminal import COMMAND, environment

    text = f"set -o pipefail; {COMMAND} explain '* * * * *' -n 9000 | head -1"
    done = subprocess.run(["bash", "-c", text], cwd=folder, env=environment(), capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


CROWD = """
from everytick import Everytick, any_of, cron, every
tick = Everytick('sqlite:///crowd.db')
weekly = any_of(cron('0 6 * * mon-fri', tz='Europe/Berlin'), cron('30 9,15 * * sat,sun', tz='Europe/Berlin'))
@tick.job(weekly, name='nightly-backup-of-all-warehouses', on_create='immediately')
def backup():
    raise ValueError('the share of warehouse 17 is not mounted, and nothing was written to it or to its mirror')
@tick.job(every('P1Y'), on_create='immediately')
def pulse(): ...
"""


@pytest.fixture
def crowd(folder: Path) -> Path:
    """An application with a long name, a schedule of two parts and a long error; each job has run once."""
    (folder / "crowd.py").write_text(CROWD)
    everytick(folder, "run", "--once", "-a", "crowd")
    return folder


@pytest.mark.parametrize("wide", [80, 100, 160])
def test_no_table_is_wider_than_the_terminal_and_nothing_of_it_is_cut(crowd: Path, wide: int) -> None:
    """A10: text goes on in its column, or below its row, and the heading names the zone once."""
    for verb in ("history", "list", "next", "nodes"):
        with Terminal(crowd, verb, "-a", "crowd", COLUMNS=str(wide), TZ="Asia/Tokyo", NO_COLOR="1") as terminal:
            assert terminal.ended() == 0

        assert max(map(len, terminal.text.splitlines())) <= wide, terminal.text
        assert "…" not in terminal.text
        assert terminal.text.count("(Asia/Tokyo)") == 1, terminal.text
        assert "JST" not in terminal.text


@pytest.mark.parametrize("wide", [80, 100, 160])
def test_an_explanation_names_the_zone_once_and_fits(crowd: Path, wide: int) -> None:
    """A10, A17: of the job and of one of its instants."""
    with Terminal(crowd, "explain", "pulse", "-a", "crowd", COLUMNS=str(wide), TZ="Asia/Tokyo", NO_COLOR="1") as job:
        assert job.ended() == 0
    at = everytick(crowd, "history", "pulse", "-a", "crowd").rows[0][0]
    with Terminal(crowd, "explain", "pulse", "--at", at, "-a", "crowd", COLUMNS=str(wide), NO_COLOR="1") as instant:
        assert instant.ended() == 0

    assert job.text.count("Asia/Tokyo") == 1
    assert "JST" not in job.text
    assert "on_create asked for it" in " ".join(job.text.split())
    for terminal in (job, instant):
        assert max(map(len, terminal.text.splitlines())) <= wide, terminal.text
    assert instant.text.startswith("ran: pulse at 20")


def test_a_value_of_many_characters_is_whole_in_a_table(crowd: Path) -> None:
    """A10: more than 300 characters too."""
    queues = ",".join(f"queue-{number}" for number in range(60))

    with Terminal(crowd, "config", "show", COLUMNS="80", NO_COLOR="1", EVERYTICK_QUEUES=queues) as terminal:
        assert terminal.ended() == 0

    assert "…" not in terminal.text
    assert "queue-59" in terminal.text


@pytest.mark.parametrize("wide", [80, 100, 160])
def test_an_id_of_the_history_is_short_and_names_its_occurrence(crowd: Path, wide: int) -> None:
    """A10: as it stands in the table it is accepted; a pipe has all of it."""
    ids = {row[1]: row[5] for row in everytick(crowd, "history", "-a", "crowd").rows}

    with Terminal(crowd, "history", "pulse", "-a", "crowd", COLUMNS=str(wide), NO_COLOR="1") as terminal:
        assert terminal.ended() == 0

    assert "occ_" not in terminal.text
    short = ids["pulse"][4:12]
    assert f" {short}" in terminal.text
    assert f"id\t{ids['pulse']}" in everytick(crowd, "show", short, "-a", "crowd").stdout
