"""The service of an application: `asgi()` for another server, and the service in this process beside the node."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from everytick.app.running import Lifecycle
from everytick.domain.values import value
from everytick.errors import EverytickError, InvalidSetting, MissingExtra, StoreUnavailable

if TYPE_CHECKING:
    from asyncio import Event
    from typing import Self

    from everytick.access.settings import AccessSettings
    from everytick.web.asgi import Service
    from everytick.web.service import WebServer, WebThread

HOST, PORT = "127.0.0.1", 8484
"""Where the service listens unless something else is said: only this host can reach it."""

_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)*")


@value(frozen=True)
class Listening:
    """Where a service listens, and the prefix under which a reverse proxy serves it. Port 0 means any free port.

    `access` says how people come in.
    """

    host: str = HOST
    port: int = PORT
    prefix: str = ""
    access: AccessSettings | None = None

    @property
    def is_local(self) -> bool:
        """Whether only this host can reach it."""
        from ipaddress import ip_address

        try:
            return ip_address(self.host.partition("%")[0]).is_loopback
        except ValueError:
            return self.host == "localhost"

    @classmethod
    def at(cls, host: str, port: int, prefix: str = "", access: AccessSettings | None = None) -> Self:
        """Return it with its parts checked."""
        if not 0 <= port <= 65535:
            raise InvalidSetting("web_port", port, "is no port: 0 to 65535")
        if _PREFIX.fullmatch(prefix.rstrip("/")) is None:
            raise InvalidSetting("web_prefix", prefix, "must be a path such as /everytick")
        return cls(host, port, prefix.rstrip("/"), access)


def listening_of(given: bool | str) -> Listening:
    """Return where `True`, `"127.0.0.1:9000"` or `"[::1]:9000"` says."""
    if given is True:
        return Listening()
    host, colon, port = str(given).rpartition(":")
    if not colon or not re.fullmatch(r"[0-9]{1,5}", port, re.ASCII):
        raise InvalidSetting("web", given, "must be True, or an address with a port, such as 127.0.0.1:8484")
    return Listening.at(host.strip("[]") or HOST, int(port))


class OpenToAll(EverytickError):
    """Other hosts could reach the service without signing in."""

    code = "open_to_all"

    def __init__(self, host: str) -> None:
        super().__init__(
            f"{host} can be reached from other hosts, and the service has no users: add one with `everytick user add "
            'NAME --role admin`, or set web_auth = "users" and open the link that the start writes, or listen on '
            "127.0.0.1"
        )


class Serving(Lifecycle):
    """Makes the service of an application."""

    def asgi(self, access: AccessSettings | None = None) -> Service:
        """Return the HTTP API and the dashboard as an ASGI application, to be mounted anywhere under any prefix.

        `app.mount("/everytick", tick.asgi())`. People sign in with a user of the store. While there is none, only
        requests of this host are answered. `access` says more, see `access_settings`.
        """
        try:
            from everytick.web.asgi import asgi
        except ModuleNotFoundError as error:
            raise _missing(error) from None
        return asgi(self, access)  # type: ignore[arg-type]  # every application is an Everytick

    def web_server(self, listening: Listening | None = None) -> WebServer:
        """Return the service with a server of its own, to be started on the event loop that runs."""
        try:
            from everytick.web.service import WebServer
        except ModuleNotFoundError as error:
            raise _missing(error) from None
        return WebServer(self, listening or Listening())  # type: ignore[arg-type]  # as above

    def _web_thread(self, listening: Listening) -> WebThread:
        try:
            from everytick.web.service import WebThread
        except ModuleNotFoundError as error:
            raise _missing(error) from None
        return WebThread(self, listening)  # type: ignore[arg-type]  # as above

    def serve(self, listening: Listening | None = None) -> None:
        """Serve the application without a node until Ctrl-C or SIGTERM. Raise OSError if the port is taken.

        A store that is away is served too: the pages say so until it answers.
        """
        from everytick.app.console_lines import tell
        from everytick.app.foreground import until_told

        server = self.web_server(listening)

        async def served(told: Event) -> None:
            try:
                answers = await self._opened_to_serve(listening or Listening(), "the store")
                url = await server.start()
                tell(f"dashboard and API: {url}; Ctrl-C stops it")
                if answers:
                    await self._tell_first_link(listening or Listening(), url)
                await told.wait()
            finally:
                await server.close()
                await self.close()

        until_told(served)

    async def _opened_to_serve(self, listening: Listening, called: str) -> bool:
        """Open the store. Return False if it does not answer: it is served all the same, and its pages say so.

        Raise OpenToAll if other hosts could reach the service without signing in. Where that is not known yet, each
        request is refused until it is.
        """
        import logging

        try:
            await self.open()
            await self._refuse_open_to_all(listening)
        except StoreUnavailable as error:
            text = "%s is away: %s; its pages say so until it answers"
            logging.getLogger("everytick.web").warning(text, called, error)
            return False
        return True

    async def _refuse_open_to_all(self, listening: Listening) -> None:
        """Raise OpenToAll if other hosts could reach the service without signing in."""
        is_closed = listening.access is not None and listening.access.is_closed
        if not (listening.is_local or is_closed or await self.people.has_users()):
            raise OpenToAll(listening.host)

    async def _tell_first_link(self, listening: Listening, url: str) -> None:
        """Write the link that makes the first admin, where all have to sign in and there is no user yet."""
        if listening.access is None or listening.access.auth != "users" or await self.people.has_users():
            return
        from everytick.app.console_lines import tell

        secret = (await self.people.first_link()).text
        tell(f"there is no user yet; this link makes the first admin, once, within an hour: {url}welcome?link={secret}")

    @property
    def web_url(self) -> str | None:
        """The address of the dashboard that is served beside this application's node; None if there is none."""
        return None if self._service is None else self._service.url

    async def serve_beside(self, listening: Listening) -> None:
        """Serve the application beside its node until that stops. If it cannot be served, say why: the node goes on."""
        import asyncio
        import logging

        from everytick.app.console_lines import tell

        log = logging.getLogger("everytick.web")
        try:
            # In a thread: the web stack takes some hundred milliseconds to load, and jobs may be due.
            service = await asyncio.to_thread(self._web_thread, listening)
            await self._refuse_open_to_all(listening)
            url = await service.start()
        except (MissingExtra, OpenToAll) as error:
            log.warning("no dashboard: %s; the node runs without it", error)
        except OSError as error:
            where = f"{listening.host}:{listening.port}"
            why = error.strerror or error
            log.error(
                "no dashboard: %s cannot be used (%s); the node runs without it: set web_port to another", where, why
            )
        else:
            self._service = service
            tell(f"dashboard and API: {url}")
            await self._tell_first_link(listening, url)


def _missing(error: ModuleNotFoundError) -> Exception:
    """Return what is told if the web stack is not installed. A mistake of our own is returned as it is."""
    return error if (error.name or "").startswith("everytick") else MissingExtra("the service", "web")
