"""What sends a notice: a command, a request, a signed webhook, an e-mail or a ping, told of the event in the payload.

The event is the CloudEvent that the notifier made (`deciding/notices.py`). Its id stays the same over all attempts, so
that a receiver knows one it was told before.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import os
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any

from everytick.domain.outcome import Failed, Outcome
from everytick.domain.payload import payload
from everytick.errors import shown
from everytick.runners.addresses import AddressRules, Forbidden, Unresolved
from everytick.runners.children import Child
from everytick.runners.command import CommandBody, _Tail
from everytick.runners.context import Context
from everytick.runners.outcomes import NOTHING, bounded
from everytick.runners.posting import BadAnswer, HttpRequest, send, without_secrets
from everytick.runners.receivers import PingTarget, WebhookTarget
from everytick.runners.targets import EnvironmentValue, HttpTarget

if TYPE_CHECKING:
    from everytick.runners.http import HttpBody

_SECRET = "whsec_"  # noqa: S105, what a key begins with
_FAILED = (
    "io.everytick.occurrence.failed.",
    _BROKEN := "io.everytick.promise.broken.",
    _ROLLED_BACK := "io.everytick.rollout.rolled_back.",
)
_ROLLED_OUT = "io.everytick.rollout.finished."
_KEPT = "io.everytick.promise.kept."
_SUCCEEDED = "io.everytick.occurrence.succeeded."
NO_EVENT = "this run has no event to tell of: notices are asked for by the end of a job, not by hand"
_SENDS_BODY = ("POST", "PUT", "PATCH")
_GONE = 410
"""The HTTP status of a receiver that wants no more notices."""


def event_in(context: Context) -> dict[str, Any] | None:
    """Return the event that the run is to tell of; None if it was asked for without one."""
    payload = context.payload
    is_event = isinstance(payload, dict) and "specversion" in payload and isinstance(payload.get("data"), dict)
    return payload if is_event else None


def is_failure(event: Mapping[str, Any]) -> bool:
    """Tell whether the event is about a failure or a broken promise rather than a recovery."""
    return str(event.get("type", "")).startswith(_FAILED)


def word_of(event: Mapping[str, Any]) -> str:
    """Return what the event tells of: `failed`, `recovered`, `succeeded`, `broken`, `kept`, `rolled_back`, …"""
    type_ = str(event.get("type", ""))
    if type_.startswith((_BROKEN, _KEPT)):
        return "broken" if type_.startswith(_BROKEN) else "kept"
    if type_.startswith((_ROLLED_BACK, _ROLLED_OUT)):
        return "rolled_back" if type_.startswith(_ROLLED_BACK) else "rolled_out"
    if type_.startswith(_SUCCEEDED):
        return "succeeded"
    return "failed" if is_failure(event) else "recovered"


def errors_in(event: Mapping[str, Any]) -> str:
    """Return what went wrong as text for people: the error of each task that failed, else that of the occurrence."""
    facts = event["data"]
    told = [f"task '{task['task']}': {task['error']}" for task in facts.get("failed_tasks", ()) if task.get("error")]
    return "\n\n".join(told) or str(facts.get("error") or "")


class NoticeCommand(CommandBody):
    """Starts a program that reads the event from its standard input.

    EVERYTICK_JOB, _OCCURRENCE_ID and _SCHEDULED_FOR are those of the occurrence that the event is about;
    EVERYTICK_EVENT is `failed`, `recovered`, `succeeded`, `broken`, `kept`, `rolled_back` or `rolled_out`;
    EVERYTICK_STATUS and EVERYTICK_ERROR say how it ended.
    """

    __slots__ = ()

    async def run(self, context: Context) -> Outcome:
        """Start the program; exit code 0 says that the notice was taken."""
        return Failed(NO_EVENT, give_up=True) if event_in(context) is None else await super().run(context)

    def _start(self, values: dict[str, str], tail: _Tail, context: Context, stdin: int = DEVNULL) -> Child:
        event = event_in(context)
        assert event is not None, "run() refuses a run without an event"
        facts = event["data"]
        about = {
            "event": word_of(event),
            **{key: str(facts.get(key) or "") for key in ("job", "occurrence_id", "scheduled_for", "status", "error")},
        }
        # No process takes a null character in its environment.
        told = {**values, **{key: text.replace("\x00", "") for key, text in about.items()}}
        with tempfile.TemporaryFile() as file:
            file.write(json.dumps(event, ensure_ascii=False).encode())
            file.seek(0)
            return super()._start(told, tail, context, file.fileno())


class NoticeBody(ABC):
    """Tells of the event in the payload of a run. A run without one fails for good: it was asked for by hand."""

    __slots__ = ()

    begins_later = False
    wants_previous = False

    async def run(self, context: Context) -> Outcome:
        """Tell of the event, and say whether the receiver has it."""
        event = event_in(context)
        return Failed(NO_EVENT, give_up=True) if event is None else await self._tell(context, event)

    @abstractmethod
    async def _tell(self, context: Context, event: dict[str, Any]) -> Outcome: ...


class NoticeRequest(NoticeBody):
    """Makes a request as an http task does; one without a body of its own sends the event."""

    __slots__ = ("_body_of", "_target")

    def __init__(self, target: HttpTarget, body_of: "Callable[[HttpTarget], HttpBody]") -> None:
        self._target, self._body_of = target, body_of

    async def _tell(self, context: Context, event: dict[str, Any]) -> Outcome:
        target = self._target
        sends_event = target.body is None and target.method in _SENDS_BODY
        return await self._body_of(replace(target, body=payload(event)) if sends_event else target).run(context)


class Webhook(NoticeBody):
    """Posts the event as structured CloudEvents JSON, signed as Standard Webhooks says."""

    __slots__ = ("_rules", "_target")

    def __init__(self, target: WebhookTarget, rules: AddressRules) -> None:
        self._target, self._rules = target, rules

    async def _tell(self, context: Context, event: dict[str, Any]) -> Outcome:
        body = json.dumps(event, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
        headers = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
        try:
            headers |= _signed(self._target.secret, str(event["id"]), int(time.time()), body)
        except ValueError as error:
            return Failed(bounded(str(error)))
        request = HttpRequest("POST", self._target.url, headers, body)
        return await _outcome(context, request, self._rules, self._target.timeout.total_seconds())


class Ping(NoticeBody):
    """Tells a check of Healthchecks: `<url>/fail` with the error at a failure, the address itself at a success."""

    __slots__ = ("_rules", "_target")

    def __init__(self, target: PingTarget, rules: AddressRules) -> None:
        self._target, self._rules = target, rules

    async def _tell(self, context: Context, event: dict[str, Any]) -> Outcome:
        url, _, query = self._target.url.partition("?")
        place = f"{url.rstrip('/')}/fail" if is_failure(event) else url
        body = errors_in(event).encode()
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        request = HttpRequest("POST", f"{place}?{query}" if query else place, headers, body)
        return await _outcome(context, request, self._rules, self._target.timeout.total_seconds())


class Unsent:
    """Sends nothing: in tests the run and its payload say enough."""

    __slots__ = ()

    begins_later = False
    wants_previous = False

    async def run(self, context: Context) -> Outcome:
        """Say that it was sent."""
        return NOTHING


async def _outcome(context: Context, request: HttpRequest, rules: AddressRules, seconds: float) -> Outcome:
    """Send the request; what may pass with time is tried again, and what was refused for good is not."""
    where = f"{request.method} {without_secrets(request.url)}"
    try:
        async with asyncio.timeout(seconds):
            status = await send(request, rules)
    except TimeoutError:
        return Failed(bounded(f"{where}: no answer within {seconds:g} seconds"))
    except (Forbidden, Unresolved, BadAnswer, OSError) as error:
        reason = shown(str(error), 300) if isinstance(error, (Forbidden, Unresolved, BadAnswer)) else _named(error)
        return Failed(bounded(f"{where}: {reason}"), give_up=isinstance(error, Forbidden))
    context.output(f"{where} {status}\n".encode())
    if 200 <= status <= 299:
        return NOTHING
    redirected = " (a notice follows no redirect: give the address it leads to)" if 300 <= status <= 399 else ""
    return Failed(bounded(f"{where}: status {status}, expected 200 to 299{redirected}"), give_up=status == _GONE)


def _named(error: OSError) -> str:
    return f"{type(error).__name__}: {shown(str(error), 300)}"


def _signed(secret: EnvironmentValue | None, id_: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of Standard Webhooks; without a secret only those that say which message it is."""
    headers = {"webhook-id": id_, "webhook-timestamp": str(timestamp)}
    if secret is None:
        return headers
    key = os.environ.get(secret.name)
    if key is None:
        raise ValueError(f"the environment variable {secret.name} is not set on this node")
    try:
        return {**headers, "webhook-signature": signature(key, id_, timestamp, body)}
    except ValueError:
        # Without the cause, which may repeat a part of the secret.
        raise ValueError(f"the secret in {secret.name} is not whsec_ followed by base64") from None


def signature(secret: str, id_: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message as Standard Webhooks writes it: `v1,` and base64 of its HMAC-SHA256."""
    try:
        key = base64.b64decode(secret.strip().removeprefix(_SECRET), validate=True)
    except binascii.Error as error:
        raise ValueError("the secret is not base64") from error
    if not key:
        raise ValueError("the secret is empty")
    digest = hmac.new(key, f"{id_}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
