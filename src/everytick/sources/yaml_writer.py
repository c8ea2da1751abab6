"""Writes files of jobs that `yaml_reader` reads back as the same values, and that people can edit.

Text stays bare only where no reader of YAML takes it for anything else; everything else is quoted as
in JSON, so that no YAML rule about `no`, `1e3` or `12:30` ever comes into play.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from everytick.errors import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BARE = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+=-]+)*")
_TAKEN = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
# JSON does not escape these, and YAML reads them as line ends or as byte order marks.
_HIDDEN = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")
_LONGEST_NOTE_CHARACTERS = 300


def written_file(
    jobs: Mapping[str, Mapping[str, object]],
    *,
    defaults: Mapping[str, object] | None = None,
    head: Iterable[str] = (),
    notes: Mapping[str, Iterable[str]] | None = None,
) -> str:
    """Return the text of a file of these jobs. `head` and the `notes` on each job become comments."""
    lines = [*(_comment(line) for line in head), "version: 1"]
    if defaults:
        lines += ["defaults:", *(f"  {scalar(key)}: {flow(given)}" for key, given in defaults.items())]
    lines.append("jobs:" if jobs else "jobs: {}")
    for name, parts in jobs.items():
        lines += [f"  {_comment(note)}" for note in (notes or {}).get(name, ())]
        lines.append(f"  {scalar(name)}:")
        for key, given in parts.items():
            lines += _part(key, given)
    return "\n".join(lines) + "\n"


def _part(key: str, given: object) -> list[str]:
    """Return the lines of one key of a job. Lists of tables and of schedules have a line for each item."""
    is_long = isinstance(given, (list, tuple)) and (key == "tasks" or (key == "schedule" and len(given) > 1))
    if not is_long or not isinstance(given, (list, tuple)):
        return [f"    {scalar(key)}: {flow(given)}"]
    return [f"    {scalar(key)}:", *(f"      - {flow(item)}" for item in given)]


def flow(given: object) -> str:
    """Return a value on one line."""
    if isinstance(given, dict):
        return "{" + ", ".join(f"{scalar(str(key))}: {flow(part)}" for key, part in given.items()) + "}"
    if isinstance(given, (list, tuple)):
        return "[" + ", ".join(map(flow, given)) + "]"
    return scalar(given)


def scalar(given: object) -> str:
    """Return a text, a number, true, false or null."""
    if isinstance(given, str):
        if _BARE.fullmatch(given) and given.lower() not in _TAKEN:
            return given
        return _HIDDEN.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(given, ensure_ascii=False))
    return json.dumps(given)


def _comment(text: str) -> str:
    return f"# {shown(text, _LONGEST_NOTE_CHARACTERS)}".rstrip()
