"""`everytick serve`: the HTTP API and the dashboard, without a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from everytick.cli.common_options import VerbCommand, note_option, setting_option, state
from everytick.cli.exits import Refused
from everytick.errors import MissingExtra
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from everytick.app import Everytick
    from everytick.app.serving import Listening


class ServeVerb(VerbCommand):
    """The verb takes `--store` several times: then each store is served under its name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        several = click.Option(
            ["--store"], metavar="[NAME=]URL", multiple=True, expose_value=False, callback=_take_stores,
            help="A store. Given several times, each has its pages under /NAME/, and / lists them all.",
        )  # fmt: skip
        self.params = [several if param.name == "store" else param for param in self.params]


def _take_stores(ctx: click.Context, parameter: click.Parameter, given: Sequence[str]) -> None:
    """Store the addresses. One without a name is the setting `store`, as for every verb."""
    from everytick.cli.named_stores import is_named

    if len(given) == 1 and not is_named(given[0]):
        note_option(ctx, parameter, given[0])
    elif given:
        ctx.meta[_STORES] = tuple(given)


_STORES = "everytick.cli.serve.stores"


@click.command(
    "serve",
    cls=ServeVerb,
    help="Serve the HTTP API and the dashboard, and run no job: nodes elsewhere do.\n\n"
    "It listens on this host only unless an address is given; any other address needs users. "
    "Ctrl-C or SIGTERM stops it.\n\n"
    "Examples: everytick serve --store postgresql://app@db/app; everytick serve -a jobs:tick --web-port 9000; "
    "everytick serve --store shop=postgresql://app@db/shop --store bank=sqlite:////srv/bank.db",
)
@setting_option("--web-address", metavar="ADDRESS", help="Where to listen; 127.0.0.1 unless set.")
@setting_option("--web-port", metavar="PORT", help="The port; 0 is any free one.")
@setting_option("--web-prefix", metavar="PATH", help="The path under which a reverse proxy serves it.")
@setting_option("--web-auth", metavar="WHO", help="auto, or users: people sign in even while there is no user.")
@setting_option(
    "--log-level", metavar="LEVEL", help="From which level on lines are written: debug, info, warning, error."
)
@setting_option("--log-format", metavar="FORMAT", help="text, or json for one JSON object per line.")
def serve_verb() -> int:
    """Serve an application, a store, or several stores."""
    from everytick.app.serving import OpenToAll
    from everytick.cli.run import listening

    where = listening()
    try:
        _serve(where, click.get_current_context().meta.get(_STORES, ()))
    except OpenToAll as error:
        raise Refused(str(error), Exit.NOT_ALLOWED) from error
    except OSError as error:
        text = f"{where.host}:{where.port} cannot be used ({error.strerror or error}): give another --web-port"
        raise Refused(text, Exit.UNREACHABLE) from error
    return Exit.DONE


def _serve(where: Listening, several: Sequence[str]) -> None:
    """Serve the stores that were named, else the application or the store of the settings."""
    if several:
        from everytick.cli.named_stores import named_stores

        serve_stores = _needing_web()
        ticks = named_stores(several)
        _begin_log()
        serve_stores(ticks, where)
    else:
        from everytick.cli.applications import application

        app = application()
        _begin_log()
        app.serve(where)


def _needing_web() -> Callable[[Mapping[str, Everytick], Listening], None]:
    """Return what serves several stores. Raise MissingExtra if the web stack is not installed."""
    try:
        from everytick.web.several_stores import serve_stores
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("everytick"):
            raise
        raise MissingExtra("the service", "web") from None
    return serve_stores


def _begin_log() -> None:
    """Write log lines as the settings say, and warn of files with secrets that others can read."""
    from everytick.cli.logging import set_up, tell_open_secrets

    settings = state().settings
    set_up(settings["log_level"].value, settings["log_format"])
    tell_open_secrets(settings)
