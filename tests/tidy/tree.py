"""The repository as the tidy tests see it: the files that git knows or would take, and what stands in them."""

import ast
import gc
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def files() -> tuple[str, ...]:
    """Return the paths of all files that are tracked or would be with `git add`, relative to the root."""
    listed = subprocess.run(
        # safe.directory: a clone may belong to another account than the one that runs the tests
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return tuple(sorted(path for path in listed.stdout.split("\0") if path and (ROOT / path).is_file()))


def under(*folders: str, suffix: str = ".py") -> list[str]:
    """Return the files with this suffix below one of the folders."""
    return [path for path in files() if path.startswith(folders) and path.endswith(suffix)]


def lines(path: str) -> Iterator[tuple[str, str]]:
    """Give each line of a text file with the place it stands at; a binary file has none."""
    try:
        text = (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    for number, line in enumerate(text.splitlines(), 1):
        yield f"{path}:{number}", line


@cache
def parsed(path: str) -> ast.Module:
    """Return the syntax tree of a Python file."""
    # The collector would look through all trees again and again, which takes longer than to parse them.
    gc.disable()
    try:
        return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=path)
    finally:
        gc.freeze()
        gc.enable()


@cache
def walked(path: str) -> tuple[ast.AST, ...]:
    """Return every node of the syntax tree of a Python file. Many tests want them, and a walk is dear."""
    return tuple(ast.walk(parsed(path)))


def module_name(path: str) -> str:
    """Return the dotted name under which a file is imported."""
    parts = Path(path.removeprefix("src/")).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
