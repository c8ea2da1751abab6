"""Targets: what a task does, as the text that a store keeps.

A function is `package.module:qualified.name`. Everything else is a JSON object of one
key that says which kind it is:

    {"call": "package.module:name"}
    {"command": ["rclone", "copy", "{{ scratch }}/db.sql", "remote:backups"], "env": {…}, "cwd": "/srv"}
    {"command": "pg_dump app > $EVERYTICK_SCRATCH/db.sql"}
    {"http": {"method": "POST", "url": "https://example.org/hook", "json": {…}}}
    {"target": "tasks.send_report", "options": {"queue": "reports"}}
    {"notice": {"webhook": {…}}, "needs": ["code:shop"]}

A `target` is for an engine that the task's runner names: celery, dask or ray.

A notice tells a receiver (`runners/receivers.py`) of the event in the payload; it needs what
the job needs that it tells of. Only everytick itself writes one.

What cannot be read is refused when it is written, on the line that wrote it; a target that
comes from a store and cannot be read is a reason why its job cannot run on this node.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from everytick.domain.durations import duration, format_duration
from everytick.domain.names import did_you_mean
from everytick.domain.payload import Payload, payload
from everytick.domain.values import value
from everytick.errors import InvalidDuration, InvalidPayload, InvalidPolicies, shown

if TYPE_CHECKING:
    from everytick.runners.receivers import Receiver

TEMPLATE_NAMES = (
    "job",
    "task",
    "occurrence_id",
    "run_id",
    "attempt_id",
    "attempt",
    "fence",
    "scheduled_for",
    "covers_after",
    "covers_through",
    "payload",
    "scratch",
)
"""What `{{ … }}` may name; a command has the same as EVERYTICK_… in its environment."""

ENGINE_OPTIONS = ("queue", "priority", "exchange", "routing_key", "num_cpus", "num_gpus")
"""How Celery brings a task to a worker, and what a task takes of a Ray cluster; Dask knows none of them."""

_KIND_OF_OPTION: dict[str, tuple[tuple[type, ...], str]] = {
    "priority": ((int,), "a whole number"),
    "num_cpus": ((int, float), "a number"),
    "num_gpus": ((int, float), "a number"),
}

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")

TEMPLATE = re.compile(r"\{\{\s*(.*?)\s*\}\}")

_PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_ENGINE_NAME = re.compile(r"[^\W\d][\w-]*(?:[.:][^\W\d][\w-]*)*")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_USUAL_TIMEOUT = timedelta(seconds=30)
"""How long a request may take unless its target says otherwise."""


@value
class FunctionTarget:
    """A function of the application itself. The application knows it; it is never imported."""

    path: str


@value
class CallTarget:
    """A function that is imported from a package which the node allows."""

    path: str


@value
class CommandTarget:
    """A program: an argument vector, or one text for `sh -c`."""

    command: tuple[str, ...] | str
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None


@value
class HttpTarget:
    """A request; without `expect` every status from 200 to 299 is a success.

    A header whose value is `EnvironmentValue` is read on the node when the request is made,
    so that no secret is kept in a store.
    """

    method: str
    url: str
    headers: "tuple[tuple[str, str | EnvironmentValue], ...]" = ()
    body: Payload | None = None
    expect: tuple[int, ...] = ()
    timeout: timedelta = _USUAL_TIMEOUT


@value(frozen=True)
class EnvironmentValue:
    """The value of an environment variable of the node that runs the task."""

    name: str


@value
class NoticeTarget:
    """A receiver that is told of the event in the payload."""

    receiver: "Receiver"


@value
class EngineTarget:
    """What the engine that the task's runner names is to call: its own name for it, and options of that engine."""

    target: str
    options: tuple[tuple[str, str | int | float], ...] = ()


Target: TypeAlias = FunctionTarget | CallTarget | CommandTarget | HttpTarget | NoticeTarget | EngineTarget


def command_target(
    command: str | Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None, job: str = ""
) -> str:
    """Return the target of a command."""
    return _written({"command": command if isinstance(command, str) else list(command), "env": env, "cwd": cwd}, job)


def http_target(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str | EnvironmentValue] | None = None,
    json: object = None,
    expect: Iterable[int] = (),
    timeout: str | timedelta | None = None,
    job: str = "",
) -> str:
    """Return the target of a request."""
    written = {
        key: {"env": value.name} if isinstance(value, EnvironmentValue) else value
        for key, value in (headers or {}).items()
    }
    length = format_duration(timeout) if isinstance(timeout, timedelta) else timeout
    parts = {"method": method, "url": url, "headers": written, "json": json, "expect": list(expect), "timeout": length}
    return _written({"http": {key: part for key, part in parts.items() if part not in (None, {}, [])}}, job)


def engine_target(target: str, options: Mapping[str, object] | None = None, *, job: str = "") -> str:
    """Return the target of a task that an engine carries out."""
    return _written({"target": target, "options": options}, job)


def call_target(path: str, *, job: str = "") -> str:
    """Return the target of a function to be imported."""
    return _written({"call": path}, job)


def _written(parts: Mapping[str, object], job: str) -> str:
    """Return the text after reading it back once: a wrong target is refused now."""
    left = {key: part for key, part in parts.items() if part is not None and part != {}}
    try:
        text = json.dumps(left, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidPolicies(job, f"the target is not JSON: {shown(str(error))}") from None
    read_target(text, job)
    return text


def read_target(text: str, job: str = "") -> Target:
    """Read the text of a target."""
    if not text.startswith("{"):
        return FunctionTarget(text)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refused(job, text, f"is not JSON: {shown(str(error))}") from None
    if "notice" in data:
        return _notice(data, job)
    for kind, read in _KINDS.items():
        if kind in data:
            return read(data, job)
    raise _refused(job, text, f"names none of {', '.join(_KINDS)}")


def _call(data: Mapping[str, Any], job: str) -> CallTarget:
    _only(data, ("call",), "a call", job)
    path = data["call"]
    if not isinstance(path, str) or not _PATH.fullmatch(path):
        raise _refused(job, path, "is not a function's place", 'call: "package.module:function"')
    if any(part.startswith("__") for part in re.split(r"[.:]", path)):
        raise _refused(job, path, "goes through a name with two underscores", "a function of a module")
    return CallTarget(path)


def _engine(data: Mapping[str, Any], job: str) -> EngineTarget:
    _only(data, ("target", "options"), "a target", job)
    target, options = _text(data["target"], "target", job), data.get("options") or {}
    if not _ENGINE_NAME.fullmatch(target):
        raise _refused(job, target, "is no name that an engine could know", 'target: "tasks.send_report"')
    if not isinstance(options, dict):
        raise _refused(job, options, "is not a table of options", 'options: {"queue": "reports"}')
    for name, given in options.items():
        if name not in ENGINE_OPTIONS:
            raise _refused(job, name, f"is not an option{did_you_mean(name, ENGINE_OPTIONS)}", *ENGINE_OPTIONS)
        kinds, kind = _KIND_OF_OPTION.get(name, ((str,), "text"))
        if isinstance(given, bool) or not isinstance(given, kinds):
            raise _refused(job, given, f"is not {kind}, and the option {name} must be")
    return EngineTarget(target, tuple(sorted(options.items())))


def _command(data: Mapping[str, Any], job: str) -> CommandTarget:
    _only(data, ("command", "env", "cwd"), "a command", job)
    command, env, cwd = data["command"], data.get("env") or {}, data.get("cwd")
    if cwd is not None:
        _refuse_template(_text(cwd, "cwd", job), job)
    if not isinstance(env, dict):
        raise _refused(job, env, "is not a table of environment variables", 'env: {"NAME": "value"}')
    for name, given in env.items():
        if not _ENV_NAME.fullmatch(_text(name, "env", job)):
            raise _refused(job, name, "cannot be the name of an environment variable")
        _refuse_template(_text(given, f"env {name}", job), job)
    return CommandTarget(_arguments(command, job), tuple(sorted(env.items())), cwd)


def _arguments(command: object, job: str) -> tuple[str, ...] | str:
    if isinstance(command, str):
        if not _text(command, "command", job).strip():
            raise _refused(job, command, "says nothing to run")
        _refuse_template(command, job)
        return command
    if not isinstance(command, list) or not command:
        raise _refused(
            job, command, "is neither shell text nor a list of arguments", 'command: ["program", "argument"]'
        )
    for argument in command:
        for name in TEMPLATE.findall(_text(argument, "command", job)):
            if name not in TEMPLATE_NAMES:
                near = did_you_mean(name, TEMPLATE_NAMES)
                known = () if near else (f"one of {', '.join(TEMPLATE_NAMES)}",)
                raise _refused(job, "{{ " + name + " }}", f"is not a template value{near}", *known)
    if not command[0]:
        raise _refused(job, command, "names no program")
    return tuple(command)


def _refuse_template(text: str, job: str) -> None:
    """Raise if shell text has a template: nothing is ever pasted into shell text."""
    if match := TEMPLATE.search(text):
        reason = "stands outside of a list of arguments, where nothing is filled in"
        raise _refused(job, match.group(), reason, _as_variable(match.group(1)), "a list of arguments")


def _as_variable(name: str) -> str:
    return f'"$EVERYTICK_{name.upper()}"' if name in TEMPLATE_NAMES else "an environment variable"


def _http(data: Mapping[str, Any], job: str) -> HttpTarget:
    _only(data, ("http",), "a request", job)
    request = data["http"]
    if not isinstance(request, dict):
        raise _refused(job, request, "is not a request", 'http: {"url": "https://example.org/"}')
    _only(request, ("method", "url", "headers", "json", "expect", "timeout"), "a request", job)
    method = request.get("method", "GET")
    if method not in METHODS:
        raise _refused(job, method, "is not a method", f"one of {', '.join(METHODS)}")
    return HttpTarget(
        method=method,
        url=checked_url(request.get("url"), job),
        headers=tuple(_header(name, given, job) for name, given in _table(request.get("headers"), "headers", job)),
        body=_body(request.get("json"), job),
        expect=_statuses(request.get("expect") or [], job),
        timeout=_timeout(request.get("timeout"), job),
    )


def _notice(data: Mapping[str, Any], job: str) -> NoticeTarget:
    from everytick.runners.receivers import read_receiver

    _only(data, ("notice", "needs"), "a notice", job)
    return NoticeTarget(read_receiver(data["notice"], job))


def checked_url(given: object, job: str = "") -> str:
    """Return the address of a request: http or https, with a host and without a password."""
    text = _text(given, "url", job)
    without_query = text.partition("?")[0]
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise _refused(job, without_query, f"is not an address: {shown(str(error))}") from None
    if parts.scheme not in ("http", "https"):
        raise _refused(job, without_query, "is neither http: nor https:")
    if parts.username is not None or parts.password is not None:
        instead = 'headers: {"Authorization": {"env": "NAME"}}, read from the environment of the node'
        raise _refused(job, f"{parts.scheme}://…@{parts.hostname}", "carries a name or password", instead)
    if not parts.hostname or any(not c.isprintable() or c.isspace() for c in text):
        raise _refused(job, without_query, "has no host, or holds blanks")
    return text


def _header(name: str, given: object, job: str) -> "tuple[str, str | EnvironmentValue]":
    if not _TOKEN.fullmatch(name) or name.lower() in ("host", "content-length", "transfer-encoding"):
        raise _refused(job, name, "is not a header that a request may set")
    if isinstance(given, dict):
        variable = given.get("env")
        if set(given) != {"env"} or not isinstance(variable, str) or not _ENV_NAME.fullmatch(variable):
            raise _refused(job, name, "names no environment variable", '{"env": "NAME"}')
        return name, EnvironmentValue(variable)
    text = _text(given, f"header {name}", job)
    if not text.isprintable() or not text.isascii():
        raise _refused(job, name, "has a value that is not printable ASCII")
    return name, text


def _body(given: object, job: str) -> Payload | None:
    if given is None:
        return None
    try:
        return payload(given, "json")
    except InvalidPayload as error:
        raise InvalidPolicies(job, str(error)) from None


def _statuses(given: object, job: str) -> tuple[int, ...]:
    if not isinstance(given, list):
        raise _refused(job, given, "is not a list of statuses", "expect: [200, 204]")
    for status in given:
        if isinstance(status, bool) or not isinstance(status, int) or not 100 <= status <= 599:
            raise _refused(job, status, "is not a status", "expect: [200, 204]")
    return tuple(given)


def _timeout(given: object, job: str) -> timedelta:
    if given is None:
        return _USUAL_TIMEOUT
    try:
        length = duration(given)
    except InvalidDuration as error:
        raise InvalidPolicies(job, f"timeout of the request: {error}") from None
    if length <= timedelta(0):
        raise _refused(job, given, "is no time to answer in", 'timeout: "30s"')
    return length


def _table(given: object, what: str, job: str) -> Iterable[tuple[str, object]]:
    if given is None:
        return ()
    if not isinstance(given, dict):
        raise _refused(job, given, f"is not a table of {what}")
    return given.items()


def _text(given: object, what: str, job: str) -> str:
    if not isinstance(given, str) or "\x00" in given:
        raise _refused(job, given, f"is not text, and {what} must be")
    return given


def _only(data: Mapping[str, Any], known: tuple[str, ...], what: str, job: str) -> None:
    for key in data:
        if key not in known:
            raise _refused(job, key, f"is not part of {what}{did_you_mean(key, known)}", *known)


def _refused(job: str, read: object, reason: str, *instead: str) -> InvalidPolicies:
    return InvalidPolicies(job, f"target: '{shown(read)}' {reason}", instead)


_KINDS: Mapping[str, Callable[[Mapping[str, Any], str], Target]] = MappingProxyType(
    {"command": _command, "http": _http, "call": _call, "target": _engine}
)
