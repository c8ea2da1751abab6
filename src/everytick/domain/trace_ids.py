"""The ids of traces: those of an occurrence follow from its own id, so that all nodes and programs agree on them.

The trace of an occurrence has the number that stands in the occurrence's id: who has one can search for the other.
"""

import re
from hashlib import sha256

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.A)


def _digits(id_: str) -> str:
    """Return 32 hexadecimal digits, not all zero: those in the id, else those of its hash."""
    match = _UUID.search(id_.lower())
    digits = match[0].replace("-", "") if match else ""
    return digits if digits.strip("0") else sha256(id_.encode()).hexdigest()[:32]


def trace_id(occurrence_id: str) -> str:
    """Return the id of the trace of an occurrence: 32 hexadecimal digits."""
    return _digits(occurrence_id)


def span_id(id_: str) -> str:
    """Return the id of the span of an occurrence or an attempt: 16 hexadecimal digits, not all zero."""
    first = _digits(id_)[:16]
    return first if first.strip("0") else _digits(id_)[16:]


def traceparent(occurrence_id: str, id_: str) -> str:
    """Return the header by which a program continues the trace of an occurrence (W3C Trace Context)."""
    return f"00-{trace_id(occurrence_id)}-{span_id(id_)}-01"
