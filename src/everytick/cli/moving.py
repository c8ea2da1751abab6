"""`everytick db move`: a store moves into another one while nodes run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from everytick.cli.common_options import state
from everytick.cli.exits import Refused
from everytick.cli.output import say, write
from everytick.cli.verb_options import confirm
from everytick.domain.durations import format_duration
from everytick.errors import shown

if TYPE_CHECKING:
    from everytick.stores.moving.move import Stage


def move(source: str | None, target: str | None, *, held: str, yes: bool) -> None:
    """Move a store, and tell how far that is."""
    from everytick.stores.moving.move import Stage, move_store, side_of

    old, new = _addresses(source, target)
    where = side_of(new, "to").where
    confirm(f"move everything in {shown(side_of(old, 'from').where)} to {shown(where)}?", yes)

    def tell(stage: Stage, rows: int) -> None:
        if stage is not Stage.FOLLOWED or rows:
            say(f"{stage.value}: {rows:,} rows" if rows else stage.value)

    done = asyncio.run(move_store(old, new, held=held, told=tell))
    write(done.target)
    say(
        f"{done.jobs:,} jobs and {done.rows:,} rows are there, counted and compared with the old store; "
        f"nodes waited {format_duration(done.held)} at most; name it as the store before the next start of each node"
    )


def give_up(source: str | None, target: str | None, *, held: str, yes: bool) -> None:
    """Give up a move that has not ended."""
    from everytick.stores.moving.move import give_up as given_up
    from everytick.stores.moving.move import side_of

    old, new = _addresses(source, target)
    where = side_of(old, "from").where
    confirm(f"give up the move of {shown(where)}? it stays in use", yes)
    asyncio.run(given_up(old))
    write(where)
    say(f"{side_of(new, 'to').where} holds a copy that is not followed any more and cannot be opened: delete it")


def _addresses(source: str | None, target: str | None) -> tuple[str, str]:
    settings = state().settings
    old, new = source or settings["store"].value, target or settings["next_store"].value
    if old is None or new is None:
        missing = "store to move from" if old is None else "store to move to"
        way = "EVERYTICK_STORE" if old is None else "EVERYTICK_NEXT_STORE"
        raise Refused(f"no {missing} was named: write everytick db move FROM TO, or set {way}")
    return old, new
