"""Moves a store, `mover FROM TO STAGE`, says each stage and dies at that one, unless it is -."""

import asyncio
import os
import signal
import sys

from everytick.stores.moving.move import Stage, move_store
from tests.acceptance.node.programs.quick import say


def tell(stage: Stage, rows: int) -> None:
    say(stage.name, rows)
    if stage.name == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    done = asyncio.run(move_store(sys.argv[1], sys.argv[2], told=tell))
    say("moved", done.rows, done.held.total_seconds())
