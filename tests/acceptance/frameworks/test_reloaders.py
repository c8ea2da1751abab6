"""A12: development servers that reload. After an edit only the new code runs: the parent of a reloader has no node."""

from contextlib import suppress

import pytest

from tests.acceptance.frameworks.project import STARTED_WITHIN, Project
from tests.servers.keeper import free_port

JOBS = """
import os
from everytick import Everytick, every

tick = Everytick("sqlite:///jobs.db", name="shop")
os.write(1, b"loaded old\\n")

@tick.job(every("200ms"), overlap="allow")
async def beat():
    os.write(1, f"ran old {os.getpid()}\\n".encode())
"""

FLASK = """
import logging
from flask import Flask
from jobs import tick

logging.basicConfig(level="INFO")
app = Flask(__name__)
tick.start_background()

if __name__ == "__main__":
    app.run(debug=True, port=PORT)
"""

FASTAPI = """
import logging
from fastapi import FastAPI
from jobs import tick

logging.basicConfig(level="INFO")
app = FastAPI(lifespan=tick.lifespan)
"""

MANAGE = """
import os, sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
from django.core.management import execute_from_command_line

execute_from_command_line(sys.argv)
"""

SETTINGS = """
SECRET_KEY = "for a test"
DEBUG = True
USE_TZ = True
ROOT_URLCONF = "urls"
INSTALLED_APPS = ["shop"]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}
"""

APPS = """
from django.apps import AppConfig

class Shop(AppConfig):
    name = "shop"

    def ready(self):
        from jobs import tick
        tick.start_background()
"""

COMMANDS = {
    "flask run": ["-m", "flask", "--app", "web", "run", "--debug", "--port"],
    "runserver": ["manage.py", "runserver", "--skip-checks"],
    "uvicorn": ["-m", "uvicorn", "web:app", "--reload", "--port"],
}
LOGGED = {
    "flask run": "a reloader runs this program in a process of its own: no node is started in this one",
    "runserver": "a reloader runs this program in a process of its own: no node is started in this one",
    "python app.py": "a reloader runs this program in a process of its own: the node of this one stops",
}


SERVERS = ["flask run", "python app.py", "runserver", pytest.param("uvicorn", marks=pytest.mark.slow)]


@pytest.mark.parametrize("server", SERVERS)
def test_after_an_edit_only_the_new_code_runs(server: str, project: Project) -> None:
    """A12."""
    port = str(free_port())
    project.write("jobs.py", JOBS)
    project.write("web.py", (FASTAPI if server == "uvicorn" else FLASK).replace("PORT", port))
    project.write("manage.py", MANAGE)
    project.write("settings.py", SETTINGS)
    project.write("urls.py", "urlpatterns = []\n")
    project.write("shop/__init__.py", "")
    project.write("shop/apps.py", APPS)
    command = ["web.py"] if server == "python app.py" else [*COMMANDS[server], port]

    started = project.python(*command)
    fleet = project.fleet
    for _ in range(2):
        fleet.hear("ran old", within=STARTED_WITHIN)
    project.edit("jobs.py", " old", " new")
    _hear_new(project)
    ran = [fleet.hear("ran ").split() for _ in range(8)]

    assert {word for _, word, _ in ran} == {"new"}
    assert str(started.process.pid) not in {pid for _, _, pid in ran}
    if server in LOGGED:
        assert started.errors().count(LOGGED[server]) == 1


def _hear_new(project: Project) -> None:
    """Return once the new code has run. A reloader may have looked at the file for the first time after the edit."""
    for _ in range(9):
        with suppress(AssertionError):
            project.fleet.hear("loaded new", within=STARTED_WITHIN / 9)
            break
        (project.folder / "jobs.py").touch()
    project.fleet.hear("ran new", within=STARTED_WITHIN)
