"""The common options of the command line, before and after the verb, and the settings that follow from them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from everytick.cli.exits import Refused
from everytick.errors import InvalidSetting
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everytick.config.settings import SettingsByName

F = TypeVar("F", bound="Callable[..., Any]")


class State:
    """One call of the command: its options, and the settings once they are read."""

    def __init__(self, application: str | None = None, program: str = "everytick") -> None:
        self._application, self.program = application, program
        self.options: dict[str, tuple[str, object]] = {}
        self.config: str | None = None
        self.debug = False
        self._settings: SettingsByName | None = None

    @property
    def settings(self) -> SettingsByName:
        """Every setting with its origin. A mistake in a file has another exit code than one on the command line."""
        if self._settings is None:
            from everytick.config.settings import Setting, SettingPlace, from_file, gather

            named = self.config or os.environ.get("EVERYTICK_CONFIG")
            file = None if named is None else Path(named)
            try:
                from_file(Path.cwd(), file)
            except InvalidSetting as error:
                raise Refused(str(error), Exit.INVALID_FILE) from error
            self._settings = gather(self.options, file=file)
            if self._application is not None and self._settings["app"].value is None:
                self._settings["app"] = Setting(self._application, SettingPlace.BUILT_IN, self.program)
        return self._settings


def state() -> State:
    """Return the state of this call."""
    found = click.get_current_context().find_root().obj
    assert isinstance(found, State), "main() gives every call a state"
    return found


def note_option(ctx: click.Context, parameter: click.Parameter, given: Any) -> None:
    """Store an option. The one after the verb wins over the one before it."""
    found = ctx.find_root().obj
    if given is None or given is False or given == () or not isinstance(found, State):
        return
    name = str(parameter.name)
    if name == "debug":
        found.debug = True
    elif name == "config":
        found.config = given
    else:
        found.options[name] = (parameter.opts[-1], given)


def setting_option(*flags: str, **attributes: Any) -> Callable[[F], F]:
    """Return an option that sets one key of the configuration and is not handed to the verb."""
    return click.option(*flags, expose_value=False, callback=note_option, **attributes)


_NAMING = {
    "-a --app": ("MODULE:OBJECT", "The application; also EVERYTICK_APP."),
    "--store": ("URL", "A store, to read and operate without an application; also EVERYTICK_STORE."),
    "--url": (
        "URL",
        "A service, to read and operate through it; also EVERYTICK_URL, with its token in EVERYTICK_TOKEN.",
    ),
    "--jobs": (
        "FOLDER",
        "A folder of job files; also EVERYTICK_JOBS. Without --store, everytick.db beside it is the store.",
    ),
    "--config": ("FILE", "The configuration file, instead of everytick.toml here."),
}
"""The common options that name something: their flags, what stands after them, and their help."""


def common_options() -> list[click.Parameter]:
    """Return the options that every verb has."""
    noted: dict[str, Any] = {"expose_value": False, "callback": note_option}
    naming = [
        click.Option(flags.split(), metavar=metavar, help=text, **noted) for flags, (metavar, text) in _NAMING.items()
    ]
    return [*naming, click.Option(["--debug"], is_flag=True, help="Show the traceback of an error.", **noted)]


def _write_own_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    common = {option.name for option in common_options()}
    own = [param for param in command.get_params(ctx) if isinstance(param, click.Option) and param.name not in common]
    with formatter.section("Options"):
        formatter.write_dl([record for option in own if (record := option.get_help_record(ctx)) is not None])
    formatter.write_paragraph()
    formatter.write_text("-a, --store, --url, --jobs, --config and --debug, as for every verb: see everytick --help.")


def _hint_about_extra(verb: str, given: Sequence[str]) -> str:
    """Return what may have been meant by words that a verb does not take: a file of jobs, or a schedule in parts."""
    if verb == "explain":
        return ": write a schedule in quotes, as everytick explain 'every 5m'"
    files = [word for word in given if word.endswith(".py") and not word.startswith("-")]
    return f": an application is named with -a, as everytick {verb} -a {Path(files[0]).stem}" if files else ""


class VerbCommand(click.Command):
    """A verb. It takes the common options too, so that they may stand before or after it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *common_options()]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words after the verb. The error about one too many says what may have been meant."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if type(error) is not click.UsageError or "extra argument" not in error.message:
                raise
            hint = _hint_about_extra(str(ctx.info_name), given)
            raise click.UsageError(f"{error.message}{hint}", ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verb's own options, and where the common options are explained."""
        _write_own_options(self, ctx, formatter)


class Noun(click.Group):
    """A verb with verbs of its own, as `db migrate`."""

    command_class = VerbCommand

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *common_options()]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options. For a group of verbs, write only where the common options are explained."""
        if ctx.parent is None:
            super().format_options(ctx, formatter)
            return
        _write_own_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb. The error about an unknown one suggests a similar verb."""
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            raise unknown(args[0], self.list_commands(ctx), ctx)
        return super().resolve_command(ctx, args)


def unknown(word: str, known: Sequence[str], ctx: click.Context) -> click.UsageError:
    """Return the error about an unknown verb."""
    from everytick.domain.names import did_you_mean
    from everytick.errors import shown

    return click.UsageError(f"there is no verb '{shown(word, 40)}'{did_you_mean(word, known)}", ctx)
