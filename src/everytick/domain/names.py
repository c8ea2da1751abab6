"""Checks of names, and guesses of the name that was meant."""

from collections.abc import Iterable
from sys import intern

from everytick.errors import InvalidName

LONGEST_NAME = 200
"""Characters of a name."""

# They reorder what a reader sees, so that two names that look alike need not be.
_DIRECTION = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_REFUSED = frozenset({"Cc", "Cs", "Zl", "Zp"})


def checked_name(what: str, name: object) -> str:
    """Return the name if a job, task, queue or tag may carry it: 1 to 200 characters, printable, no outer blanks."""
    if not isinstance(name, str):
        raise InvalidName(what, name, f"must be text, not {type(name).__name__}")
    if not name:
        raise InvalidName(what, name, "is empty: give 1 to 200 characters")
    if len(name) > LONGEST_NAME:
        raise InvalidName(what, name, f"has {len(name):,} characters: at most {LONGEST_NAME} are allowed")
    if name != name.strip():
        raise InvalidName(what, name, f"begins or ends with a blank: write {name.strip()!r}")
    if not name.isprintable():
        _refuse_control(what, name)
    return str(name)


def kept_once(text: str) -> str:
    """Return the text interned: thousands of jobs, and the store's rows about them, repeat the same texts."""
    return intern(text) if type(text) is str else text


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)` for the known word nearest to a misspelt one, or nothing."""
    # Only a mistake pays for this import.
    from difflib import get_close_matches

    spelt = {name.lower(): name for name in known}
    near = get_close_matches(word.lower(), spelt, n=1)
    return f" (did you mean '{spelt[near[0]]}'?)" if near else ""


def _refuse_control(what: str, name: str) -> None:
    from unicodedata import category

    for position, character in enumerate(name, 1):
        if category(character) in _REFUSED or character in _DIRECTION:
            raise InvalidName(
                what, name, f"has the control character U+{ord(character):04X} at position {position}: remove it"
            )
