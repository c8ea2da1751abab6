"""Expressions by the thousand from a seeded generator, where hypothesis would be too slow."""

from random import Random

from tests.oracle.cron import MONTHS, SUNDAY_FIRST

_RANGES = {"minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12), "weekday": (0, 7)}


def _range(dice: Random, low: int, high: int) -> str:
    first, last = sorted((dice.randint(low, high), dice.randint(low, high)))
    return f"{first}-{last}"


def _item(dice: Random, low: int, high: int, dialect: str) -> str:
    kind = dice.random()
    if kind < 0.5:
        return str(dice.randint(low, high))
    if kind < 0.8 or dialect == "posix":
        return _range(dice, low, high)
    step = dice.randint(1, min(high, 59))
    begin = str(dice.randint(low, high)) if dialect == "quartz" and kind > 0.9 else _range(dice, low, high)
    return f"{begin}/{step}"


def field(dice: Random, low: int, high: int, dialect: str = "vixie") -> str:
    """Return a field of numbers: `*` about every third time, else steps, ranges and lists."""
    kind = dice.random()
    if kind < 0.35:
        return "*"
    if kind < 0.5 and dialect != "posix":
        return f"*/{dice.randint(1, min(high, 12))}"
    if kind < 0.85:
        return _item(dice, low, high, dialect)
    return ",".join(_item(dice, low, high, dialect) for _ in range(dice.randint(2, 3)))


def five_fields(dice: Random, dialect: str = "vixie") -> str:
    """Return an expression of numbers in `posix` or `vixie`."""
    fields = [field(dice, low, high, dialect) for low, high in _RANGES.values()]
    return " ".join([*fields[:4], fields[4].replace("7", "6") if dialect == "posix" else fields[4]])


def at_night(dice: Random) -> str:
    """Return a vixie expression that is likely to meet a clock jump: early hours, few limits on days."""
    minute = dice.choice([field(dice, 0, 59), "0", "30"])
    hour = dice.choice([field(dice, 0, 23), field(dice, 0, 4), field(dice, 0, 3), "*"])
    day = dice.choice(["*", "*", "*", field(dice, 1, 31)])
    weekday = dice.choice(["*", "*", "*", field(dice, 0, 7)])
    return f"{minute} {hour} {day} * {weekday}"


def quartz(dice: Random) -> str:
    """Return a quartz expression."""
    clock = " ".join(field(dice, 0, high, "quartz") for high in (59, 59, 23))
    month = dice.choice([field(dice, 1, 12, "quartz"), dice.choice(list(MONTHS)).upper()])
    days = [
        f"{dice.choice([field(dice, 1, 31, 'quartz'), 'L', 'LW', 'L-3', '15W'])} {month} ?",
        f"? {month} {dice.choice([field(dice, 1, 7, 'quartz'), 'L', '6L', '2#1', dice.choice(SUNDAY_FIRST)])}",
    ]
    return f"{clock} {dice.choice(days)}{dice.choice(['', ' *', ' 2025-2030', ' 2024/3'])}"


def expression(dice: Random, dialect: str) -> str:
    """Return a valid expression of the dialect."""
    return quartz(dice) if dialect == "quartz" else five_fields(dice, dialect)
