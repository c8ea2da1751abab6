"""Strings that no schedule should fear, by the hundred thousand from a seeded generator."""

from collections.abc import Callable, Iterator
from random import Random

ALPHABET = "0123456789*,-/?LW#@H()=;:|+. \t\n\r\x00\x1b[]PTRYMDSZjanfebmonsuWEEKlyevrycotzUC"
ODD = "\u0663\uff13\U0001d7d1\u00a0\u2003\u200b\u202e\ufeff\u0660\u00b2\ud800\x7f\x85\u2028\u0130\u017f\u212a\U0010ffff"
HUGE = ("9" * 5001, "0" * 5000 + "5", "1" * 400, "99999999999999999999", "-" * 300, "," * 300, "*" * 300, "/" * 300)


def noise(dice: Random) -> str:
    """Return characters of every plane."""
    return "".join(chr(dice.randrange(0x110000)) for _ in range(dice.randrange(40)))


def jumble(dice: Random) -> str:
    """Return characters that have a meaning somewhere in a schedule."""
    return "".join(dice.choices(ALPHABET, k=dice.randrange(30)))


def mutated(dice: Random, valid: str) -> str:
    """Return the text with one to four characters or pieces put in, taken out, doubled or swapped."""
    for _ in range(dice.randint(1, 4)):
        at = dice.randint(0, len(valid))
        end = min(len(valid), at + dice.randint(0, 3))
        piece = dice.choice((dice.choice(ALPHABET), dice.choice(ALPHABET), dice.choice(ODD), valid[at:end] * 2, ""))
        valid = valid[:at] + piece + valid[end:]
    return valid


def overgrown(dice: Random, valid: str) -> str:
    """Return the text with something huge in it."""
    at = dice.randint(0, len(valid))
    return valid[:at] + dice.choice(HUGE) + valid[at:]


def strings(seed: int, count: int, valid: Callable[[Random], str]) -> Iterator[str]:
    """Yield that many strings: mostly nearly right ones, then jumbles, noise, and a few overgrown ones."""
    dice = Random(seed)
    for _ in range(count):
        kind = dice.random()
        if kind < 0.65:
            yield mutated(dice, valid(dice))
        elif kind < 0.85:
            yield jumble(dice)
        elif kind < 0.98:
            yield noise(dice)
        else:
            yield overgrown(dice, valid(dice))


def giants(valid: str, size: int = 100_000) -> Iterator[str]:
    """Yield strings of 100 kB that invite a parser to work hard."""
    for unit in (
        "1,",
        "1-2,",
        "*/2,",
        "0 ",
        "* ",
        "9",
        "-",
        "(",
        "((",
        ")",
        "H(",
        "/",
        "|",
        ";",
        "; tz=UTC",
        "\t",
        "\x00",
    ):
        yield unit * (size // len(unit))
        yield valid + unit * (size // len(unit))
        yield unit * (size // len(unit)) + valid
    yield valid * (size // len(valid))
    yield (valid + "\n") * (size // len(valid))
