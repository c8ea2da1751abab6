"""`/access`: users with their grants, tokens and sessions; every deed on a page of its own that asks first."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from everytick.access.credentials import hash_of
from everytick.access.passwords import LONGEST_PASSWORD, SHORTEST_PASSWORD
from everytick.access.people import CameBy, Role
from everytick.domain.durations import duration
from everytick.domain.people import Grant, WebSession, grant_of, role_of
from everytick.domain.values import value
from everytick.errors import Conflict, DefinitionError, NotFound
from everytick.web.asking import Tick, Who, needs
from everytick.web.csrf import SESSION_COOKIE, cookie_of
from everytick.web.framing import viewer_of
from everytick.web.paths import link
from everytick.web.problems import Problem
from everytick.web.rendering import page

router = APIRouter(include_in_schema=False)

Text = Annotated[str, Form(max_length=LONGEST_PASSWORD)]
_ID_CHARACTERS = 16
"""How much of a session's hash names it in addresses: it is no secret, and tells sessions apart."""

_GRANTS = "raise the role on jobs: billing:operator for a tag, job:etl:operator for one job; one per line"


@value(frozen=True)
class AccessField:
    """A field of a form: its name, what stands beside it, and its kind."""

    name: str
    label: str
    kind: str = "text"
    text: str = ""
    hint: str = ""
    choices: tuple[str, ...] = ()


@value(frozen=True)
class AccessQuestion:
    """A page that asks before a deed: the question, what will happen, the fields and the verb on the button."""

    question: str
    verb: str
    happens: str = ""
    fields: Sequence[AccessField] = ()
    wrong: str = ""


@router.get("/access", dependencies=[needs(Role.ADMIN)])
async def access(request: Request, tick: Tick, who: Who) -> Response:
    """Show users, tokens and open sessions."""
    people, now = tick.people, await tick.now()
    users, tokens, sessions = await people.users(), await people.tokens(), await people.sessions()
    own = hash_of(cookie_of(request, SESSION_COOKIE) or "")
    values: dict[str, Any] = {
        "viewer": viewer_of(request, now),
        "users": users,
        "tokens": [token for token in tokens if token.is_live(now)],
        "ended": [token for token in tokens if not token.is_live(now)][:50],
        "sessions": [(session, short(session), session.hash == own) for session in sessions],
        "is_open": who.came_by is CameBy.LOCAL,
        "now": now,
    }
    return await page(request, "access.html", **values)


def short(session: WebSession) -> str:
    """Return the beginning of a session's hash, by which its address names it."""
    return session.hash[:_ID_CHARACTERS]


async def _ask(request: Request, asked: AccessQuestion) -> Response:
    return await page(request, "access_form.html", status=422 if asked.wrong else 200, asked=asked)


def _back(request: Request, path: str = "/access") -> Response:
    return RedirectResponse(link(request.scope.get("root_path", ""), path), 303)


def _role_fields(role: str, grants: str) -> list[AccessField]:
    return [
        AccessField("role", "Role", "choice", role, choices=tuple(str(choice) for choice in Role)),
        AccessField("grants", "Grants", "lines", grants, _GRANTS),
    ]


def _read_grants(text: str) -> list[Grant]:
    return [grant_of(line.strip()) for line in text.splitlines() if line.strip()]


def _password_fields() -> list[AccessField]:
    hint = f"at least {SHORTEST_PASSWORD} characters"
    return [
        AccessField("password", "Password", "password", hint=hint),
        AccessField("again", "The same again", "password"),
    ]


def _refuse_different(password: str, again: str) -> None:
    if password != again:
        raise Conflict("the two passwords differ")


# ---------------------------------------------------------------------------------------------------------------- users


def _add_user(given: Mapping[str, str], wrong: str = "") -> AccessQuestion:
    fields = [
        AccessField("name", "Name", text=given.get("name", "")),
        *_role_fields(given.get("role", "viewer"), given.get("grants", "")),
        *_password_fields(),
    ]
    happens = "The person signs in with name and password. Without a password they come by a proxy or a provider."
    return AccessQuestion("Add a user?", "Add the user", happens, fields, wrong)


@router.get("/access/users/add", dependencies=[needs(Role.ADMIN)])
async def ask_user(request: Request, who: Who) -> Response:
    """Ask for a new user. The first one is an admin."""
    return await _ask(request, _add_user({"role": "admin"} if who.came_by is CameBy.LOCAL else {}))


@router.post("/access/users/add", dependencies=[needs(Role.ADMIN)])
async def add_user(
    request: Request,
    tick: Tick,
    name: Text = "",
    role: Text = "viewer",
    grants: Text = "",
    password: Text = "",
    again: Text = "",
) -> Response:
    """Add a user."""
    try:
        _refuse_different(password, again)
        chosen, raised = role_of(role), _read_grants(grants)
        await tick.people.add_user(name.strip(), chosen, grants=raised, password=password or None)
    except (DefinitionError, Conflict) as error:
        return await _ask(request, _add_user({"name": name, "role": role, "grants": grants}, str(error)))
    return _back(request)


async def _set_role(tick: Tick, user: str, given: Mapping[str, str], wrong: str = "") -> AccessQuestion:
    known = await tick.people.user(user)
    grants = given.get("grants", "\n".join(map(str, known.grants)))
    happens = "It holds from the next request on, in every browser and for every token of this user."
    fields = _role_fields(given.get("role", str(known.role)), grants)
    return AccessQuestion(f"Change the role of {user}?", "Change the role", happens, fields, wrong)


@router.get("/access/users/{user:name}/role", dependencies=[needs(Role.ADMIN)])
async def ask_role(request: Request, tick: Tick, user: str) -> Response:
    """Ask for another role."""
    return await _ask(request, await _set_role(tick, user, {}))


@router.post("/access/users/{user:name}/role", dependencies=[needs(Role.ADMIN)])
async def set_role(request: Request, tick: Tick, user: str, role: Text = "", grants: Text = "") -> Response:
    """Set role and grants of a user."""
    try:
        await tick.people.set_role(user, role_of(role), _read_grants(grants))
    except (DefinitionError, Conflict) as error:
        return await _ask(request, await _set_role(tick, user, {"role": role, "grants": grants}, str(error)))
    return _back(request)


def _set_password(user: str, wrong: str = "") -> AccessQuestion:
    happens = "All sessions of this user end. Tokens stay."
    return AccessQuestion(f"Set the password of {user}?", "Set the password", happens, _password_fields(), wrong)


@router.get("/access/users/{user:name}/password", dependencies=[needs(Role.ADMIN)])
async def ask_password(request: Request, tick: Tick, user: str) -> Response:
    """Ask for a new password."""
    return await _ask(request, _set_password((await tick.people.user(user)).name))


@router.post("/access/users/{user:name}/password", dependencies=[needs(Role.ADMIN)])
async def set_password(request: Request, tick: Tick, user: str, password: Text = "", again: Text = "") -> Response:
    """Set the password of a user."""
    try:
        _refuse_different(password, again)
        await tick.people.set_password(user, password)
    except (DefinitionError, Conflict) as error:
        return await _ask(request, _set_password(user, str(error)))
    return _back(request)


def _remove_user(user: str, wrong: str = "") -> AccessQuestion:
    happens = "Their sessions end and their tokens are revoked. What they did stays in the audit."
    return AccessQuestion(
        f"Remove user {user}?", "Remove the user", happens, (AccessField("name", f"Type {user}"),), wrong
    )


@router.get("/access/users/{user:name}/remove", dependencies=[needs(Role.ADMIN)])
async def ask_removal(request: Request, tick: Tick, user: str) -> Response:
    """Ask whether to remove a user."""
    return await _ask(request, _remove_user((await tick.people.user(user)).name))


@router.post("/access/users/{user:name}/remove", dependencies=[needs(Role.ADMIN)])
async def remove_user(request: Request, tick: Tick, user: str, name: Text = "") -> Response:
    """Remove a user whose name was typed."""
    try:
        if name != user:
            raise Conflict(f"type the name, {user}, to remove the user")
        await tick.people.remove_user(user)
    except Conflict as error:
        return await _ask(request, _remove_user(user, str(error)))
    return _back(request)


# --------------------------------------------------------------------------------------------------------------- tokens


def _add_token(given: Mapping[str, str], wrong: str = "") -> AccessQuestion:
    fields = [
        AccessField("name", "Name", text=given.get("name", ""), hint="what it is for, such as deploy"),
        *_role_fields(given.get("role", "viewer"), given.get("grants", "")),
        AccessField(
            "owner", "Owner", text=given.get("owner", ""), hint="a user: it may do no more than they; or empty"
        ),
        AccessField("lasts", "Lasts", text=given.get("lasts", "90d"), hint="such as 90d; empty: until it is revoked"),
    ]
    happens = "The token is shown once. Its program sends it as Authorization: Bearer."
    return AccessQuestion("Add a token?", "Add the token", happens, fields, wrong)


@router.get("/access/tokens/add", dependencies=[needs(Role.ADMIN)])
async def ask_token(request: Request) -> Response:
    """Ask for a new token."""
    return await _ask(request, _add_token({}))


@router.post("/access/tokens/add", dependencies=[needs(Role.ADMIN)])
async def add_token(
    request: Request,
    tick: Tick,
    name: Text = "",
    role: Text = "viewer",
    grants: Text = "",
    owner: Text = "",
    lasts: Text = "",
) -> Response:
    """Add a token and show its text, this once."""
    given = {"name": name, "role": role, "grants": grants, "owner": owner, "lasts": lasts}
    try:
        length, chosen, raised = duration(lasts) if lasts else None, role_of(role), _read_grants(grants)
        made = await tick.people.add_token(name.strip(), chosen, grants=raised, owner=owner, lasts=length)
    except (DefinitionError, Conflict, NotFound) as error:
        return await _ask(request, _add_token(given, str(error)))
    return await page(request, "access_token.html", status=201, made=made)


@router.get("/access/tokens/{token:name}/revoke", dependencies=[needs(Role.ADMIN)])
async def ask_revocation(request: Request, tick: Tick, token: str) -> Response:
    """Ask whether to revoke a token."""
    found = next((record for record in await tick.people.tokens() if record.id == token), None)
    if found is None:
        raise NotFound("token", token)
    happens = "Programs that send it are refused from now on. This cannot be undone."
    return await _ask(request, AccessQuestion(f"Revoke token {found.name}?", "Revoke the token", happens))


@router.post("/access/tokens/{token:name}/revoke", dependencies=[needs(Role.ADMIN)])
async def revoke_token(request: Request, tick: Tick, token: str) -> Response:
    """Revoke a token."""
    await tick.people.revoke_token(token)
    return _back(request)


# ------------------------------------------------------------------------------------------------------------- sessions


async def _session(tick: Tick, id_: str) -> WebSession:
    found = [session for session in await tick.people.sessions() if short(session) == id_]
    if not found:
        raise NotFound("session", id_)
    return found[0]


@router.get("/access/sessions/{session}/end", dependencies=[needs(Role.ADMIN)])
async def ask_end(request: Request, tick: Tick, session: str) -> Response:
    """Ask whether to end a session."""
    found = await _session(tick, session)
    name = "" if found.user is None else found.user.name
    happens = f"The browser at {found.address or 'an unknown address'} has to sign in again."
    return await _ask(request, AccessQuestion(f"End this session of {name}?", "End the session", happens))


@router.post("/access/sessions/{session}/end", dependencies=[needs(Role.ADMIN)])
async def end_session(request: Request, tick: Tick, session: str) -> Response:
    """End a session."""
    await tick.people.end_session((await _session(tick, session)).hash)
    return _back(request)


# ------------------------------------------------------------------------------------------------------ one's own


def _own_password(wrong: str = "") -> AccessQuestion:
    happens = "All of your sessions end, this one too: sign in again with the new password."
    fields = [AccessField("old", "Your password now", "password"), *_password_fields()]
    return AccessQuestion("Change your password?", "Change the password", happens, fields, wrong)


@router.get("/access/me", dependencies=[needs(Role.VIEWER)])
async def ask_own(request: Request, who: Who) -> Response:
    """Ask for the old and the new password of the person who asks."""
    _refuse_without_session(who)
    return await _ask(request, _own_password())


@router.post("/access/me", dependencies=[needs(Role.VIEWER)])
async def set_own(
    request: Request, tick: Tick, who: Who, old: Text = "", password: Text = "", again: Text = ""
) -> Response:
    """Set the password of the person who asks, if they know the old one."""
    _refuse_without_session(who)
    try:
        _refuse_different(password, again)
        await tick.people.change_password(who.name, old, password)
    except (DefinitionError, Conflict) as error:
        return await _ask(request, _own_password(str(error)))
    return _back(request, "/signin")


def _refuse_without_session(who: Who) -> None:
    if who.came_by is not CameBy.SESSION:
        raise Problem(409, "no_session", "you have not signed in with a password here")
