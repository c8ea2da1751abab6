"""`init`, `completion` and `systemd`: from nothing to a service."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from everytick.cli.common_options import Noun, VerbCommand, state
from everytick.cli.exits import Refused
from everytick.cli.output import say, write
from everytick.errors import shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everytick.app import Everytick

_JOBS = '''"""Jobs of this application.

    everytick run            runs them, until Ctrl-C
    everytick list           shows them, from another terminal
    everytick next           shows when they run
    everytick trigger hello  asks for one now
"""

from everytick import Context, Everytick, Retry, cron, every

# Everything is kept in this file. For several hosts: "postgresql://user@host/database".
tick = Everytick("sqlite:///everytick.db", timezone="UTC", name="jobs")


# A plain function, every ten seconds. What it prints is kept: everytick logs hello
@tick.job(every("10s"), task_timeout="5s")
def hello() -> None:
    print("hello")


# At half past two on working days; three more tries if it fails. After an outage it runs once, not once per night.
@tick.job(cron("30 2 * * mon-fri"), retry=Retry(3, "30s"), recovery="execute_last")
async def nightly(ctx: Context, pages: int = 10) -> None:
    for page in range(pages):
        ctx.progress(page, pages, note="pages")


# A job of two tasks, the second after the first.
report = tick.define("report", "0 7 * * mon")


@report.task
def collect() -> int:
    return 42


@report.task(after=["collect"])
def send(ctx: Context) -> None:
    print("there were", ctx.results["collect"])


if __name__ == "__main__":
    tick.run()
'''
_CONFIGURATION = """# Settings of everytick in this folder; what is in force, and why: everytick config show --origin
# The environment (EVERYTICK_SLOTS=10) wins over this file, and options (--slots 10) win over both.

{which}
# slots = 50                # how many occurrences run at once
# queues = ["default"]      # which queues this node works on
# grace_period = "30s"      # how long a stop waits for what runs
# log_folder = "logs"       # where the output of tasks is kept; by default beside the store
# log_level = "info"        # debug, info, warning, error
# log_format = "text"       # text, or json for one object per line
"""


_YAML = """# Jobs of this folder. Every file in it counts, and a change is live at once while `everytick run` runs.
#
#     everytick validate       checks the files: every mistake at once
#     everytick run            runs the jobs, until Ctrl-C
#     everytick list           shows them, from another terminal
#     everytick trigger hello  asks for one now
#
# What may stand here, for editors: everytick schema > everytick.schema.json, and as the first line of a file
# yaml-language-server: $schema=../everytick.schema.json

version: 1
defaults: {timezone: UTC}
jobs:

  # Shell text, every ten seconds. What it prints is kept: everytick logs hello
  hello:
    schedule: every 10s
    task_timeout: 5s
    command: echo hello from "$EVERYTICK_JOB"

  # At half past two on working days; three more tries if it fails. After an outage once, not once per night.
  nightly:
    schedule: "30 2 * * mon-fri"
    retry: {max: 3, interval: 30s}
    recovery: execute_last
    command: [echo, "the occurrence of {{ scheduled_for }}"]

  # Two tasks, the second after the first; both see the folder $EVERYTICK_SCRATCH, which is removed afterwards.
  report:
    schedule: "0 7 * * mon"
    tasks:
      - {name: collect, command: "echo 42 > $EVERYTICK_SCRATCH/number"}
      - {name: send, command: "echo there were $(cat $EVERYTICK_SCRATCH/number)", after: [collect]}
"""
_BY_CODE = 'app = "jobs:tick"           # the application, as module:object\n'
_BY_FILES = """jobs = "jobs"               # the folder of job files, which is watched
# store = "postgresql://user@host/database"  # for several hosts; without it, everytick.db beside the folder
# allow_calls = ["myapp"]   # packages from which files may call functions
"""


@click.command(
    "init",
    cls=VerbCommand,
    help="Write a commented example and its configuration; nothing is overwritten.\n\n"
    "Jobs in Python, or with --yaml in files. Example: everytick init --yaml shop",
)
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@click.option("--yaml", "in_files", is_flag=True, help="Jobs in a watched folder of files: no Python is needed.")
def init_verb(folder: Path, in_files: bool) -> None:
    """Write a commented example and its configuration."""
    example = {folder / "jobs/example.yaml": _YAML} if in_files else {folder / "jobs.py": _JOBS}
    configuration = _CONFIGURATION.format(which=_BY_FILES if in_files else _BY_CODE)
    files = {**example, folder / "everytick.toml": configuration}
    there = [path for path in files if path.exists()]
    if there:
        raise Refused(f"{shown(str(there[0]))} exists already: name another folder, or move it away", Exit.CONFLICT)
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            write(str(path))
    except OSError as error:
        raise Refused(f"{shown(str(folder))} cannot be written to: {error.strerror}", Exit.NOT_ALLOWED) from error
    say("now: everytick run" if folder == Path() else f"now: cd {shown(str(folder))} && everytick run")


@click.command(
    "completion",
    cls=VerbCommand,
    help="Write the completion script of a shell.\n\n"
    'bash: eval "$(everytick completion bash)" in ~/.bashrc; fish: everytick completion fish | source',
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_verb(shell: str) -> None:
    """Write the completion script of a shell."""
    from click.shell_completion import get_completion_class

    from everytick.cli.main import everytick

    kind = get_completion_class(shell)
    assert kind is not None, "click knows the shells that we offer"
    click.echo(kind(everytick, {}, "everytick", "_EVERYTICK_COMPLETE").source())


@click.group("systemd", cls=Noun, help="Help to run as a service of systemd.")
def systemd_verb() -> None:
    """Help to run as a service of systemd."""


_UNIT = """[Unit]
Description=everytick: {app}
After=network-online.target
Wants=network-online.target

[Service]
Type=notify
# A store that is migrated may take its time, and a node whose loop does not turn is of no use.
TimeoutStartSec=10min
WatchdogSec=2min
User={user}
WorkingDirectory={folder}
{variables}
ExecStart={command} run --log-format json
Restart=on-failure
RestartSec=5s
# The first SIGTERM stops cleanly; so long may it take, with room to write down what ended.
KillSignal=SIGTERM
KillMode=mixed
TimeoutStopSec={stop}s
NoNewPrivileges=true
PrivateTmp=true
ProtectSystem=full

[Install]
WantedBy=multi-user.target
"""


@systemd_verb.command(
    "print-unit",
    help="Write a unit that runs the application or the folder of jobs here.\n\n"
    "Example: everytick systemd print-unit -a jobs:tick > /etc/systemd/system/jobs.service",
)
@click.option("--user", metavar="NAME", help="User to run as (default: you).")
def print_unit(user: str | None) -> None:
    """Write a unit that runs the application or the folder of jobs here."""
    from everytick.cli.applications import application
    from everytick.cli.asking import who

    app = application(to_run=True)
    named = dict(_named(app))
    command = Path(sys.executable).with_name("everytick")
    unit = _UNIT.format(
        app=_escaped(named.get("EVERYTICK_APP") or named["EVERYTICK_JOBS"]),
        user=_escaped(user or who()),
        folder=_escaped(os.getcwd()),
        variables="\n".join(f"Environment={_quoted(f'{key}={value}')}" for key, value in named.items()),
        command=_quoted(str(command)),
        stop=int(app.settings.grace_period.total_seconds()) + 15,
    )
    click.echo(unit, nl=False)


def _named(app: Everytick) -> Iterator[tuple[str, str]]:
    """Return the environment variables of the unit. A configuration file is found in the folder itself."""
    from everytick.config.settings import SettingPlace, without_password

    settings = state().settings
    store = settings["store"]
    if settings["app"].value is not None:
        yield "EVERYTICK_APP", settings["app"].value
    if settings["jobs"].value is not None:
        yield "EVERYTICK_JOBS", str(app.jobs_folder)
    if store.value is not None and store.place > SettingPlace.FILE:
        if without_password(store.value) != store.value:
            text = f"{store.origin} holds a password, which a unit shows to everybody: write it into a file, and name"
            raise Refused(f"{text} that by EVERYTICK_STORE_FILE in the unit, or write store = into everytick.toml")
        yield "EVERYTICK_STORE", store.value


def _escaped(text: str) -> str:
    """Return the text escaped for a unit file, in which % begins a specifier."""
    if not text.isprintable():
        raise Refused(f"'{shown(text)}' holds a control character, which no unit can carry: rename it")
    return text.replace("\\", "\\\\").replace("%", "%%")


def _quoted(text: str) -> str:
    escaped = _escaped(text).replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"' if any(letter.isspace() or letter in "\"'" for letter in text) else escaped
