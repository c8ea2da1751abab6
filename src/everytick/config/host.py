"""The time zone of this machine."""

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from everytick.errors import InvalidPolicies, InvalidSchedule
from everytick.schedules.posix_zones import is_rule, named
from everytick.schedules.timezones import zone

_FOLDER = "zoneinfo/"


def local_timezone(environment: Mapping[str, str] = os.environ, etc: Path = Path("/etc")) -> str:
    """Return the IANA name of this machine's time zone, so that it can be stored by name.

    In the order of the C library, TZ wins over /etc/localtime; where that is a copy and not
    a link, /etc/timezone names it. A machine without any of them is in UTC. A rule in TZ, like
    `CET-1CEST,M3.5.0,M10.5.0/3`, is its own name. A zone without a name is refused: it could
    not be stored, and another node could not know which one it is.
    """
    if "TZ" in environment:
        return _from_variable(environment["TZ"])
    clock = etc / "localtime"
    named = _name_in(os.path.realpath(clock)) if clock.is_symlink() else None
    if named is None:
        named = _first_line(etc / "timezone")
    if named is None:
        if clock.exists() or os.name == "nt":
            raise _nameless(f"{clock} does not say which zone it is")
        return "UTC"
    return _known(named, str(etc))


def _from_variable(given: str) -> str:
    name = given.removeprefix(":")
    if not name:
        return "UTC"
    zone_or_rule = _name_in(name) or name
    # A name wins over a rule, as in the C library: EST5EDT is both.
    return _known(
        zone_or_rule if _is_name(zone_or_rule) or not is_rule(zone_or_rule) else named(zone_or_rule), f"TZ={given}"
    )


def _is_name(text: str) -> bool:
    try:
        zone(text)
    except InvalidSchedule:
        return False
    return True


def _name_in(path: str) -> str | None:
    """Return the name of a zone from the path of its file, in any folder of time zones."""
    _, folder, name = path.partition(_FOLDER)
    for beside in ("posix/", "right/"):
        name = name.removeprefix(beside)
    return str(PurePosixPath(name)) if folder and name else None


def _first_line(file: Path) -> str | None:
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((line.strip() for line in lines if line.strip() and not line.startswith("#")), None)


def _known(name: str, origin: str) -> str:
    try:
        return zone(name).name
    except InvalidSchedule as error:
        raise _nameless(f"{origin} names '{name}', which {error.reason}") from None


def _nameless(reason: str) -> InvalidPolicies:
    instead = ("TZ=Europe/Berlin in the environment of this process", 'in Everytick: timezone="Europe/Berlin"')
    return InvalidPolicies("", f"the time zone of this host cannot be resolved: {reason}", instead)
