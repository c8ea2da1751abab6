"""Command lines of systemd units: words, quotes, escapes, specifiers and variables, as systemd.service(5) has them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from everytick.domain.values import value
from everytick.errors import shown
from everytick.sources.importing.findings import Unsayable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}
_PREFIXES = {
    "-": "a failure of it counts here: write || true into a script to have it ignored",
    "+": "commands run as the user of the node, with that user's rights",
    "!": "commands run as the user of the node, with that user's rights",
}
_VARIABLE = re.compile(r"\$\$|\$\{(\w+)\}|\$(\w+)", re.ASCII)


@value
class UnitCommand:
    """The words of one command, and the prefix signs that are not converted."""

    words: tuple[str, ...]
    left: tuple[tuple[str, str], ...] = ()


class Words:
    """The values that systemd fills into the words of a unit: specifiers, and the unit's variables."""

    def __init__(self, unit: str, environment: Mapping[str, str], kind: str = "service") -> None:
        self.environment = dict(environment)
        self.has_more = False
        prefix, at, instance = unit.partition("@")
        self._known = {"%": "%", "N": unit, "n": f"{unit}.{kind}", "p": prefix, "i": instance if at else ""}

    def specified(self, word: str) -> str:
        """Return the word with its specifiers filled in; those that depend on the machine are refused."""

        def fill(found: re.Match[str]) -> str:
            if found[1] not in self._known:
                raise Unsayable(f"{found[0]} in '{shown(word)}' is filled in by systemd: write its value")
            return self._known[found[1]]

        return re.sub(r"%(.)", fill, word)

    def filled(self, word: str) -> list[str]:
        """Return the words that a word stands for: `$NAME` alone is split at blanks, `${NAME}` is not."""
        whole = _VARIABLE.fullmatch(word)
        if whole is not None and whole[2] is not None:
            return self._value(whole[2]).split()
        return [_VARIABLE.sub(lambda found: "$" if found[0] == "$$" else self._inside(found), word)]

    def _inside(self, found: re.Match[str]) -> str:
        # Without braces a variable is filled in only where it is a word of its own.
        return self._value(found[1]) if found[1] is not None else found[0]

    def _value(self, name: str) -> str:
        if name not in self.environment or self.has_more:
            raise Unsayable(f"the value of ${name} is not in the unit: write it there, or into a script")
        return self.environment[name]


def commands_of(line: str, words: Words) -> Iterator[UnitCommand]:
    """Give the commands of one Exec line. A separate `;` divides them."""
    current: list[str] = []
    for word in [*words_of(line, separators=True), ";"]:
        if word != ";":
            current.append(word)
        elif current:
            yield _command(current, words)
            current = []


def _command(found: list[str], words: Words) -> UnitCommand:
    program = found[0].lstrip("@-:+!|")
    signs = found[0][: len(found[0]) - len(program)]
    if "@" in signs or "|" in signs:
        raise Unsayable(f"'{shown(found[0])}' gives the program another name for itself, which cannot be said here")
    found = [words.specified(word) for word in (program, *found[1:])]
    if ":" not in signs:
        found = [found[0], *(part for word in found[1:] for part in words.filled(word))]
    left = {sign: _PREFIXES[sign] for sign in signs if sign in _PREFIXES}
    return UnitCommand(
        tuple(word.replace("\\;", ";") if word == "\\;" else word for word in found), tuple(left.items())
    )


def words_of(line: str, *, separators: bool = False) -> list[str]:
    r"""Return the words of a line: quotes keep blanks, escapes are as in C, and `\s` is a blank."""
    words: list[str] = []
    word, quote, rest = None, "", iter(line)
    for letter in rest:
        if letter == "\\":
            following = next(rest, "")
            word = (word or "") + ("\\;" if separators and following == ";" else _escaped(following, rest, line))
        elif quote:
            if letter == quote:
                quote = ""
            else:
                word = (word or "") + letter
        elif letter in "\"'":
            quote, word = letter, word or ""
        elif letter in " \t":
            if word is not None:
                words.append(word)
            word = None
        else:
            word = (word or "") + letter
    if quote:
        raise Unsayable(f"a quote is not closed in '{shown(line)}'")
    return words if word is None else [*words, word]


def _escaped(letter: str, rest: Iterator[str], line: str) -> str:
    digits = {"x": 2, "u": 4, "U": 8}.get(letter)
    try:
        if digits is not None:
            return chr(int("".join(next(rest) for _ in range(digits)), 16))
        if letter in "01234567" and letter:
            return chr(int(letter + next(rest) + next(rest), 8))
    except (RuntimeError, StopIteration, ValueError, OverflowError):
        raise Unsayable(f"an escape is not whole in '{shown(line)}'") from None
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter in ("\\", '"', "'") and letter:
        return letter
    raise Unsayable(f"'\\{shown(letter)}' in '{shown(line)}' is no escape")
