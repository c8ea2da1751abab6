"""Payloads and results of tasks: JSON of bounded size, kept as text.

Text cannot be changed after a decision, compares by content and hashes; every
reader gets a fresh copy of the value. Never pickle: a payload outlives the code that
wrote it.
"""

from math import isfinite

from everytick.domain.values import value
from everytick.errors import InvalidPayload, shown

PAYLOAD_LIMIT = 256 * 1024
"""Bytes of UTF-8 that one payload or result may have."""

_DEEPEST = 100
"""Levels of lists and mappings within each other."""


@value
class Payload:
    """A JSON value in its canonical text: sorted keys, no blanks."""

    text: str

    def read(self) -> object:
        """Return a fresh copy of the value."""
        import json

        return json.loads(self.text)

    def as_data(self) -> object:
        """Return the value itself: it is JSON already."""
        return self.read()


def payload(given: object, what: str = "payload", limit: int = PAYLOAD_LIMIT) -> Payload:
    """Return the value as JSON text; refuse what JSON cannot carry unchanged, and what is too large.

    Tuples become lists; everything else reads back equal or is refused here, before it is stored.
    """
    import json

    if isinstance(given, Payload):
        return given
    _refuse_what_json_lacks(given, what, limit)
    try:
        text = json.dumps(given, allow_nan=False, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidPayload(what, "holds half of a surrogate pair, which no UTF-8 text can: replace it") from None
    except ValueError as error:
        raise InvalidPayload(what, f"is not JSON: {shown(str(error))}") from None
    if size > limit:
        raise InvalidPayload(what, f"has {size:,} bytes as JSON, {_too_large(limit)}")
    return Payload(text)


def _refuse_what_json_lacks(given: object, what: str, limit: int) -> None:
    """Walk the value without recursion: it may hold itself, or one part a million times."""
    left = limit
    open_: list[tuple[object, str, int]] = [(given, "", 0)]
    while open_:
        part, path, depth = open_.pop()
        at = f" at {path}" if path else ""
        left -= 1
        if left < (len(part) if isinstance(part, (dict, list, tuple)) else 0):
            # Every part takes at least a byte, so nothing larger need be looked at.
            raise InvalidPayload(what, f"has more than {limit:,} parts, {_too_large(limit)}")
        if depth > _DEEPEST:
            raise InvalidPayload(what, f"is nested deeper than {_DEEPEST} levels, or holds itself")
        if isinstance(part, dict):
            for key, item in part.items():
                if not isinstance(key, str):
                    raise InvalidPayload(what, f"has the key {shown(key)}{at}, and JSON keys are text")
                open_.append((item, f"{path}.{shown(key, 40)}".lstrip("."), depth + 1))
        elif isinstance(part, (list, tuple)):
            open_.extend((item, f"{path}[{index}]", depth + 1) for index, item in enumerate(part))
        elif isinstance(part, float) and not isfinite(part):
            raise InvalidPayload(what, f"holds {part}{at}, which JSON does not have: use None or text")
        elif part is not None and not isinstance(part, (str, int, float)):
            kind = type(part).__name__
            article = "an" if kind[0] in "aeiouAEIO" else "a"
            raise InvalidPayload(
                what, f"holds {article} {kind}{at}, which is not JSON: use text, numbers, lists or dicts"
            )


def _too_large(limit: int) -> str:
    return f"and at most {limit:,} are allowed: keep it elsewhere and pass where it is"
