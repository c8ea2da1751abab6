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

_UNSAID = ",M3.2.0,M11.1.0"
"""When summer time begins and ends where the rule does not say so: what the C library takes."""


def is_rule(text: str) -> bool:
    """Whether the text has the form of a rule: what its numbers say is not looked at."""
    return _RULE.fullmatch(text) is not None


def by_rule(rule: str) -> ZoneInfo:
    """Return the zone of a rule; one that cannot be is a ValueError."""
    read = _RULE.fullmatch(rule)
    if read is None:
        raise ValueError(rule)
    has_summer, says_when = read.end(1) < len(rule), read.group(2) is not None
    whole = rule + _UNSAID if has_summer and not says_when else rule
    return ZoneInfo.from_file(BytesIO(_table(whole)), key=PREFIX + rule)


def named(rule: str) -> str:
    """Return the name under which the zone of a rule is stored; one that is always UTC is called so."""
    read = _RULE.fullmatch(rule)
    is_fixed = read is not None and read.end(1) == len(rule)
    return "UTC" if is_fixed and read is not None and not re.search("[1-9]", read.group(1)) else PREFIX + rule


def _table(rule: str) -> bytes:
    """Return a table of no changes at all, which leaves every moment to its rule (RFC 8536)."""
    block = b"TZif2" + bytes(15) + pack(">6l", 0, 0, 0, 0, 1, 4) + pack(">lbb", 0, 0, 0) + b"UTC\0"
    return block + block + f"\n{rule}\n".encode("ascii")
