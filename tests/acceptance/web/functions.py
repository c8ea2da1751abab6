"""What the jobs of browser tests call."""

import asyncio


def quiet() -> None:
    """Do nothing."""


def greet(whom: str = "Ann") -> str:
    return f"Good morning, {whom}"


def bad() -> None:
    raise ConnectionError("hung up")


async def long() -> None:
    """Run until it is canceled."""
    await asyncio.Event().wait()
