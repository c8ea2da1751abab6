"""user, token and audit: people and programs come in, and what they did is shown."""

import io
import json
import re
from getpass import getuser
from pathlib import Path
from socket import gethostname

import pytest

from everytick import Everytick
from tests.unit.cli.conftest import Cli

PASSWORD = "correct horse battery"


@pytest.fixture
def secret(tmp_path: Path) -> str:
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    return str(file)


def test_users_are_added_listed_changed_and_removed(cli: Cli, shop: Everytick, secret: str) -> None:
    assert "there is no user" in cli("user", "list").err
    first = cli("user", "add", "ben", "--role", "viewer", "--no-password")
    assert (first.code, "must be an admin" in first.err) == (5, True)
    assert cli("user", "add", "ann", "--role", "admin", "--password-file", secret).code == 0
    assert cli("user", "add", "ben", "--role", "viewer", "--grant", "night:operator", "--no-password").code == 0
    assert [row[:4] for row in cli("user", "list").rows] == [
        ["ann", "admin", "", "yes"],
        ["ben", "viewer", "night:operator", "none"],
    ]
    assert cli("user", "role", "ben", "--role", "operator").code == 0
    assert cli("user", "password", "ben", "--password-file", secret).code == 0
    last = cli("user", "remove", "ann", "--yes")
    assert (last.code, "last admin" in last.err) == (5, True)
    assert cli("user", "remove", "ben", "--yes").code == 0
    assert [user["name"] for user in json.loads(cli("user", "list", "--json").out)] == ["ann"]
    assert PASSWORD not in cli("user", "list", "--json").out


def test_no_password_is_taken_from_an_argument(cli: Cli, shop: Everytick, tmp_path: Path) -> None:
    """Other users of the host can see arguments."""
    assert cli("user", "add", "ann", "--role", "admin", "--password", PASSWORD).code == 2
    (tmp_path / "short").write_text("short")
    short = cli("user", "add", "ann", "--role", "admin", "--password-file", str(tmp_path / "short"))
    assert (short.code, "too short" in short.err) == (2, True)
    missing = cli("user", "add", "ann", "--role", "admin", "--password-file", str(tmp_path / "none"))
    assert missing.code == 3


def test_without_a_terminal_a_missing_password_is_said_to_be_missing(
    cli: Cli, shop: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    done = cli("user", "add", "ann", "--role", "admin")
    assert (done.code, done.err) == (
        2,
        "everytick: no password came from standard input: run this at a terminal, or give --password-file FILE\n",
    )


def test_a_token_is_shown_once(cli: Cli, shop: Everytick) -> None:
    """S6."""
    made = cli("token", "add", "deploy", "--role", "operator", "--grant", "night:admin")
    assert re.fullmatch(r"etk_[0-9a-f]{12}_[\w-]{43}\n", made.out)
    [row] = cli("token", "list").rows
    assert row[1:6] == ["deploy", "operate", "night:admin", "", "live"]
    assert made.out.strip().split("_", 2)[2] not in cli("token", "list", "--json").out
    assert cli("token", "add", "deploy", "--role", "viewer").code == 5
    assert cli("token", "revoke", "deploy").code == 0
    assert cli("token", "revoke", "deploy").code == 3
    assert cli("token", "list").rows[0][5] == "revoked"


def test_what_people_do_on_the_command_line_is_in_the_audit(cli: Cli, shop: Everytick) -> None:
    """S17: who, what, why and from where."""
    cli("pause", "nightly", "--reason", "inventory")
    cli("trigger", "broken")
    cli("token", "add", "deploy", "--role", "viewer", "--for-ever")
    told = [deed["text"] for deed in json.loads(cli("audit", "--json").out)["deeds"]]
    assert told == [
        f"{getuser()} added token deploy to read without an end",
        f"{getuser()} triggered job broken",
        f"{getuser()} paused job nightly: inventory",
    ]
    [row] = cli("audit", "--job", "nightly").rows
    assert row[3] == f"command {gethostname()}"
    assert cli("audit", "--by", "nobody-else").out == ""
    page = cli("audit", "-n", "1")
    assert len(page.rows) == 1
    assert "--before 3" in page.err
