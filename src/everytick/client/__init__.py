"""A client of everytick's HTTP API, with the verbs of an application: `from everytick.client import Client`."""

from everytick.client.client import Client
from everytick.client.handles import RemoteBackfill, RemoteHandle, RemoteHistory

__all__ = ["Client", "RemoteBackfill", "RemoteHandle", "RemoteHistory"]
