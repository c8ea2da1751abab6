"""What it costs to load everytick, beside the standard library's own pieces.

    python3 dev.py bench imports

Whole processes, interleaved, the fastest of each: a busy machine makes a start slower,
never faster. The time of a bare interpreter is taken off. The first round, which compiles,
does not count.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.startup import compiled

ROUNDS = 15
PROGRAMS = {
    "import everytick": "budget 25 ms",
    "from everytick import Everytick, every": "budget 60 ms",
    "import dataclasses, re, typing, zoneinfo": "what both stand on",
    "import asyncio": "for scale",
    "import croniter": "peer",
    "import cronsim": "peer",
}


def seconds(program: str, environment: dict[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    return time.perf_counter() - begun


def main() -> None:
    fastest = dict.fromkeys(["pass", *PROGRAMS], float("inf"))
    with tempfile.TemporaryDirectory() as cache:
        environment = compiled(cache)
        for program in fastest:
            seconds(program, environment)
        for _ in range(ROUNDS):
            for program in fastest:
                fastest[program] = min(fastest[program], seconds(program, environment))
    bare = fastest["pass"]
    print(f"a bare interpreter takes {bare * 1e3:.1f} ms; on top of that:")
    for program, note in PROGRAMS.items():
        print(f"  {(fastest[program] - bare) * 1e3:6.1f} ms  {program:42} {note}")


if __name__ == "__main__":
    main()
