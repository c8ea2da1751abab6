"""People: who may use the service, how they prove it, and what they do. `store.access` keeps these values."""

from dataclasses import field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import TypeAlias

from everytick.domain.values import value
from everytick.errors import InvalidSetting


class Role(IntEnum):
    """What a person may do. Each role may do what those below it may.

    A viewer looks, without payloads and results. An operator also works on occurrences and schedules: trigger, pause,
    cancel, replay, backfill. An admin also edits definitions, people and tokens.
    """

    VIEWER = 1
    OPERATOR = 2
    ADMIN = 3

    def __str__(self) -> str:
        return self.name.lower()

    @property
    def scope(self) -> str:
        """The word for this role on a token."""
        return {Role.VIEWER: "read", Role.OPERATOR: "operate", Role.ADMIN: "admin"}[self]


def role_of(text: str) -> Role:
    """Return the role that this word names, as a role or as the scope of a token."""
    for role in Role:
        if text in (str(role), role.scope):
            return role
    raise InvalidSetting("role", text, "is none of viewer, operator, admin")


@value(frozen=True)
class Grant:
    """A role on the jobs that have this tag, for a person whose own role is lower."""

    tag: str
    role: Role

    def __str__(self) -> str:
        return f"{self.tag}:{self.role}"


def grant_of(text: str) -> Grant:
    """Return the grant that a text such as `billing:operator` names."""
    tag, _, role = text.rpartition(":")
    if not tag:
        raise InvalidSetting("grant", text, "is not a tag and a role, such as billing:operator")
    return Grant(tag, role_of(role))


class CameBy(StrEnum):
    """How a person proved who they are."""

    LOCAL = "local"
    """A request on this host, to a service without users."""
    SESSION = "session"
    TOKEN = "token"  # noqa: S105, a way to come
    PROXY = "proxy"
    """The header of a trusted reverse proxy."""
    COMMAND = "command"
    """The command line, with the store at hand."""


@value(frozen=True)
class Doer:
    """Who does something, how they proved it, and from where: the address of a client, or the name of a host."""

    name: str
    came_by: CameBy
    address: str = ""


# ------------------------------------------------------------------------------------------------------- what is kept


@value(frozen=True)
class User:
    """A person with a role. Without a password they come by a proxy, by OpenID Connect or not at all."""

    name: str
    role: Role
    grants: tuple[Grant, ...] = ()
    password_hash: str | None = field(default=None, repr=False)
    added_at: datetime | None = None
    added_by: str = ""


@value(frozen=True)
class Token:
    """A secret of a program. The store has its hash only; `id` is the part of it that is no secret.

    With an `owner` it may do no more than this user may now, whose role and grants are `owner_role` and
    `owner_grants`. `used_at` is when it was used last, to the hour.
    """

    id: str
    name: str
    hash: str
    role: Role
    grants: tuple[Grant, ...] = ()
    owner: str = ""
    expires_at: datetime | None = None
    added_at: datetime | None = None
    added_by: str = ""
    used_at: datetime | None = None
    revoked_at: datetime | None = None
    owner_role: Role | None = None
    owner_grants: tuple[Grant, ...] = ()

    def is_live(self, now: datetime) -> bool:
        """Whether it opens anything at this time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@value(frozen=True)
class NewToken:
    """A new token, and the text that its program sends. The text cannot be read again."""

    token: Token
    text: str

    def __repr__(self) -> str:
        return f"NewToken({self.token.id!r}, {self.token.name!r})"


class SessionKind(StrEnum):
    """What the secret of a session is for."""

    COOKIE = "cookie"
    """A browser that is signed in."""
    LINK = "link"
    """A link that makes the first admin, once."""


@value(frozen=True)
class WebSession:
    """A signed-in browser, by the hash of its cookie, with the user as they are now. A link has no user."""

    hash: str
    kind: SessionKind
    user: User | None
    began_at: datetime
    expires_at: datetime
    seen_at: datetime
    address: str = ""


@value
class SignInFailures:
    """How often signing in with a name went wrong, whether there is such a user or not, and when last."""

    count: int = 0
    failed_at: datetime | None = None


# ------------------------------------------------------------------------------------------------------ what is changed


@value
class PutUser:
    """Add a user, or set the role and grants of one that is there; the password stays."""

    name: str
    role: Role
    grants: tuple[Grant, ...] = ()


@value
class AddFirstUser:
    """Add an admin where there is no user yet, and end the link that was shown for it."""

    name: str
    password_hash: str = field(repr=False)
    link: str


@value
class SetPassword:
    """Set the password of a user and end all of their sessions."""

    name: str
    password_hash: str = field(repr=False)


@value
class RemoveUser:
    """Remove a user, end their sessions and revoke the tokens that they own."""

    name: str


@value
class AddToken:
    """Keep a new token. Its name is free if no living token has it."""

    token: Token


@value
class RevokeToken:
    """Let a token open nothing from now on. It stays listed."""

    id: str


@value
class UseToken:
    """Note that a token was used."""

    id: str


@value
class BeginSession:
    """Begin the session of a user, or keep a link; forget the failures under the user's name."""

    session: WebSession


@value
class SeeSession:
    """Note that a session was used, and until when it now lasts."""

    hash: str
    expires_at: datetime


@value
class EndSession:
    """End a session."""

    hash: str


@value
class FailSignIn:
    """Note that signing in with this name went wrong."""

    name: str


AccessChange: TypeAlias = (
    PutUser
    | AddFirstUser
    | SetPassword
    | RemoveUser
    | AddToken
    | RevokeToken
    | UseToken
    | BeginSession
    | SeeSession
    | EndSession
    | FailSignIn
)
