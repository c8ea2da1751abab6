"""The kind and place of a store, which an application does not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from everytick.app import Everytick
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import StoreAddress


class StorePlace(NamedTuple):
    """A store's kind, its place as text for people, and its file if it has one."""

    kind: str
    where: str
    file: Path | None = None


def place_of(address: StoreAddress) -> StorePlace:
    """Return the kind and place of the store at this address, without its password."""
    from everytick.config.settings import without_password

    if address.file is not None:
        return StorePlace(address.kind, str(address.file), address.file)
    if address.is_in_memory:
        return StorePlace(address.kind, "memory")
    part = "prefix" if address.kind == "redis" else "schema"
    return StorePlace(address.kind, f"{without_password(address.url)}, {part} {address.schema}")


def newest_schema(kind: str) -> int | None:
    """Return the number of the newest migration of this everytick. Every open store has it."""
    from everytick.stores.queries import load_migrations

    if kind == "redis":
        from everytick.stores.redis.log import FORMAT

        return FORMAT
    return None if kind == "memory" else load_migrations(f"everytick.stores.{kind}")[-1].number


def log_folder(app: Everytick, store: AnyStore) -> Path | None:
    """Return the folder in which a node of this application on this host stores the output of tasks."""
    # The node's own rule, so that both look in the same place.
    from everytick.app.outputs import log_folder as usual_folder

    return app.settings.log_folder or usual_folder(store)
