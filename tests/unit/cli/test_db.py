"""Care for a store: made, looked at, copied and pruned."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from everytick import Everytick
from tests.unit.cli.conftest import Cli, ran


def test_migrate_makes_a_store_that_then_answers(plain: Cli, tmp_path: Path) -> None:
    made = plain("db", "migrate", "--store", "sqlite:///new.db")

    assert made.code == 0
    assert "is at schema 1" in made.err
    assert (tmp_path / "new.db").stat().st_mode & 0o777 == 0o600
    assert plain("list", "--store", "sqlite:///new.db").code == 0


def test_status_says_what_the_store_is_and_holds(cli: Cli, shop: Everytick, tmp_path: Path) -> None:
    found = json.loads(cli("db", "status", "--json").out)

    assert (found["kind"], found["store"], found["jobs"]) == ("sqlite", str(tmp_path / "shop.db"), 3)
    assert found["bytes"] > 0
    assert [row for row in cli("db", "status").rows if row[0] == "jobs"] == [["jobs", "3"]]


def test_status_neither_makes_nor_migrates_a_store(plain: Cli, tmp_path: Path) -> None:
    """Not even for an application, which otherwise makes its store when it is first asked."""
    (tmp_path / "status_app.py").write_text("from everytick import Everytick\ntick = Everytick('sqlite:///own.db')\n")
    gone = plain("db", "status", "-a", "status_app")
    assert (gone.code, "everytick db migrate makes it" in gone.err) == (3, True)
    assert not (tmp_path / "own.db").exists()

    (tmp_path / "own.db").touch()
    behind = plain("db", "status", "-a", "status_app", "--json")

    found = json.loads(behind.out)
    assert (behind.code, found["schema"], found["newest_schema"]) == (1, 0, 1)
    assert "there is no store of everytick yet: everytick run makes one" in behind.err
    assert (tmp_path / "own.db").stat().st_size == 0


def test_status_of_a_newer_store_says_what_to_install(cli: Cli, shop: Everytick, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("insert into migration values (7, 'later', 'x', '2099-01-01')")
        connection.commit()

    done = cli("db", "status")

    assert (done.code, ["schema", "7"] in done.rows) == (1, True)
    assert "install the newer everytick here too" in done.err


def test_a_backup_is_a_whole_store_of_its_own(cli: Cli, plain: Cli, shop: Everytick, tmp_path: Path) -> None:
    ran(shop, "nightly")

    done = cli("db", "backup", "copy.db")

    assert (done.code, done.out) == (0, "copy.db\n")
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    assert len(plain("history", "--store", "sqlite:///copy.db").rows) == 1
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)


def test_a_backup_overwrites_nothing(cli: Cli, shop: Everytick, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("precious")

    done = cli("db", "backup", "copy.db")

    assert done.code == 5
    assert "exists already" in done.err
    assert (tmp_path / "copy.db").read_text() == "precious"


def test_a_backup_into_nowhere_is_not_allowed(cli: Cli, shop: Everytick) -> None:
    done = cli("db", "backup", "nowhere/copy.db")

    assert done.code == 4
    assert "cannot be written" in done.err


def test_prune_forgets_only_what_no_retention_keeps(cli: Cli, shop: Everytick) -> None:
    ran(shop, "nightly")

    assert cli("db", "prune").code == 2
    assert cli("db", "prune", "--yes").out == "0\n"
    assert len(cli("history").rows) == 1


def test_a_file_of_another_program_is_refused(plain: Cli, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("create table theirs (x)")

    done = plain("db", "migrate", "--store", "sqlite:///other.db")

    assert done.code == 69
    assert "holds tables of another program" in done.err


def test_an_unknown_care_is_answered_with_the_nearest(plain: Cli) -> None:
    assert "did you mean 'migrate'" in plain("db", "migrte").err
