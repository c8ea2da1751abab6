"""Where a Chromium for the browser tests can come from; `python -m tests.servers.browsers` brings one.

In this order: one named in a variable, one on the PATH, Debian's package where it may be installed, the one that
Playwright downloads. Finding none is an error of the browser tests, never a skip.

A headless shell comes before a whole Chromium. Both show pages with the same engine, but a whole one draws a window
with its bars around each page, also when it is headless, and so takes three to four times the processor.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

BROWSER_VARIABLE = "EVERYTICK_TEST_BROWSER"
DOWNLOADS = Path(__file__).resolve().parents[2] / ".venv" / "browsers"
SHELLS = ("chromium-headless-shell", "chrome-headless-shell", "headless_shell")
NAMES = (*SHELLS, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LONGEST_STEP_SECONDS = 600


class MissingBrowser(Exception):
    """No browser was named, none is on the PATH and none was downloaded."""

    def __init__(self) -> None:
        super().__init__(
            f"the browser tests need a Chromium and found none: name one in {BROWSER_VARIABLE}, install one so that "
            f"it is on the PATH ({', '.join(NAMES)}), or run `python3 dev.py test`, which tries Debian's package as "
            "root and Playwright's download otherwise"
        )


def found_browser(
    variables: Mapping[str, str] = os.environ, path: str | None = None, downloads: Path = DOWNLOADS
) -> Path:
    """Return the browser that tests drive, or say how to get one; `path` stands in for the PATH."""
    if named := variables.get(BROWSER_VARIABLE):
        return Path(named)
    on_path = (shutil.which(name, path=path) for name in NAMES)
    downloaded = (file for name in (*SHELLS, "chrome") for file in _files(downloads, name))
    first = next((Path(file) for file in on_path if file), None) or next(downloaded, None)
    if first is None:
        raise MissingBrowser
    return first


def _files(folder: Path, name: str) -> list[Path]:
    return sorted(file for file in folder.rglob(name) if file.is_file() and os.access(file, os.X_OK))


def has_browser() -> bool:
    """Tell whether a browser is there."""
    try:
        found_browser()
    except MissingBrowser:
        return False
    return True


def bring_browser(steps: Sequence[Sequence[str]], is_there: Callable[[], bool] = has_browser) -> str:
    """Get a browser if there is none; return an empty text, or what was tried and how each step ended."""
    told = []
    for step in steps:
        if is_there():
            break
        told.append(f"{' '.join(step)}: {ending(step)}")
    return "" if is_there() else "\n".join([str(MissingBrowser()), *told])


def ways_to_one() -> list[list[str]]:
    """Return the commands that may bring a browser, in their order."""
    apt = shutil.which("apt-get") if os.geteuid() == 0 else None
    install = [apt, "install", "--yes", "--no-install-recommends"] if apt else []
    shell = [*install, "chromium-headless-shell"]
    # The lists of packages may be missing or old: the package is asked for again after they were read anew.
    packages = [shell, [apt, "update"], shell, [*install, "chromium"]] if apt else []
    return [*packages, [sys.executable, "-m", "playwright", "install", "--only-shell", "chromium"]]


def ending(step: Sequence[str]) -> str:
    """Run one step and return how it ended."""
    variables = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PLAYWRIGHT_BROWSERS_PATH": str(DOWNLOADS)}
    try:
        done = subprocess.run(
            step, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=LONGEST_STEP_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
    return f"exit code {done.returncode}: {last}"


if __name__ == "__main__":
    sys.exit(bring_browser(ways_to_one()) or 0)
