"""Where a service stands among several: the store's name, and the front page that lists them all."""

from typing import Any

from everytick.domain.values import value

_MOUNT = "everytick_mount"


@value(frozen=True)
class StoreMount:
    """One store of several behind one address. `front` is the prefix of the front page, `names` are those of all."""

    name: str
    front: str
    names: tuple[str, ...]

    @property
    def root(self) -> str:
        """The prefix of this store's service."""
        return f"{self.front}/{self.name}"


def mounted(scope: Any, mount: StoreMount) -> dict[str, Any]:
    """Return the scope of a request as the service of this store has it."""
    return {**scope, "root_path": mount.root, _MOUNT: mount}


def mount_of(scope: Any) -> StoreMount | None:
    """Return where the service that has this request stands; None if it is the only one."""
    found = scope.get(_MOUNT)
    assert found is None or isinstance(found, StoreMount), "mounted() sets it"
    return found


def cookie_path(scope: Any) -> str:
    """Return the path for which cookies are set. With several stores it is the front page's, which reads them too."""
    mount = mount_of(scope)
    return str(scope.get("root_path", "") if mount is None else mount.front) or "/"
