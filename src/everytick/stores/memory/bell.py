"""The bell of the store in memory, heard in this process."""

import asyncio


class Bell:
    """A hint that something changed."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    @property
    def has_rung(self) -> bool:
        """Whether it was rung since the last wait that heard it, or since `forget`."""
        return self._rung.is_set()

    def ring(self) -> None:
        """Wake every task that waits."""
        self._rung.set()

    def forget(self) -> None:
        """Forget that it was rung."""
        self._rung.clear()

    async def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` until it is rung. Return whether it was."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True
