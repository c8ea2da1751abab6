"""A13: a Django project as docs/django.md builds it, with Django's own template and its own commands."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.frameworks.project import GUNICORN, STARTED_WITHIN, Project, get
from tests.acceptance.node.fleet import Fleet
from tests.servers.keeper import free_port

PAGE = Path(__file__).parents[3] / "docs/django.md"
FILE = re.compile(r"^```py\n# (?P<path>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

OWN_APPLICATION = """
from everytick import Everytick, every
from shop.models import Order

tick = Everytick("sqlite:///own.db", name="own", threads=1)

@tick.job(every("P1Y"))
def count():
    from django.db import connection

    begins_without_connection = connection.connection is None
    Order.objects.count()
    return begins_without_connection

@tick.job(every("P1Y"), runner="process")
def count_elsewhere():
    return Order.objects.count()
"""


def done(folder: Path, *command: str, environment: Mapping[str, str] | None = None) -> str:
    """Run Python in the folder, and return what it printed."""
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=STARTED_WITHIN,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the page, with an empty database."""
    folder = tmp_path_factory.mktemp("django")
    done(folder, "-m", "django", "startproject", "mysite", ".")
    (folder / "shop/migrations").mkdir(parents=True)
    for package in ("shop", "shop/migrations"):
        (folder / package / "__init__.py").touch()
    for file in FILE.finditer(PAGE.read_text()):
        path = folder / file["path"]
        settings = path.read_text() if path.name == "settings.py" else ""
        path.write_text(settings + file["text"])
    (folder / "own.py").write_text(OWN_APPLICATION)
    done(folder, "manage.py", "makemigrations")
    done(folder, "manage.py", "migrate")
    return folder


@pytest.fixture
def site(template: Path, tmp_path: Path, fleet: Fleet) -> Project:
    """A copy of the project."""
    return Project(Path(shutil.copytree(template, tmp_path / "site")), fleet, sys.executable)


def test_commands_of_django_start_nothing(site: Project) -> None:
    """A13: jobs are known, and no store is opened; the page's own tests pass."""
    names = "from everytick.django import tick; print(*(each.name for each in tick.definitions))"
    assert "send_receipts" in done(site.folder, "manage.py", "shell", "--command", names)
    assert "Ran 2 tests" in done(site.folder, "manage.py", "test")
    assert "no issues" in done(site.folder, "manage.py", "check")
    assert not list(site.folder.glob("everytick.db*"))


def test_what_the_setting_leaves_out_follows_from_those_of_the_project(site: Project) -> None:
    """The store lies in BASE_DIR, from wherever the command is started; the zone is TIME_ZONE."""
    site.edit("mysite/settings.py", 'EVERYTICK = {"store": "sqlite:///everytick.db"}', 'TIME_ZONE = "Asia/Tokyo"')
    asked = (
        "from everytick.django import tick\n"
        "print(tick.name, tick.define('x', '0 9 * * *').job.schedule.describe(), tick._make_store().address.file)"
    )
    told = done(site.folder.parent, "site/manage.py", "shell", "--command", asked)
    assert f"mysite at 09:00, Asia/Tokyo time {site.folder / 'everytick.db'}" in told


def test_manage_py_has_every_verb_and_runs_the_jobs(site: Project) -> None:
    """A13: the node of `manage.py everytick run` carries out what another command asks for."""
    node = site.python("manage.py", "everytick", "run", "--settings", "mysite.settings")
    site.fleet.hear_error("application mysite", by=node, within=STARTED_WITHIN)
    told = done(site.folder, "manage.py", "everytick", "trigger", "send_receipts", "--wait")
    assert "completed" in told
    assert "send_receipts" in done(site.folder, "manage.py", "everytick", "list", "--json")
    assert "Usage: manage.py everytick run" in done(site.folder, "manage.py", "everytick", "run", "--help")
    node.tell_to_stop()
    assert node.ended() == 0


def test_an_unknown_key_of_the_setting_is_refused_with_the_one_that_was_meant(site: Project) -> None:
    site.edit("mysite/settings.py", '"store":', '"stoer":')
    node = site.python("manage.py", "everytick", "list")
    assert node.ended() == 1
    assert "ImproperlyConfigured: EVERYTICK has an unknown key 'stoer' (did you mean 'store'?)" in node.errors()


def test_an_application_of_one_s_own_finds_django_set_up(site: Project) -> None:
    """A13: in the node and in the processes of tasks. No thread keeps a connection from one run to the next."""
    environment = {"DJANGO_SETTINGS_MODULE": "mysite.settings"}
    node = site.python("-m", "everytick", "run", "-a", "own", environment=environment)
    site.fleet.hear_error("application own", by=node, within=STARTED_WITHIN)
    trigger = ["-m", "everytick", "trigger", "-a", "own", "--wait"]
    for _ in range(2):
        assert "it returned true" in done(site.folder, *trigger, "count", environment=environment)
    assert "it returned 0" in done(site.folder, *trigger, "count_elsewhere", environment=environment)


def test_settings_that_cannot_be_loaded_are_refused_with_the_variable(site: Project) -> None:
    node = site.python("-m", "everytick", "list", "-a", "own", environment={"DJANGO_SETTINGS_MODULE": "mysite.nothing"})
    assert node.ended() == 65
    assert "Django cannot be set up with 'mysite.nothing'" in node.errors()
    assert "correct or unset DJANGO_SETTINGS_MODULE" in node.errors()


def test_a_view_asks_on_commit_and_a_worker_runs_it(site: Project) -> None:
    """A13: gunicorn imports the page's wsgi.py in each worker. After a rollback nothing is asked for."""
    port = free_port()
    site.edit("shop/jobs.py", "    due =", "    print('asked for', number, file=open('asked.txt', 'a'))\n    due =")
    site.edit(
        "shop/views.py", "number=number)\n    return", "number=number)\n        assert number != 'bad'\n    return"
    )
    server = site.python(*GUNICORN, "-w", "2", "-b", f"127.0.0.1:{port}", "mysite.wsgi")
    site.fleet.hear_error("Booting worker", by=server, within=STARTED_WITHIN)
    for path, status in (("/buy/bad", 500), ("/buy/A7", 200)):
        site.fleet.wait_until(partial(_answers, port, path, status), f"it answers {path}", STARTED_WITHIN)
    asked = site.folder / "asked.txt"
    site.fleet.wait_until(lambda: asked.exists() and "asked for A7\n" in asked.read_text(), "it ran")
    assert "bad" not in asked.read_text()


def _answers(port: int, path: str, status: int) -> bool:
    answer = get(port, path)
    return answer is not None and answer[0] == status


ONLY_IMPORTED = """
import django.db
from everytick import Everytick, every

tick = Everytick("memory://", name="only-imported")

@tick.job(every("P1Y"))
def task():
    return "done"

async def main():
    async with tick:
        print((await (await tick.trigger("task")).wait("60s")).status)

import asyncio
asyncio.run(main())
"""


def test_django_that_a_library_has_only_imported_is_left_alone(tmp_path: Path) -> None:
    """Without settings there is no connection to close, and the look for one raised an error before every task."""
    (tmp_path / "app.py").write_text(ONLY_IMPORTED)

    assert done(tmp_path, "app.py") == "completed\n"
