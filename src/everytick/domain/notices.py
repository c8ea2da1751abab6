"""Notices: who is told when a job begins to fail or breaks a promise, and when it runs well again.

`on_failure`, `on_recovery`, `on_breach` and `on_success` name one receiver or several. What a receiver means is read in
`runners/receivers.py`; here it is the table that was written, kept as text.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from everytick.domain.policy_checks import refused
from everytick.domain.policy_readers import TEXT, PolicyReader, Schema, described, or_none, table
from everytick.domain.values import value

OWNER = "notices"
"""The owner of the jobs that send notices. No code and no file defines them, so no sync removes them."""

RECEIVERS = ("command", "http", "webhook", "email", "ping")
"""The kinds of receivers: each is the key of its table."""

_BESIDE = ("env", "cwd")
_EXAMPLES = ('{"webhook": {"url": "https://example.org/hook"}}', '{"command": ["program", "argument"]}')


class NoticeKind(StrEnum):
    """What a notice is about: the policy that names its receivers."""

    ON_FAILURE = "on_failure"
    ON_RECOVERY = "on_recovery"
    ON_BREACH = "on_breach"
    ON_SUCCESS = "on_success"


@value(frozen=True)
class Notify:
    """One receiver or several, each as JSON text with sorted keys."""

    receivers: tuple[str, ...]

    def as_data(self) -> object:
        """Return the table of the receiver, or the list of several."""
        import json

        receivers = [json.loads(text) for text in self.receivers]
        return receivers[0] if len(receivers) == 1 else receivers


def notify(key: str, given: object) -> Notify:
    """Return the receivers; only the shape is checked here, since this layer knows no programs and no addresses."""
    if isinstance(given, Notify):
        return given
    if isinstance(given, Mapping):
        return Notify((_text(key, given),))
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        texts = tuple(dict.fromkeys(text for part in given for text in notify(key, part).receivers))
        if texts:
            return Notify(texts)
        raise refused(key, given, "names no receiver", f"{key}=None, to tell none")
    if callable(given):
        raise refused(key, given, "is a function", "a function decorated with the job's .on_complete")
    raise refused(key, given, "names no receiver", *_EXAMPLES)


def _text(key: str, given: Mapping[object, object]) -> str:
    import json

    kinds = [part for part in given if part in RECEIVERS]
    strange = [part for part in given if part not in kinds and not (kinds == ["command"] and part in _BESIDE)]
    if len(kinds) != 1 or strange:
        reason = f"must have one of {', '.join(RECEIVERS)}" if not strange else f"has no '{strange[0]}'"
        raise refused(key, dict(given), reason, *_EXAMPLES)
    try:
        return json.dumps(dict(given), ensure_ascii=False, allow_nan=False, sort_keys=True)
    except (TypeError, ValueError):
        raise refused(key, dict(given), "is not JSON", *_EXAMPLES) from None


_ADDRESS: Schema = {"type": "string", "format": "uri"}
_REQUEST = {
    "url": _ADDRESS,
    "allow_http": {"type": "boolean", "description": "Whether http: is allowed for a host other than this machine."},
    "timeout": described(TEXT, "How long to wait for the answer, such as 30s."),
}
_RECEIVER: Schema = table(
    command=described(
        {"anyOf": [TEXT, {"type": "array", "items": TEXT}]},
        "A program, as a list of arguments or as text for `sh -c`; it reads the event from its standard input.",
    ),
    env=described({"type": "object"}, "Environment variables of the command."),
    cwd=described(TEXT, "The folder in which the command starts."),
    http=described(
        {"anyOf": [_ADDRESS, {"type": "object"}]}, "A request as an http task has it; POST sends the event."
    ),
    webhook=described(
        table(
            ("url",),
            **_REQUEST,
            secret_env=described(TEXT, "The environment variable with the secret that signs it: whsec_…"),
        ),
        "A signed CloudEvent by POST.",
    ),
    email=described(
        table(
            ("to",),
            to={"anyOf": [TEXT, {"type": "array", "items": TEXT}], "description": "Who gets it."},
            sender=described(TEXT, "Who it is from; without it the setting smtp_sender."),
        ),
        "An e-mail by the server that the setting `smtp` names.",
    ),
    ping=described({"anyOf": [_ADDRESS, table(("url",), **_REQUEST)]}, "A check of Healthchecks, by its address."),
)

_SCHEMA: Schema = {"anyOf": [_RECEIVER, {"type": "array", "items": _RECEIVER, "minItems": 1}, {"type": "null"}]}

NOTIFY = or_none(
    PolicyReader(
        notify,
        {},
        "Notify | Mapping[str, Any] | Iterable[Notify | Mapping[str, Any]]",
        python='webhook("https://example.org/hook")',
    )
)._replace(schema=_SCHEMA)
