"""HEAD wherever GET is: the same route answers, with the same role, and only the head of its answer is sent.

Monitors and link checkers ask so. No route has to name a second method, so the table of routes stays as it is.
"""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadAsGet:
    """Answers HEAD by the head of what GET answers. The end of a stream is not waited for."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        begun: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start" and not begun.done():
                begun.set_result(message)

        answering = asyncio.ensure_future(self._app({**scope, "method": "GET"}, receive, told))
        try:
            await asyncio.wait((answering, begun), return_when=asyncio.FIRST_COMPLETED)
            if not begun.done():
                await answering
                return
            await send(begun.result())
            await send({"type": "http.response.body", "body": b""})
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
