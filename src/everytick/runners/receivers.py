"""Receivers of notices: what `on_failure` and `on_recovery` may name, in Python and in files.

    {"command": ["logger", "-t", "nightly", "it failed"]}
    {"http": {"method": "POST", "url": "https://example.org/incidents"}}
    {"webhook": {"url": "https://example.org/hook", "secret_env": "OPS_SECRET"}}
    {"email": {"to": ["ops@example.org"]}}
    {"ping": "https://example.org/check"}

A secret is named by its environment variable and read on the node that sends the notice, so that no store keeps it.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from ipaddress import ip_address
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from everytick.domain.durations import duration, format_duration
from everytick.domain.notices import Notify, notify
from everytick.domain.policy_checks import keys, names, refused, switch
from everytick.domain.values import value
from everytick.errors import InvalidDuration, InvalidName, InvalidPolicies
from everytick.runners.targets import (
    CommandTarget,
    EnvironmentValue,
    HttpTarget,
    checked_url,
    command_target,
    http_target,
    read_target,
)

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# No address with a line break, which would end a header, and none with a display name, which needs quoting.
_MAILBOX = re.compile(r"[^\s@<>,;:\"()\[\]\\]+@[^\s@<>,;:\"()\[\]\\]+")
_USUAL_TIMEOUT = timedelta(seconds=30)
"""How long a receiver may take unless its definition says otherwise."""

_ADDRESS = ("url", "allow_http", "timeout")


@value
class WebhookTarget:
    """A CloudEvent by POST, signed as Standard Webhooks says if it has a secret."""

    url: str
    secret: EnvironmentValue | None = None
    timeout: timedelta = _USUAL_TIMEOUT


@value
class EmailTarget:
    """An e-mail; without a sender it is from the node's `smtp_sender`."""

    to: tuple[str, ...]
    sender: str | None = None


@value
class PingTarget:
    """The address of a check: a failure asks for `<url>/fail`, a recovery for the address itself."""

    url: str
    timeout: timedelta = _USUAL_TIMEOUT


Receiver: TypeAlias = CommandTarget | HttpTarget | WebhookTarget | EmailTarget | PingTarget


# -------------------------------------------------------------------------------------------------------- in Python


def command(command: str | Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None) -> Notify:
    """Tell a program: it reads the event as JSON from its standard input, and the main facts from EVERYTICK_…."""
    return notify("command", json.loads(command_target(command, env=env, cwd=cwd)))


def http(
    url: str,
    *,
    method: str = "POST",
    headers: Mapping[str, str | EnvironmentValue] | None = None,
    json: object = None,
    expect: Iterable[int] = (),
    timeout: str | timedelta | None = None,
) -> Notify:
    """Make a request as an http task does; without `json`, POST, PUT and PATCH send the event."""
    target = http_target(url, method=method, headers=headers, json=json, expect=expect, timeout=timeout)
    return notify("http", _data(target))


def webhook(
    url: str, *, secret_env: str | None = None, timeout: str | timedelta = "30s", allow_http: bool = False
) -> Notify:
    """POST the event as a CloudEvent, signed with the secret that this environment variable of the node holds."""
    return _made("webhook", url=url, secret_env=secret_env, **_options(timeout, allow_http))


def email(to: str | Iterable[str], *, sender: str | None = None) -> Notify:
    """Send an e-mail by the server that the node's setting `smtp` names."""
    return _made("email", to=to if isinstance(to, str) else list(to), sender=sender)


def ping(url: str, *, timeout: str | timedelta = "30s", allow_http: bool = False) -> Notify:
    """Tell a check of Healthchecks or the like: `<url>/fail` at a failure, the address itself at a recovery."""
    options = _options(timeout, allow_http)
    return _made("ping", url=url, **options) if options else checked_receivers("ping", {"ping": url})


def _options(timeout: str | timedelta, allow_http: bool) -> dict[str, object]:
    written = format_duration(timeout) if isinstance(timeout, timedelta) else timeout
    options: dict[str, object] = {} if written == "30s" else {"timeout": written}
    return {**options, "allow_http": True} if allow_http else options


def _made(kind: str, **parts: object) -> Notify:
    return checked_receivers(kind, {kind: {key: part for key, part in parts.items() if part is not None}})


def _data(target: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(target)
    return data


# ---------------------------------------------------------------------------------------------------------- reading


def checked_receivers(key: str, given: object) -> Notify:
    """Return the receivers that were written; each is read whole, so that a mistake is refused here."""
    notified = notify(key, given)
    for text in notified.receivers:
        try:
            read_receiver(_data(text))
        except InvalidPolicies as error:
            raise InvalidPolicies("", f"{key}: {error.reason.removeprefix('target: ')}", error.alternatives) from None
    return notified


def read_receiver(data: Mapping[str, Any], job: str = "") -> Receiver:
    """Read the table of one receiver."""
    if "webhook" in data:
        return _webhook(data["webhook"])
    if "email" in data:
        return _email(data["email"])
    if "ping" in data:
        return _ping(data["ping"])
    target = dict(data)
    if isinstance(target.get("http"), str):
        target["http"] = {"url": target["http"]}
    if isinstance(target.get("http"), dict):
        target["http"] = {"method": "POST", **target["http"]}
    read = read_target(json.dumps(target, ensure_ascii=False), job)
    assert isinstance(read, (CommandTarget, HttpTarget)), "notify() lets no other kind in"
    return read


def _webhook(given: object) -> WebhookTarget:
    parts = _table("webhook", given, (*_ADDRESS, "secret_env"), "url")
    variable = parts.get("secret_env")
    if variable is not None and (not isinstance(variable, str) or not _VARIABLE.fullmatch(variable)):
        # Not shown: it may be the secret itself.
        raise InvalidPolicies("", "secret_env is not the name of an environment variable", ('secret_env="OPS_SECRET"',))
    secret = None if variable is None else EnvironmentValue(variable)
    return WebhookTarget(_address(parts), secret, _timeout(parts))


def _ping(given: object) -> PingTarget:
    parts = {"url": given} if isinstance(given, str) else _table("ping", given, _ADDRESS, "url")
    return PingTarget(_address(parts), _timeout(parts))


def _email(given: object) -> EmailTarget:
    parts = _table("email", given, ("to", "sender"), "to")
    try:
        to = names("email to", parts["to"])
    except InvalidName as error:
        raise InvalidPolicies("", f"email to: {error}") from None
    if not to:
        raise refused("email to", parts["to"], "names no address", 'to="ops@example.org"')
    sender = parts.get("sender")
    return EmailTarget(tuple(map(mailbox, to)), None if sender is None else mailbox(sender))


def mailbox(given: object) -> str:
    """Return an e-mail address such as `ops@example.org`."""
    if not isinstance(given, str) or not _MAILBOX.fullmatch(given) or not given.isascii():
        raise refused("e-mail address", given, "is not one", '"ops@example.org"')
    return given


def _table(kind: str, given: object, known: tuple[str, ...], needed: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise refused(kind, given, "must be a table", f"{kind}: {{{needed}: …}}")
    return keys(kind, given, known, (needed,))


def _address(parts: Mapping[str, Any]) -> str:
    """Return the address. It may be http: only on this machine or with `allow_http`: a notice is confidential."""
    url, allows_http = checked_url(parts["url"]), switch("allow_http", parts.get("allow_http", False))
    if urlsplit(url).scheme == "https" or allows_http:
        return url
    if not _is_this_machine(urlsplit(url).hostname or ""):
        reason = "is http:, which everybody on the way can read"
        raise refused("url", url.partition("?")[0], reason, "https:", "allow_http=True")
    return url


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _timeout(parts: Mapping[str, Any]) -> timedelta:
    given = parts.get("timeout")
    if given is None:
        return _USUAL_TIMEOUT
    try:
        length = duration(given)
    except InvalidDuration as error:
        raise InvalidPolicies("", f"timeout: {error}") from None
    if length <= timedelta(0):
        raise refused("timeout", given, "is no time to answer in", 'timeout="30s"')
    return length
