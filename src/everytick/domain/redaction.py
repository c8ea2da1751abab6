"""Redaction: secrets in texts and values become `***` before they are logged or stored.

A secret is known by its name (`password=…`, `"api_key": "…"`) or by its form (`Bearer …`, a password in an address, a
private key, a token of a well-known service). Nothing else is known to be one: a task that prints its password alone
prints it. So do not pass secrets to jobs; name where they are kept.
"""

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"
"""What stands for a secret."""

_NAMES = (
    r"pass(?:word|wd|phrase)?|pwd|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|secret[-_]?key|"
    r"client[-_]?secret|auth(?:orization)?|credentials?|session[-_]?id|cookie|set-cookie|dsn|webhook[-_]?secret"
)
_KEY = re.compile(rf"(?:.*[-_.])?(?:{_NAMES})(?:[-_](?:value|text|file))?", re.I | re.A)
_NOT_SECRET = re.compile(r".*(?:_file|_path|_name|_id|_count|_limit|_type|_url)", re.I | re.A)
_NAMED = re.compile(
    rf"""(?P<name>\b[\w.-]{{0,40}}?(?:{_NAMES})["']?\s{{0,3}}(?:=>|[:=])\s{{0,3}})"""
    r"""(?:(?P<scheme>(?:bearer|basic|token)\s+))?"""
    r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[^\s"'&,;)}\]]+)""",
    re.I | re.A,
)
_FORMS = re.compile(
    r"(?P<address>\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{0,100}:)[^\s/@\"']{1,200}(?=@)"
    r"|(?P<scheme>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}\b"
    r"|\bxox[abposr]-[A-Za-z0-9-]{10,}"
    r"|\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}\b"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)",
    re.I | re.A | re.S,
)
_HINTS = re.compile(rf"{_NAMES}|://|bearer|basic|AKIA|ASIA|gh[pousr]_|xox|_live_|_test_|eyJ|PRIVATE KEY", re.I | re.A)


def redacted(text: str) -> str:
    """Return the text with `***` for everything in it that looks like a secret."""
    if _HINTS.search(text) is None:
        return text
    return _NAMED.sub(_hide_value, _FORMS.sub(_hide_form, text))


def _hide_form(match: re.Match[str]) -> str:
    return f"{match['address'] or match['scheme'] or ''}{HIDDEN}"


def _hide_value(match: re.Match[str]) -> str:
    return f"{match['name']}{match['scheme'] or ''}{HIDDEN}"


def is_secret_name(name: str) -> bool:
    """Tell whether a value under this name is a secret: `db_password` is, `token_count` and `password_file` are not."""
    return _KEY.fullmatch(name) is not None and _NOT_SECRET.fullmatch(name) is None


def redacted_data(value: Any) -> Any:
    """Return a value as JSON has them, with `***` for what stands under the name of a secret or looks like one."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if is_secret_name(str(key)) and item else redacted_data(item) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redacted_data(item) for item in value]
    return value


class RedactedLines:
    """Redacts output that comes in parts: a secret may come in two of them, and a private key has many lines.

    What is behind the last line break waits for the next one, up to `LONGEST_LINE` bytes.
    """

    __slots__ = ("_begun", "_is_key")

    def __init__(self) -> None:
        self._begun, self._is_key = b"", False

    def take(self, data: bytes) -> bytes:
        """Return what may be kept of this part and of what waited."""
        data = self._begun + data
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if len(data) - end > LONGEST_LINE:
            end = len(data)
        self._begun = data[end:]
        return self._redact(data[:end])

    def rest(self) -> bytes:
        """Return what waited, at the end."""
        left, self._begun = self._begun, b""
        return self._redact(left)

    def _redact(self, data: bytes) -> bytes:
        if not data:
            return b""
        text = data.decode("utf-8", "surrogateescape")
        if self._is_key:
            _, end, text = text.partition(_KEY_END)
            if not end:
                return b""
            self._is_key, text = False, text.partition("\n")[2]
        begin = text.rfind(_KEY_BEGIN)
        self._is_key = begin >= 0 and "PRIVATE KEY-----" in text[begin:] and _KEY_END not in text[begin:]
        hidden = redacted(text)
        if self._is_key and not hidden.endswith("\n"):
            hidden += "\n"
        return hidden.encode("utf-8", "surrogateescape")


LONGEST_LINE = 4_096
"""Most bytes of a line that wait for its end."""

_KEY_BEGIN, _KEY_END = "-----BEGIN ", "-----END "
