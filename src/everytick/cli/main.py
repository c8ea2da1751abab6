"""`everytick`: finds the verb, runs it, and turns an error into one sentence and an exit code.

A verb's module is loaded when it is called: `everytick --help` must not pay for all of them.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from everytick import __version__
from everytick.cli.common_options import Noun, State
from everytick.cli.exits import code_of, sentence_of
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

# By section: each verb with its module and what `--help` says of it.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Run": {
        "run": ("cli.run", "Plan and run the jobs of an application or a folder until told to stop."),
        "serve": ("cli.serve", "Serve the HTTP API and the dashboard, and run no job."),
        "watch": ("cli.watch", "Raise an alarm when a fleet falls silent."),
    },
    "Look": {
        "list": ("cli.list", "List the jobs in the store."),
        "show": ("cli.show", "Show one job, or one occurrence with its attempts."),
        "history": ("cli.history", "Show what ran, newest first; of one JOB also what did not run, and why."),
        "nodes": ("cli.nodes", "Show known nodes and whether they are alive."),
        "limits": ("cli.limits", "Show limits and brakes, how far each is used, and who changed them last."),
        "next": ("cli.next", "Show the next run of each job, or the next runs of one JOB."),
        "simulate": ("cli.simulate", "Run the coming days on virtual time: collisions, lateness, load."),
        "backfills": ("cli.backfills", "List backfills and how far they have come."),
        "coverage": ("cli.coverage", "Show which instants of a JOB are done, missing, under way or done twice."),
        "explain": ("cli.explain", "Say what a schedule means, or why a job ran or did not."),
        "audit": ("cli.people", "Show what people did: who, what, to which, why, when and from where."),
        "logs": ("cli.logs", "Show the output of an occurrence, or of a job's latest."),
    },
    "Operate": {
        "trigger": ("cli.operations", "Ask for an occurrence, now or later; the schedule is not moved."),
        "replay": ("cli.operations", "Ask for an occurrence that does again what an ended one did."),
        "cancel": ("cli.operations", "End an occurrence, or ask its node to stop it."),
        "backfill": ("cli.backfills", "Let past instants run after all: plan, approve, show, pause, resume, cancel."),
        "pause": ("cli.operations", "Hold a job's schedule."),
        "resume": ("cli.operations", "End a pause."),
        "enable": ("cli.operations", "Let a disabled job run again, from its next instant on."),
        "disable": ("cli.operations", "Disable a job: no scheduled runs and no triggers until it is enabled."),
        "reschedule": ("cli.operations", "Set a job's next run; the instants before it give way."),
        "skip": ("cli.operations", "Skip one upcoming run of a job."),
        "move": ("cli.operations", "Let one single future instant of a job run at another time."),
        "amend": ("cli.operations", "Run one single future instant of a job with a payload or policies of its own."),
        "add": ("cli.operations", "Add one single run at a time to come that the schedule does not name."),
        "undo": ("cli.operations", "Take back what was said of one time to come: skip, move, amend, add, reschedule."),
        "update": ("cli.versions", "Change the schedule or single policies of a job."),
        "versions": ("cli.versions", "List the versions of a job: who wrote each, when, and what it changed."),
        "rollout": ("cli.versions", "Show the version of a job that is on trial, or end its rollout."),
        "rollback": ("cli.versions", "Make an old version of a job the newest one again."),
        "limit": ("cli.limits", "Set or remove a limit, for all nodes of the store."),
        "brake": ("cli.limits", "Let nothing start, or nothing of REACH, until it is released."),
        "release": ("cli.limits", "End a brake: what has waited starts by priority, then age, at a rate."),
        "rename": ("cli.operations", "Give a job another name; its id, watermark and history stay."),
        "proposals": ("cli.guards", "List the changes that wait for a second person."),
        "approve": ("cli.guards", "Carry out what another person has proposed."),
        "reject": ("cli.guards", "Drop a proposal."),
        "remove": ("cli.operations", "Take a job out of service; its history is kept."),
    },
    "Files": {
        "validate": ("cli.files", "Check files of jobs: every mistake at once."),
        "diff": ("cli.files", "Say which jobs are new, changed or gone in files."),
        "apply": ("cli.files", "Store what files say."),
        "sync": ("cli.guards", "Store what the application's code defines, as its next start would."),
        "templates": ("cli.templates", "List the templates that jobs may name."),
        "schema": ("cli.files", "Write the JSON Schema of files of jobs."),
        "import": ("cli.importing", "Turn what another scheduler keeps into files of jobs."),
        "export": ("cli.export", "Write jobs as YAML, or history as JSON lines or CSV."),
    },
    "Care": {
        "db": ("cli.db", "Care for a store: migrate, status, backup, prune."),
        "doctor": (
            "cli.doctor",
            "Look for what could go wrong: store, clock, zone data, rights, nodes.",
        ),
        "user": ("cli.people", "Say who may sign in: add, list, role, password, remove."),
        "token": ("cli.people", "Give programs access: add, list, revoke."),
        "config": ("cli.config", "Show the configuration."),
    },
    "Set up": {
        "init": ("cli.setup", "Write a commented example and its configuration; nothing is overwritten."),
        "completion": ("cli.setup", "Write the completion script of a shell."),
        "systemd": ("cli.setup", "Help to run as a service of systemd."),
    },
}
_MODULES = {verb: module for section in SECTIONS.values() for verb, (module, _) in section.items()}

_EPILOG = (
    "Exit codes: 0 done; 1 the occurrence or a check failed; 2 wrong usage; 3 not found; 4 not allowed; 5 conflict; "
    "65 invalid file; 69 store unreachable; 70 our own mistake; 75 try again later; 124 timed out; 130 interrupted."
)


class Verbs(Noun):
    """The verbs, loaded one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return every verb, in the order of the help."""
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the verb of this name."""
        module = _MODULES.get(cmd_name)
        if module is None:
            return None
        from importlib import import_module

        found = getattr(import_module(f"everytick.{module}"), f"{cmd_name}_verb")
        assert isinstance(found, click.Command), f"{module} has the verb {cmd_name}"
        return found

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb. A closed pipe (`| head`) is no error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The interpreter must not write the rest of the buffer when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return Exit.DONE

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs by section, without loading any."""
        for title, verbs in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(verb, said) for verb, (_, said) in verbs.items()], col_max=14)


def _version(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        click.echo(f"everytick {__version__}")
        ctx.exit()


everytick = Verbs(
    "everytick",
    help="Every tick, exactly once: run jobs, look at them, operate them.\n\nExample: everytick run -a jobs:tick",
    epilog=_EPILOG,
    params=[
        click.Option(
            ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version."
        ),
    ],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    no_args_is_help=True,
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and leave the process with its exit code."""
    sys.exit(called(arguments))


def called(
    arguments: Sequence[str] | None = None, *, program: str = "everytick", application: str | None = None
) -> int:
    """Run the command and return its exit code.

    `application` is the one that is meant where no option, variable or file names another.
    """
    state = State(application, program)
    try:
        answer = everytick.main(arguments, prog_name=program, standalone_mode=False, obj=state)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return Exit.USAGE
    except click.UsageError as error:
        _complain(_usage(error))
        return Exit.USAGE
    except click.ClickException as error:
        _complain(error.format_message())
        return Exit.USAGE
    except (click.Abort, KeyboardInterrupt):
        if state.debug:
            raise
        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001, the edge of the program
        if state.debug:
            import traceback

            _write_words(traceback.format_exc())
        _complain(sentence_of(error))
        return code_of(error)
    return answer if isinstance(answer, int) else Exit.DONE


def _usage(error: click.UsageError) -> str:
    where = "" if error.ctx is None else f" (see: {error.ctx.command_path} --help)"
    return f"{error.format_message().rstrip('.')}{where}"


def _complain(sentence: str) -> None:
    _write_words(f"everytick: {sentence}", mark="red")


def _write_words(text: str, mark: str | None = None) -> None:
    from everytick.cli.output import say

    say(text, mark=mark)
