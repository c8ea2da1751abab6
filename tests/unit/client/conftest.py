"""A client of a service without a socket, beside the application that the service serves."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from everytick.client import Client
from everytick.web.asgi import asgi
from tests.unit.web.api.conftest import World, by_header


def client_on(world: World) -> Client:
    """Return a client of the world's service."""
    return Client("http://127.0.0.1", transport=httpx2.ASGITransport(asgi(world.tick, identify=by_header)))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """An application in which something has happened."""
    made = World()
    await made.live()
    yield made
    await made.tick.close()


@pytest.fixture
async def client(world: World) -> AsyncIterator[Client]:
    """A client of the world's service."""
    async with client_on(world) as made:
        yield made
