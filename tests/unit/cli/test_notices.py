"""Jobs that send notices, on the command line."""

import asyncio
from pathlib import Path

from everytick import Everytick, cron, ping
from tests.unit.cli.conftest import Cli, ran, stored


def _told(shop: Everytick) -> None:
    """Let a job of the application fail, and its notice be sent."""
    shop.define("told", cron("0 0 1 1 *"), on_failure=ping("https://example.org/check")).command("fail", ["false"])
    asyncio.run(stored(shop))
    ran(shop, "told")


def test_jobs_that_send_notices_are_listed_only_where_they_are_wanted(cli: Cli, shop: Everytick) -> None:
    """A18: `list` leaves them out unless it is asked with --all."""
    _told(shop)

    assert "told.on_failure" not in cli("list").out
    [row] = [row for row in cli("list", "--all").rows if row[0] == "told.on_failure"]
    assert row[1] == "enabled"
    assert "when the job begins to fail" in cli("show", "told.on_failure").out


def test_an_export_leaves_out_what_follows_from_the_job(cli: Cli, shop: Everytick) -> None:
    """A18: a file says on_failure, and the store that takes it makes the job itself."""
    _told(shop)

    said = cli("export", "jobs")

    assert 'on_failure: {ping: "https://example.org/check"}' in said.out
    assert "told.on_failure" not in said.out + said.err


def test_show_tells_who_is_told(cli: Cli, shop: Everytick) -> None:
    _told(shop)

    assert "https://example.org/check" in cli("show", "told").out


def test_the_address_of_a_mail_server_is_shown_without_its_password(plain: Cli, shop: Everytick, address: str) -> None:
    """A18: `config` says where e-mail is handed in and hides the password."""
    Path("everytick.toml").write_text(f'store = "{address}"\nsmtp = "smtp://ops:geheim@mail.example.org"\n')

    said = plain("config", "show")

    assert "mail.example.org" in said.out
    assert "geheim" not in said.out + said.err
