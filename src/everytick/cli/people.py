"""`user`, `token` and `audit`: who may use the service, and who did what.

Secrets are shown once, and none is read from an argument: other users of the host could see it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from everytick.cli.asking import ask, look
from everytick.cli.common_options import Noun, VerbCommand
from everytick.cli.exits import Refused
from everytick.cli.output import say, show_json, show_table
from everytick.cli.times import Times
from everytick.cli.verb_options import confirm, reading, sure
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from typing import Any

    from everytick.app import Everytick
    from everytick.domain.deeds import DeedPage
    from everytick.domain.people import Grant, Token, User

_ROLE = click.option(
    "--role", type=click.Choice(["viewer", "operator", "admin"]), required=True, help="What it may do everywhere."
)
_GRANTS = click.option(
    "--grant",
    "grants",
    multiple=True,
    metavar="TAG:ROLE",
    help="A higher role on the jobs with a tag, like billing:operator; job:NAME:operator for one job.",
)


def _password_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--password-file",
        metavar="FILE",
        help="Read the password from a file; - is standard input. Else it is asked for.",
    )(function)


def _read_grants(given: Sequence[str]) -> list[Grant]:
    from everytick.domain.people import grant_of

    return [grant_of(text) for text in given]


def _password(file: str | None) -> str:
    """Return the password: from a file or standard input, else asked for twice at the terminal."""
    from everytick.access.passwords import checked_password

    if file is None and sys.stdin.isatty():
        return checked_password(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    if file in (None, "-"):
        given = sys.stdin.readline().rstrip("\r\n")
        if not given:
            raise Refused("no password came from standard input: run this at a terminal, or give --password-file FILE")
        return checked_password(given)
    from pathlib import Path

    try:
        return checked_password(Path(str(file)).read_text(encoding="utf-8").rstrip("\r\n"))
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}", Exit.NOT_FOUND) from error


# ---------------------------------------------------------------------------------------------------------------- users


@click.group("user", cls=Noun, help="Say who may sign in: add, list, role, password, remove.")
def user_verb() -> None:
    """Say who may sign in."""


@user_verb.command(
    "add",
    help="Add a user. The password is asked for, or read from a file or standard input.\n\n"
    "Example: everytick user add ann --role admin",
)
@click.argument("name")
@_ROLE
@_GRANTS
@_password_option
@click.option("--no-password", is_flag=True, help="The user comes by a proxy or by OpenID Connect.")
def add_user_verb(name: str, role: str, grants: tuple[str, ...], password_file: str | None, no_password: bool) -> None:
    """Add a user."""
    from everytick.domain.people import role_of

    raised, chosen = _read_grants(grants), role_of(role)
    password = None if no_password else _password(password_file)
    ask(lambda app: app.people.add_user(name, chosen, grants=raised, password=password))
    say(f"{name} is {role}")


@user_verb.command("list", help="List the users.")
@reading
def list_users_verb(as_json: bool, utc: bool) -> None:
    """List the users."""
    from everytick.answers.people import user_data

    found: Sequence[User] = look(lambda app: app.people.users())
    if as_json:
        show_json([user_data(user) for user in found])
        return
    times = Times(utc)
    rows = [
        (
            user.name,
            str(user.role),
            ", ".join(map(str, user.grants)),
            "yes" if user.password_hash else "none",
            user.added_at,
        )
        for user in found
    ]
    show_table(("user", "role", "grants", "password", times.heading("added")), rows, times)
    if not rows:
        say("there is no user: this host alone may use the service, without signing in")


@user_verb.command(
    "role",
    help="Set the role of a user, and their grants if any are given.\n\n"
    "Example: everytick user role ben --role viewer --grant billing:operator",
)
@click.argument("name")
@_ROLE
@_GRANTS
@click.option("--no-grants", is_flag=True, help="Take all grants away.")
def role_verb(name: str, role: str, grants: tuple[str, ...], no_grants: bool) -> None:
    """Set the role of a user."""
    from everytick.domain.people import role_of

    raised = _read_grants(grants) if grants or no_grants else None
    if not ask(lambda app: app.people.set_role(name, role_of(role), raised)):
        say(f"{name} was {role} already")


@user_verb.command("password", help="Set the password of a user; all of their sessions end.")
@click.argument("name")
@_password_option
def password_verb(name: str, password_file: str | None) -> None:
    """Set the password of a user."""
    password = _password(password_file)
    ask(lambda app: app.people.set_password(name, password))


@user_verb.command("remove", help="Remove a user: their sessions end and their tokens are revoked.")
@click.argument("name")
@sure
def remove_user_verb(name: str, yes: bool) -> None:
    """Remove a user."""
    confirm(f"remove user {name}?", yes)
    ask(lambda app: app.people.remove_user(name))


# --------------------------------------------------------------------------------------------------------------- tokens


@click.group("token", cls=Noun, help="Give programs access: add, list, revoke.")
def token_verb() -> None:
    """Give programs access."""


@token_verb.command(
    "add",
    help="Add a token and write it to standard output, this once.\n\n"
    "A program sends it as `Authorization: Bearer`. With an owner it may do no more than this user.\n\n"
    "Example: everytick token add deploy --role operator --lasts 90d",
)
@click.argument("name")
@_ROLE
@_GRANTS
@click.option("--owner", default="", metavar="USER", help="Whose token it is.")
@click.option("--lasts", metavar="TIME", default="90d", show_default=True, help="How long it opens anything.")
@click.option("--for-ever", is_flag=True, help="Until it is revoked.")
def add_token_verb(name: str, role: str, grants: tuple[str, ...], owner: str, lasts: str, for_ever: bool) -> None:
    """Add a token."""
    from everytick.domain.durations import duration
    from everytick.domain.people import role_of

    raised, length = _read_grants(grants), None if for_ever else duration(lasts)
    made = ask(lambda app: app.people.add_token(name, role_of(role), grants=raised, owner=owner, lasts=length))
    say(f"token {made.token.id}: it is shown this once")
    click.echo(made.text)


@token_verb.command("list", help="List the tokens, newest first.")
@reading
def list_tokens_verb(as_json: bool, utc: bool) -> None:
    """List the tokens."""
    from everytick.answers.people import token_data

    async def asked(app: Everytick) -> tuple[Sequence[Token], datetime]:
        return await app.people.tokens(), await app.now()

    found, now = look(asked)
    if as_json:
        show_json([token_data(token, now) for token in found])
        return
    times = Times(utc)
    rows = [
        (
            token.id,
            token.name,
            token.role.scope,
            ", ".join(map(str, token.grants)),
            token.owner,
            "live" if token.is_live(now) else "ended" if token.revoked_at is None else "revoked",
            token.expires_at,
            token.used_at,
        )
        for token in found
    ]
    headings = ["id", "token", "scope", "grants", "owner", "state", times.heading("ends"), times.heading("used")]
    show_table(headings, rows, times)
    if not rows:
        say("there is no token")


@token_verb.command("revoke", help="Let a token open nothing from now on: by its id or its name.")
@click.argument("token")
def revoke_verb(token: str) -> None:
    """Revoke a token."""
    revoked = ask(lambda app: app.people.revoke_token(token))
    say(f"token {revoked.name} opens nothing any more")


# ---------------------------------------------------------------------------------------------------------------- audit


@click.command(
    "audit",
    cls=VerbCommand,
    help="Show what people did: who, what, to which, why, when and from where. The newest stands first.\n\n"
    "Example: everytick audit --by ann --job etl",
)
@click.option("--by", metavar="PERSON", help="What this person did.")
@click.option("--job", metavar="JOB", help="What was done to this job.")
@click.option("--before", type=int, metavar="NUMBER", help="Older than the deed of this number.")
@click.option("-n", "limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many.")
@reading
def audit_verb(by: str | None, job: str | None, before: int | None, limit: int, as_json: bool, utc: bool) -> None:
    """Show what people did."""
    from everytick.answers.people import deed_data

    found: DeedPage = look(lambda app: app.people.deeds(by=by, job=job, before=before, limit=limit))
    if as_json:
        show_json({"deeds": [deed_data(deed) for deed in found.deeds], "before": found.before})
        return
    times = Times(utc)
    rows = [
        (deed.number, deed.at, str(deed), " ".join(filter(None, (str(deed.doer.came_by), deed.doer.address))))
        for deed in found.deeds
    ]
    show_table(("number", times.heading("when"), "who did what", "from"), rows, times)
    if not rows:
        say("nothing was done by people")
    if found.before is not None:
        say(f"older ones: --before {found.before}")
