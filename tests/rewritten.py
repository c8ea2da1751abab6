"""Writes the bytecode with rewritten asserts that pytest reads: `python -m tests.rewritten`, before a run of all tests.

Else every worker of a run makes it for itself, for twelve hundred modules: half of the time that collecting takes.
Pytest writes it too, but all workers need it at the same time, and where PYTHONDONTWRITEBYTECODE is set it does not.
What is missing here is rewritten by each worker as before.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from _pytest.assertion import rewrite

ROOT = Path(__file__).resolve().parents[1]
PLUGINS = ("anyio", "hypothesis", "schemathesis")
"""Other packages that are plugins of pytest: it rewrites all their modules. Small ones are not worth it."""


def main() -> None:
    """Write the bytecode of every module that pytest will rewrite and that has changed."""
    folders = [ROOT / "src", ROOT / "tests", *(Path(each) for name in PLUGINS for each in _folders(name))]
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None) as workers:
        for _ in workers.map(write, paths, chunksize=20):
            pass


def _folders(package: str) -> list[str]:
    spec = find_spec(package)
    return [] if spec is None else list(spec.submodule_search_locations or ())


def write(path: Path) -> None:
    """Write the bytecode of one module, unless it is there for this very text."""
    folder = rewrite.get_cache_dir(path)
    cached = folder / (path.stem + rewrite.PYC_TAIL)
    if rewrite._read_pyc(path, cached) is not None:
        return
    source_hash, code = rewrite._rewrite_test(path, None)  # type: ignore[arg-type]
    folder.mkdir(exist_ok=True)
    own = Path(f"{cached}.{os.getpid()}")
    with own.open("wb") as file:
        rewrite._write_pyc_fp(file, source_hash, code)
    own.replace(cached)


if __name__ == "__main__":
    main()
