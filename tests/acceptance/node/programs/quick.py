"""What the programs share: an application whose silence is noticed soon, and a voice that a test can hear."""

import os
import sys
from typing import Any

from everytick import Everytick

QUICK: dict[str, Any] = {
    "heartbeat": "500ms",
    "node_timeout": "2s",
    "reaper_interval": "500ms",
    "poll": "1s",
    "grace_period": "10s",
    "log_folder": os.environ["LOGS"],
}


def application(**settings: Any) -> Everytick:
    """Return an application on the store that the program's first argument names."""
    return Everytick(sys.argv[1], name="acceptance", **{**QUICK, **settings})


def say(*words: object) -> None:
    """Say one line, whole, at once."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())
