"""Applies a folder and is killed in the middle of it: `dying.py STORE FOLDER`."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from everytick.sources.files import Folder
from everytick.sources.syncing import apply_jobs
from everytick.stores import storing_rules
from everytick.stores.addresses import store_of
from everytick.stores.sql.verbs import creating

HALF = 50


def die_half_way() -> None:
    """Both SQL stores ask this for each new job as they write it."""
    real, asked = storing_rules.first_watermark, iter(range(HALF))

    def counted(*arguments: Any) -> Any:
        if next(asked, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)

    creating.first_watermark = counted  # type: ignore[attr-defined,assignment]


async def main(address: str, path: str) -> None:
    folder = Folder(Path(path))
    folder.load()
    store = store_of(address)
    await store.open()
    die_half_way()
    await apply_jobs(store, folder.jobs)


asyncio.run(main(*sys.argv[1:]))
