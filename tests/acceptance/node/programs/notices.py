"""A node whose job runs once by itself, fails until a file exists, and tells a webhook of it.

`notices.py ADDRESS URL FILE dies`: it is killed after the failure is written and before the notice is asked for.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from everytick import Everytick, cron, webhook
from everytick.node.notifier import Notifier
from tests.acceptance.node.programs.quick import say


async def _die(self: Notifier, ended: Any) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it is dead")


address, url, mended, *how = sys.argv[1:]
tick = Everytick(address, name="notices", allow_addresses=["127.0.0.1"], reaper_interval="1s")
hook = webhook(url, secret_env="OPS_SECRET")


@tick.job(cron("0 0 1 1 *"), on_create="immediately", on_failure=hook, on_recovery=hook)
def nightly() -> None:
    say("runs")
    if not Path(mended).exists():
        raise ValueError("not mended yet")


if "dies" in how:
    Notifier.tell = _die  # type: ignore[method-assign]

tick.run()
