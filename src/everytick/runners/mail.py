"""The e-mail of a notice, and the server that it is sent by.

smtp://user:password@mail.example.org       STARTTLS, which the server must offer; port 587
smtps://user:password@mail.example.org      TLS from the first byte; port 465
smtp+plain://localhost                      no encryption, for a relay on the same machine; port 25
"""

import asyncio
import smtplib
import ssl
from collections.abc import Mapping
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from socket import getfqdn
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from everytick.domain.outcome import Failed, Outcome
from everytick.domain.values import value
from everytick.errors import InvalidPolicies, InvalidSetting, shown
from everytick.runners.context import Context
from everytick.runners.notices import NoticeBody, errors_in, word_of
from everytick.runners.outcomes import NOTHING, bounded
from everytick.runners.receivers import EmailTarget, mailbox

_PORTS = {"smtp": 587, "smtps": 465, "smtp+plain": 25}
_SECONDS = 30.0
"""How long one step of the conversation with the server may take."""

_FACTS = ("job", "status", "scheduled_for", "started_at", "ended_at", "occurrence_id", "node", "promise", "due_at")
_SUBJECTS = {
    "failed": "failed",
    "recovered": "runs well again",
    "succeeded": "has run well",
    "broken": "has broken its promise {promise}",
    "kept": "keeps its promise {promise} again",
    "rolled_back": "has rolled version {version} back",
    "rolled_out": "runs version {version} now",
}


@value
class MailServer:
    """Where e-mail is handed in, and who it is from unless its receiver says otherwise."""

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str | None = None
    sender: str | None = None

    def __repr__(self) -> str:
        return f"MailServer({self.scheme}://{self.host}:{self.port})"


def mail_server(address: str, sender: str | None = None) -> MailServer:
    """Return the server of an address; it is never shown, since it may hold a password."""
    if not isinstance(address, str):
        raise InvalidSetting("smtp", "…", "must be text like smtp://user:password@mail.example.org")
    try:
        parts: SplitResult | None = urlsplit(address.strip())
        port = None if parts is None else parts.port
    except ValueError:
        parts, port = None, None
    if parts is None or parts.scheme not in _PORTS or not parts.hostname or parts.path not in ("", "/"):
        reason = "must be like smtp://user:password@mail.example.org, smtps://… or smtp+plain://localhost"
        raise InvalidSetting("smtp", "…", reason)
    try:
        checked = None if sender is None else mailbox(sender)
    except InvalidPolicies as error:
        raise InvalidSetting("smtp_sender", sender, error.reason) from None
    user = None if parts.username is None else unquote(parts.username)
    password = None if parts.password is None else unquote(parts.password)
    return MailServer(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], user, password, checked)


class Email(NoticeBody):
    """Sends the event as a plain e-mail."""

    __slots__ = ("_server", "_target")

    def __init__(self, target: EmailTarget, server: MailServer) -> None:
        self._target, self._server = target, server

    async def _tell(self, context: Context, event: dict[str, Any]) -> Outcome:
        """Hand the e-mail in; it is sent when the server has taken it."""
        message = message_of(event, self._target, self._server)
        try:
            await asyncio.to_thread(_hand_in, self._server, message)
        except (smtplib.SMTPException, OSError) as error:
            where = f"{self._server.host}:{self._server.port}"
            return Failed(bounded(f"e-mail by {where}: {type(error).__name__}: {shown(_said(error), 300)}"))
        context.output(f"e-mail to {len(self._target.to)} by {self._server.host}\n".encode())
        return NOTHING


def message_of(event: Mapping[str, Any], target: EmailTarget, server: MailServer) -> EmailMessage:
    """Return the e-mail; its Message-ID is the event's, so that a repeated one can be told."""
    facts, word = (
        event["data"],
        _SUBJECTS[word_of(event)].format(**{key: event["data"].get(key) for key in ("promise", "version")}),
    )
    message = EmailMessage()
    # A job's name may hold anything that can be printed.
    message["Subject"] = shown(f"[everytick] job '{facts.get('job')}' {word}", 200)
    message["From"] = target.sender or server.sender or f"everytick@{getfqdn()}"
    message["To"] = ", ".join(target.to)
    message["Date"] = format_datetime(datetime.fromisoformat(str(event["time"])))
    message["Message-ID"] = f"<{event['id']}@everytick>"
    message["Auto-Submitted"] = "auto-generated"
    lines = [f"{key}: {facts[key]}" for key in _FACTS if facts.get(key)]
    error = errors_in(event)
    message.set_content("\n".join([*lines, "", error] if error else lines) + "\n")
    return message


def _hand_in(server: MailServer, message: EmailMessage) -> None:
    with _connection(server) as smtp:
        if server.scheme == "smtp":
            smtp.starttls(context=ssl.create_default_context())
        if server.user is not None:
            smtp.login(server.user, server.password or "")
        smtp.send_message(message)


def _connection(server: MailServer) -> smtplib.SMTP:
    if server.scheme == "smtps":
        return smtplib.SMTP_SSL(server.host, server.port, timeout=_SECONDS, context=ssl.create_default_context())
    return smtplib.SMTP(server.host, server.port, timeout=_SECONDS)


def _said(error: Exception) -> str:
    """What the server said; the answer to a login may repeat what it was given."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"the server refused user and password (code {error.smtp_code})"
    return str(error)
