"""What the command costs before it does anything, and how long `list` takes on a store of 300 jobs.

    python3 dev.py bench cli

Whole processes, taking turns; processor time, the least of each: a busy machine makes a start
dearer, never cheaper. `import click` is what any command on click pays.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from everytick import Everytick, cron

ROUNDS = 9
JOBS = 300
BUDGET = 0.150
COMMAND = str(Path(sys.executable).with_name("everytick"))


def programs(store: Path) -> dict[str, list[str]]:
    return {
        "a bare interpreter": [sys.executable, "-c", "pass"],
        "import click": [sys.executable, "-c", "import click"],
        "everytick --help": [COMMAND, "--help"],
        "everytick list --help": [COMMAND, "list", "--help"],
        "everytick explain": [COMMAND, "explain", "30 2 * * *", "--tz", "Europe/Berlin"],
        f"everytick list, {JOBS} jobs": [COMMAND, "list", "--store", f"sqlite:///{store}"],
    }


def seconds(program: list[str]) -> float:
    """Return the processor's time of one process."""
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    assert process.returncode == 0, f"exit code {process.returncode} of {program}"
    return usage.ru_utime + usage.ru_stime


async def fill(store: Path) -> None:
    app = Everytick(f"sqlite:///{store}", name="bench")
    for number in range(JOBS):
        app.define(f"job-{number}", cron(f"{number % 60} {number % 24} * * *")).command("work", ["true"])
    await app.sync()
    await app.close()


def main() -> int:
    """Print every figure; 0 if `--help` keeps its budget."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "bench.db"
        asyncio.run(fill(store))
        least = dict.fromkeys(programs(store), float("inf"))
        for _ in range(ROUNDS):
            for name, program in programs(store).items():
                least[name] = min(least[name], seconds(program))
    for name, found in least.items():
        print(f"{name:28} {found * 1e3:6.0f} ms of the processor")
    held = least["everytick --help"] <= BUDGET
    print(f"everytick --help is to take at most {BUDGET * 1e3:.0f} ms: {'ok' if held else 'MISSED'}")
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
