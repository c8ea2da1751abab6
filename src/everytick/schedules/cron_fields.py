"""From cron text to bit masks, in three dialects. Text that the dialect does not have is refused.

A mask holds bit n when the field names n. Numbers are checked before anything is
expanded, so that no input costs more than its own length.
"""

import re
from collections.abc import Callable, Mapping

from everytick.domain.values import value
from everytick.errors import CronExpressionInvalidError, FieldParseError, shown
from everytick.schedules.combine import MAX_CHARACTERS, hash_number

_BLANKS = re.compile(r"[ \t]+")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_WEEKDAYS = "sun mon tue wed thu fri sat".split()
MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
DIALECTS = ("vixie", "posix", "quartz")


@value
class Field:
    """One position of an expression: the numbers it may hold and the names for them."""

    name: str
    low: int
    high: int
    names: Mapping[str, int]
    size: int


def _field(name: str, low: int, high: int, names: Mapping[str, int] | None = None, size: int | None = None) -> Field:
    return Field(name, low, high, names or {}, size or high - low + 1)


_MONTH_NAMES = {name: n for n, name in enumerate(_MONTHS, 1)}
_POSIX = (
    _field("minute", 0, 59),
    _field("hour", 0, 23),
    _field("day", 1, 31),
    _field("month", 1, 12),
    _field("weekday", 0, 6),
)
_VIXIE = (
    *_POSIX[:3],
    _field("month", 1, 12, _MONTH_NAMES),
    _field("weekday", 0, 7, {name: n for n, name in enumerate(_WEEKDAYS)}, size=7),
)
_QUARTZ = (
    _field("second", 0, 59),
    *_VIXIE[:4],
    _field("weekday", 1, 7, {name: n for n, name in enumerate(_WEEKDAYS, 1)}),
    _field("year", 1970, 2199),
)
_HASH_TOKEN = re.compile(r"(?:^|[ ,])H", re.ASCII)
_HASHED = re.compile(r"H(?:\(([0-9]+)-([0-9]+)\))?(?:/([0-9]+))?", re.ASCII)
_DAY_SPECIAL = re.compile(r"L|LW|L-([0-9]+)|([0-9]+)W", re.ASCII)
_QUARTZ_TOKEN = re.compile(r"\?|L(?:W|-[0-9]*)?|[0-9]*[LW]|[0-9]*#[0-9]*", re.ASCII)
_WEEKDAY_SPECIAL = re.compile(r"([0-9]+|[A-Za-z]{3})(?:L|#([0-9]+))", re.ASCII)


@value
class Special:
    """A day that depends on the month: `kind` is L, LW, W, nL or #."""

    kind: str
    number: int = 0
    which: int = 0


Parser = Callable[[Field, str, str, list[Special]], int]


@value
class Masks:
    """What a cron expression says, as bit masks."""

    seconds: int
    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    years: int | None
    specials: tuple[Special, ...]
    either: bool
    """A date matches when its day or its weekday does, since both are restricted."""
    wildcard: bool
    """The minute or the hour begins with `*`: the schedule follows elapsed time through clock changes."""


def normal(expression: object) -> str:
    """Return the expression with single blanks, the form that is stored and compared."""
    if not isinstance(expression, str):
        raise CronExpressionInvalidError(expression, "format", "must be text like 30 2 * * 1-5")
    if len(expression) > MAX_CHARACTERS:
        raise CronExpressionInvalidError(expression, "format", f"must have at most {MAX_CHARACTERS:,} characters")
    return _BLANKS.sub(" ", expression).strip(" ")


def read(expression: str, dialect: str, day_match: str) -> Masks:
    """Return the masks of an expression as `normal` writes it; text that the dialect does not have is refused.

    A field with `H` is read for its mistakes only: its number comes with the job (`hashed`).
    """
    try:
        texts = _split(expression, dialect)
        return _quartz(texts) if dialect == "quartz" else _five(texts, dialect, day_match)
    except FieldParseError as error:
        raise CronExpressionInvalidError(expression, error.field_name, error.reason) from error


def hashed(expression: str, job_id: str) -> str:
    """Return the expression with every `H` replaced by this job's number for that field."""
    texts = expression.split(" ")
    return " ".join(
        ",".join(_numbered(field, part, job_id) for part in text.split(",")) if "H" in text else text
        for field, text in zip(_VIXIE, texts, strict=True)
    )


def is_hashed(expression: str, dialect: str) -> bool:
    """Tell whether a field of the expression takes its number from the job."""
    return dialect == "vixie" and "H" in expression and _HASH_TOKEN.search(expression) is not None


def _split(expression: str, dialect: str) -> list[str]:
    # posix has no macros: with five fields the first of them is the wrong one.
    if expression.startswith("@") and (dialect == "vixie" or expression.count(" ") != 4):
        return _macro(expression, dialect).split(" ")
    texts = expression.split(" ") if expression else []
    wanted = (6, 7) if dialect == "quartz" else (5,)
    if len(texts) in wanted:
        return texts
    count = f"got {len(texts)}"
    if dialect == "quartz":
        raise FieldParseError("format", expression, f"must have 6 or 7 fields, seconds first, {count}")
    if len(texts) == 6 and dialect == "vixie":
        count += ": with seconds first, say dialect quartz; with a year or a command last, leave it out"
    raise FieldParseError("format", expression, f"must have exactly 5 fields (minute hour day month weekday), {count}")


def _macro(expression: str, dialect: str) -> str:
    if dialect != "vixie":
        raise FieldParseError("format", expression, f"must not be a macro, which {dialect} does not have")
    if expression not in MACROS:
        raise FieldParseError("format", expression, f"must be one of {', '.join(MACROS)} if it begins with @")
    return MACROS[expression]


def _five(texts: list[str], dialect: str, day_match: str) -> Masks:
    fields, parse = (_POSIX, _posix_part) if dialect == "posix" else (_VIXIE, _vixie_part)
    minutes, hours, days, months, weekdays = (
        _star(field, text, dialect) or _list(field, text, parse) for field, text in zip(fields, texts, strict=True)
    )
    restricted = not texts[2].startswith("*") and not texts[4].startswith("*")
    return Masks(
        seconds=1,
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=weekdays & 0x7F | weekdays >> 7,
        years=None,
        specials=(),
        either=restricted and day_match == "or",
        wildcard=texts[0].startswith("*") or texts[1].startswith("*"),
    )


def _quartz(texts: list[str]) -> Masks:
    specials: list[Special] = []
    masks = [
        _star(field, text, "quartz") or _list(field, text, _quartz_part, specials)
        for field, text in zip(_QUARTZ, texts, strict=False)
    ]
    if (texts[3] == "?") == (texts[5] == "?"):
        raise FieldParseError("day", texts[3], "or weekday must be ?, and not both: the other one decides")
    seconds, minutes, hours, days, months, weekdays, *years = masks
    return Masks(
        seconds=seconds,
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=weekdays >> 1,
        years=years[0] if years else None,
        specials=tuple(specials),
        either=False,
        wildcard=texts[1].startswith("*") or texts[2].startswith("*"),
    )


def _star(field: Field, text: str, dialect: str) -> int:
    """The mask of a field that is `*`, `*/s` or, for a day in quartz, `?`; zero for any other text."""
    if text == "*" or (text == "?" and dialect == "quartz" and field.name in ("day", "weekday")):
        return _range(field.low, field.high, 1)
    if not text.startswith("*/") or "," in text:
        return 0
    if dialect == "posix":
        raise FieldParseError(field.name, text, _no_step(text))
    return _range(field.low, field.high, _step(field, text, text[2:]))


def _list(field: Field, text: str, parse: Parser, *more: list[Special]) -> int:
    mask = 0
    specials = more[0] if more else []
    for part in dict.fromkeys(text.split(",")):
        if not part:
            raise FieldParseError(field.name, text, "must not have an empty part")
        if part.startswith("*"):
            raise FieldParseError(field.name, text, "must not mix * with anything else")
        mask |= parse(field, text, part, specials)
    return mask


def _posix_part(field: Field, text: str, part: str, _: list[Special]) -> int:
    if "/" in part:
        raise FieldParseError(field.name, text, _no_step(text))
    if any(c.isalpha() or c in "?#@" for c in part):
        raise FieldParseError(field.name, text, _not_posix(part))
    low, high = _ends(field, text, part)
    return _range(low, high, 1)


def _not_posix(part: str) -> str:
    """Say what stands there instead of a number."""
    if any(name in part.lower() for name in (*_MONTHS, *_WEEKDAYS)):
        return f"must not have names in dialect posix, got {shown(part, 40)}: write the number"
    if _QUARTZ_TOKEN.fullmatch(part) is not None:
        return f"must not have the tokens of Quartz (? L W #) in dialect posix, got {shown(part, 40)}"
    return f"must be plain decimal numbers in dialect posix, got {shown(part, 40)}"


def _vixie_part(field: Field, text: str, part: str, _: list[Special]) -> int:
    if part.startswith("H"):
        low, high, step = _hash_range(field, text, part)
        return _range(low, high, step or 1)
    span, slash, step_text = part.partition("/")
    low, high = _ends(field, text, span)
    if not slash:
        return _range(low, high, 1)
    if "-" not in span:
        raise FieldParseError(
            field.name, text, f"must have a range before a step, like {low}-{field.high}/{shown(step_text, 40)}"
        )
    return _range(low, high, _step(field, text, step_text))


def _quartz_part(field: Field, text: str, part: str, specials: list[Special]) -> int:
    special = _special(field, text, part)
    if special is not None:
        specials.append(special)
        return 0
    if field.name == "weekday" and part == "L":
        return 1 << 7
    span, slash, step_text = part.partition("/")
    low, high = _ends(field, text, span)
    if slash and "-" not in span:
        high = field.high
    return _range(low, high, _step(field, text, step_text) if slash else 1)


def _special(field: Field, text: str, part: str) -> Special | None:
    if field.name == "day" and (match := _DAY_SPECIAL.fullmatch(part)):
        before, near = match.groups()
        if near is not None:
            return Special("W", _number(field, text, near))
        digits = (before or "").lstrip("0") or "0"
        if len(digits) > 2 or int(digits) > 30:
            raise FieldParseError(field.name, text, f"must be L-0 to L-30, got {shown(part, 40)}")
        return Special(part[:2] if part == "LW" else "L", int(digits))
    if field.name == "weekday" and (match := _WEEKDAY_SPECIAL.fullmatch(part)):
        day, which = match.groups()
        digits = (which or "").lstrip("0")
        if which is not None and digits not in ("1", "2", "3", "4", "5"):
            raise FieldParseError(field.name, text, f"must have 1 to 5 after #, got {shown(which, 40)}")
        return Special("#" if which else "nL", _number(field, text, day) - 1, int(digits or 0))
    return None


def _ends(field: Field, text: str, span: str) -> tuple[int, int]:
    first, dash, last = span.partition("-")
    if dash and not first:
        raise FieldParseError(field.name, text, f"must not have a sign, got {shown(span, 40)}")
    if dash and not last:
        raise FieldParseError(field.name, text, f"must have a number after -, got {shown(span, 40)}")
    low = _number(field, text, first)
    high = _number(field, text, last) if dash else low
    if low > high:
        hint = f" (write {first}-7)" if high == 0 and field.high == 7 else ""
        raise FieldParseError(field.name, text, f"must not run backwards, as {shown(span, 40)} does{hint}")
    return low, high


def _number(field: Field, text: str, word: str) -> int:
    if word.isascii() and word.isdigit():
        digits = word.lstrip("0") or "0"
        if len(digits) <= 4 and field.low <= int(digits) <= field.high:
            return int(digits)
        raise FieldParseError(field.name, text, f"must be {field.low} to {field.high}, got {shown(word, 40)}")
    if word.isascii() and word.lower() in field.names:
        return field.names[word.lower()]
    kinds = f"{field.low} to {field.high}" + (f" or {'|'.join(field.names)}" if field.names else "")
    raise FieldParseError(field.name, text, f"must be {kinds}, got {shown(word, 40) or 'nothing'}")


def _step(field: Field, text: str, digits: str) -> int:
    if not (digits.isascii() and digits.isdigit()):
        raise FieldParseError(field.name, text, f"must have a number as its step, got {shown(digits, 40) or 'nothing'}")
    digits = digits.lstrip("0") or "0"
    # As Quartz has it: 59, 23, 31, 12 and 7. A larger step names one value and means something else.
    largest = min(field.high, field.size) if field.low else field.high
    if len(digits) > 4 or not 1 <= int(digits) <= largest:
        raise FieldParseError(field.name, text, f"must have a step of 1 to {largest}, got {shown(digits, 40)}")
    return int(digits)


def _no_step(text: str) -> str:
    return f"must not have a step in dialect posix, got {shown(text, 40)}"


def _range(low: int, high: int, step: int) -> int:
    """The mask of low, low + step, … through high, without a loop over its bits where there is no step."""
    if step == 1:
        return (1 << high + 1) - (1 << low)
    return sum(1 << n for n in range(low, high + 1, step))


def _hash_range(field: Field, text: str, part: str) -> tuple[int, int, int]:
    """Low, high and step (zero where there is none) of an `H` form, checked."""
    match = _HASHED.fullmatch(part)
    if match is None:
        raise FieldParseError(field.name, text, f"must be H, H(a-b), H/s or H(a-b)/s, got {shown(part, 40)}")
    first, last, step = match.groups()
    top = field.low + field.size - 1
    low, high = _ends(field, text, f"{first}-{last}") if first is not None else (field.low, top)
    return low, high, _step(field, text, step) if step is not None else 0


def _numbered(field: Field, part: str, job_id: str) -> str:
    if not part.startswith("H"):
        return part
    low, high, step = _hash_range(field, part, part)
    size = high - low + 1
    start = low + hash_number(job_id, field.name, min(step, size) if step else size)
    return f"{start}-{high}/{step}" if step else str(start)
