"""`Client`: a service's address and a token, with the verbs of an application."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from everytick.client.handles import RemoteHandle
from everytick.client.operations import RemoteOperations
from everytick.client.people import RemotePeople
from everytick.client.service_calls import TRIES, ServiceCalls
from everytick.domain.durations import duration
from everytick.domain.values import value

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine
    from types import TracebackType
    from typing import Self

    from everytick.client.service_calls import Transport

T = TypeVar("T")


@value(frozen=True)
class ServiceSettings:
    """What a client knows of the service's settings: after which silence a node counts as gone."""

    node_timeout: timedelta = timedelta(seconds=20)


class Client(RemoteOperations):
    """A client of one service. Every verb is a coroutine; `wait` runs one where no event loop runs.

    `token` proves who asks; without one the service must be on this host and have no users. `timeout` is how long
    one answer may take, and `tries` how often a request is made that is safe to repeat.
    """

    definitions: tuple[Any, ...] = ()
    """A client defines nothing itself."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: str | timedelta = "30s",
        tries: int = TRIES,
        transport: Transport | None = None,
    ) -> None:
        super().__init__()
        self._asking = ServiceCalls(url, token, duration(timeout).total_seconds(), transport, tries)
        self._runner: asyncio.Runner | None = None
        self.people = RemotePeople(self._asking)
        """Users, tokens and the audit of the service."""
        self.settings = ServiceSettings()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    @property
    def url(self) -> str:
        """The address of the service."""
        return self._asking.url

    async def open(self) -> None:
        """Ask the service who it is. Raise if it does not answer, or does not know who asks."""
        told = await self._asking.read("/api")
        self.settings = ServiceSettings(timedelta(seconds=told["node_timeout"]))

    async def close(self) -> None:
        """Close the connections. The next verb opens them again."""
        await self._asking.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ------------------------------------------------------------------------------------------- without an event loop

    def wait(self, asked: RemoteHandle | Coroutine[Any, Any, T], timeout: timedelta | str | None = None) -> Any:
        """Return the answer to a verb, or the end of what a handle stands for. Inside a coroutine, use `await`."""
        import asyncio

        work = asked.wait(timeout) if isinstance(asked, RemoteHandle) else _within(asked, timeout)
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(work)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.run(self.close())
            runner.close()


async def _within(asked: Coroutine[Any, Any, T], timeout: timedelta | str | None) -> T:  # noqa: ASYNC109 - a duration
    import asyncio

    async with asyncio.timeout(None if timeout is None else duration(timeout).total_seconds()):
        return await asked
