"""`everytick db move`: what it asks, says, and leaves in both stores."""

import json
from pathlib import Path

import pytest

from everytick import Everytick
from tests.unit.cli.conftest import Cli, ran


def test_a_store_is_moved_and_both_say_so(cli: Cli, plain: Cli, shop: Everytick, tmp_path: Path) -> None:
    """B16."""
    ran(shop, "nightly")
    before = cli("history", "--json").out

    moved = cli("db", "move", f"sqlite:///{tmp_path / 'shop.db'}", "sqlite:///new.db", "--yes")

    assert (moved.code, moved.out) == (0, f"sqlite:///{tmp_path / 'new.db'}\n")
    assert "both stores hold the same" in moved.err
    assert "3 jobs and" in moved.err
    assert plain("history", "--json", "--store", "sqlite:///new.db").out == before
    left = cli("list")
    assert (left.code, "has moved to sqlite:///" in left.err) == (69, True)
    assert "has moved to" in json.loads(cli("db", "status", "--json").out)["move"]
    assert "came from" in json.loads(plain("db", "status", "--json", "--store", "sqlite:///new.db").out)["move"]


def test_settings_name_the_stores_so_that_no_password_stands_in_a_command(
    cli: Cli, shop: Everytick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(shop, "nightly")
    missing = cli("db", "move", "--yes")
    assert (missing.code, "no store to move to was named" in missing.err) == (2, True)

    monkeypatch.setenv("EVERYTICK_NEXT_STORE", "sqlite:///new.db")
    assert cli("db", "move", "--yes").code == 0
    # The settings still name the old store first, and the way to the new one.
    listed = cli("list")
    assert (listed.code, "nightly" in listed.out) == (0, True)


def test_a_move_asks_first_and_refuses_clearly(cli: Cli, shop: Everytick, tmp_path: Path) -> None:
    ran(shop, "nightly")
    unasked = cli("db", "move", f"sqlite:///{tmp_path / 'shop.db'}", "sqlite:///new.db")
    assert "pass --yes" in unasked.err
    same = cli("db", "move", f"sqlite:///{tmp_path / 'shop.db'}", "sqlite:///shop.db", "--yes")
    assert (same.code != 0, "are the same store: name two" in same.err) == (True, True)
    none = cli("db", "move", f"sqlite:///{tmp_path / 'shop.db'}", "sqlite:///new.db", "--give-up", "--yes")
    assert "there is nothing to give up" in none.err
    assert not (tmp_path / "new.db").exists()
