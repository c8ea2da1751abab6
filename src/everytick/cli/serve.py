"""`everytick serve`: the HTTP API and the dashboard, without a node."""

from __future__ import annotations

import click

from everytick.cli.exits import Refused
from everytick.cli.state import Verb, setting_option, state
from everytick.exits import Exit


@click.command(
    "serve",
    cls=Verb,
    help="Serve the HTTP API and the dashboard, and run no job: nodes elsewhere do.\n\n"
    "It listens on this host only unless an address is given; any other address needs users. "
    "Ctrl-C or SIGTERM stops it.\n\n"
    "Examples: everytick serve --store postgresql://app@db/app; everytick serve -a jobs:tick --web-port 9000",
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
    """Serve an application or a store."""
    from everytick.app.serving import OpenToAll
    from everytick.cli.logging import set_up
    from everytick.cli.run import listening
    from everytick.cli.session import application

    settings = state().settings
    app = application()
    set_up(settings["log_level"].value, settings["log_format"])
    where = listening()
    try:
        app.serve(where)
    except OpenToAll as error:
        raise Refused(str(error), Exit.NOT_ALLOWED) from error
    except OSError as error:
        text = f"{where.host}:{where.port} cannot be used ({error.strerror or error}): give another --web-port"
        raise Refused(text, Exit.UNREACHABLE) from error
    return Exit.DONE
