"""Zones by the rule that the `TZ` variable of a host may hold instead of a name: `CET-1CEST,M3.5.0,M10.5.0/3`.

Stored as `posix:` and the rule, so that every node reads the same zone. The prefix is needed:
`GMT+5` is written by many who mean five hours east, and POSIX means five hours west.
"""

import re
from io import BytesIO
from struct import pack
from zoneinfo import ZoneInfo

PREFIX = "posix:"

_LETTERS = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)"
_OFFSET = r"[+-]?\d{1,2}(?::\d{2}(?::\d{2})?)?"
_RULE = re.compile(rf"{_LETTERS}({_OFFSET})(?:{_LETTERS}(?:{_OFFSET})?(,[0-9JM.,:/+-]+)?)?", re.ASCII)

_DEFAULT_CHANGES = ",M3.2.0,M11.1.0"
"""When summer time begins and ends where the rule does not say it: the C library's default."""


def is_rule(text: str) -> bool:
    """Tell whether the text has the form of a rule. Its numbers are not checked."""
    return _RULE.fullmatch(text) is not None


def by_rule(rule: str) -> ZoneInfo:
    """Return the zone of a rule; raise ValueError if there can be no such zone."""
    read = _RULE.fullmatch(rule)
    if read is None:
        raise ValueError(rule)
    has_summer, says_when = read.end(1) < len(rule), read.group(2) is not None
    whole = rule + _DEFAULT_CHANGES if has_summer and not says_when else rule
    return ZoneInfo.from_file(BytesIO(_table(whole)), key=PREFIX + rule)


def named(rule: str) -> str:
    """Return the name under which the zone of a rule is stored: UTC if its offset is always zero."""
    read = _RULE.fullmatch(rule)
    is_fixed = read is not None and read.end(1) == len(rule)
    return "UTC" if is_fixed and read is not None and not re.search("[1-9]", read.group(1)) else PREFIX + rule


def _table(rule: str) -> bytes:
    """Return a zone file without changes, so that its rule decides every moment (RFC 8536)."""
    block = b"TZif2" + bytes(15) + pack(">6l", 0, 0, 0, 0, 1, 4) + pack(">lbb", 0, 0, 0) + b"UTC\0"
    return block + block + f"\n{rule}\n".encode("ascii")
