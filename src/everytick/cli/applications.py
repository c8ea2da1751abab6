"""From the settings to an application: the one that was named, that of a folder, or one without jobs on a store."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from everytick.cli.common_options import state
from everytick.cli.exits import Refused
from everytick.cli.loading import import_from_here, loaded
from everytick.errors import shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from pathlib import Path

    from everytick.app import Everytick
    from everytick.config.settings import SettingsByName
    from everytick.stores.base import StoreAddress

NAME = "everytick-command-line"
"""The name of the application without jobs that is used if only a store is named."""

_STORE_FILE = "everytick.db"
_NEITHER = "neither an application nor a store was named"
_NOTHING_TO_RUN = "neither an application nor a folder of jobs was named"
WAYS = (
    "give -a module:object, --jobs FOLDER, --store URL or --url URL, "
    "set EVERYTICK_APP, EVERYTICK_JOBS, EVERYTICK_STORE or EVERYTICK_URL, "
    "or write app =, jobs = or store = into everytick.toml"
)


_WAYS_TO_RUN = (
    "give -a module:object or --jobs FOLDER, set EVERYTICK_APP or EVERYTICK_JOBS, "
    "or write app = or jobs = into everytick.toml"
)
_MAKES_ONE = re.compile(rb"^(\w+)\b[^=\n]*=\s*(?:\w+\.)?Everytick\(", re.MULTILINE)
_MOST_READ = 50, 100_000
"""So many modules of the current folder are looked at, and so many bytes of each."""


def application(
    *, to_run: bool = False, make: bool = False, is_question: bool = False, folder: str | None = None
) -> Everytick:
    """Return the application of this call. If both application and store are set, the later place of settings wins.

    A folder of jobs is an application of its own, or adds to the one that is named. `to_run`
    refuses a mere store. `make` lets the file of a named store or of a folder's store come to exist. An operation
    on an application makes its file too; `is_question` refuses a file that is not there. `folder` is the folder of
    jobs if none is named.
    """
    settings = state().settings
    app, store, jobs = settings["app"], settings["store"], settings["jobs"]
    refuse_remote()
    if app.value is None and store.value is None:
        beside = folder if jobs.value is None else jobs.value
        if beside is None:
            raise Refused(_nothing_named(to_run))
        return _configured(_on_folder(beside, make or to_run), settings)
    if app.value is not None and store.value is not None and app.place is store.place:
        where = "" if app.origin == store.origin else f" and {store.origin}"
        raise Refused(f"{app.origin}{where} name both an application and a store, and it has its own: give one")
    if store.value is None or (app.value is not None and app.place > store.place):
        found = _configured(loaded(app.value), settings)
        if is_question:
            _refuse_absent_store(found)
        return found
    if to_run and app.value is not None:
        text = f"{store.origin} names a store, and {app.origin} an application that has its own: leave the store out"
        raise Refused(text)
    if to_run and jobs.value is None:
        text = "only an application or a folder of jobs can run: give -a module:object or --jobs FOLDER"
        raise Refused(text)
    return _configured(_on_store(store.value, make=make or to_run, in_memory=to_run), settings)


def is_remote() -> bool:
    """Whether this call asks a service: one is named, and nothing later in the settings names a store or code."""
    settings = state().settings
    url = settings["url"]
    if url.value is None:
        return False
    for other in (settings["app"], settings["store"]):
        if other.value is not None and other.place is url.place:
            raise Refused(f"{url.origin} names a service and {other.origin} another place to ask: give one of them")
    return all(url.place > settings[key].place or settings[key].value is None for key in ("app", "store"))


def refuse_remote() -> None:
    """Raise if this call asks a service: the verb needs a store or an application of its own."""
    if is_remote():
        origin = state().settings["url"].origin
        raise Refused(f"this verb works on a store or an application itself: leave {origin} out")


def remote_service() -> Everytick:
    """Return the client of the service, which has the verbs of an application."""
    from typing import cast

    from everytick.cli.remote import RemoteFace

    settings = state().settings
    return cast("Everytick", RemoteFace(settings["url"].value, token=settings["token"].value))


def _nothing_named(to_run: bool) -> str:
    """Return how to name an application or a store, beginning with a store in this folder if there is one."""
    from everytick.app.application import DEFAULT_STORE

    file = DEFAULT_STORE.removeprefix("sqlite:///")
    if to_run:
        here = " or ".join(_applications_here())
        hint = f"{here} is in this folder: name it with -a" if here else "everytick init writes an example here"
        return f"{_NOTHING_TO_RUN}: {_WAYS_TO_RUN}; {hint}"
    if not os.path.isfile(file):
        return f"{_NEITHER}: {WAYS}"
    return f"{_NEITHER}, and {file} is in this folder: give --store {DEFAULT_STORE} to use it; or {WAYS}"


def _applications_here() -> list[str]:
    """Return up to three applications that modules of the current folder make, as their texts say: `module:object`."""
    from pathlib import Path

    most, size = _MOST_READ
    found = []
    for path in sorted(Path.cwd().glob("*.py"))[:most]:
        if not path.stem.isidentifier() or not path.is_file() or not os.access(path, os.R_OK):
            continue
        with path.open("rb") as file:
            found += [f"{path.stem}:{match[1].decode()}" for match in _MAKES_ONE.finditer(file.read(size))]
    return [shown(name) for name in found[:3]]


def how_to_run(verb: str = "run") -> str:
    """Return the command that starts a node here: with the application or the folder, if an option named it."""
    from everytick.config.settings import SettingPlace

    settings = state().settings
    named = ((flag, settings[key]) for flag, key in (("-a", "app"), ("--jobs", "jobs")))
    options = (f" {flag} {setting.value}" for flag, setting in named if setting.place is SettingPlace.OPTION)
    return f"{state().program} {verb}{''.join(options)}"


def _refuse_absent_store(app: Everytick) -> None:
    file = address_of_app(app).file
    if file is not None and not file.exists():
        run, following = (how_to_run(verb) for verb in ("run", "next"))
        text = f"there is no store {shown(str(file))} yet: {run} makes it"
        raise Refused(f"{text}; {following} shows what the application defines", Exit.NOT_FOUND)


def _on_folder(folder: str, make: bool) -> Everytick:
    """Return an application for a folder of jobs. Its store is beside the folder, not in the current folder."""
    from urllib.parse import quote

    from everytick.app import Everytick

    file = store_beside(folder)
    if not make and not file.exists():
        text = f"there is no store {shown(str(file))} yet: everytick run --jobs {shown(folder)} makes it"
        raise Refused(f"{text}, and so does everytick apply {shown(folder)}", Exit.NOT_FOUND)
    return Everytick(f"sqlite:///{quote(str(file))}", name=NAME)


def store_beside(folder: str) -> Path:
    """Return the file of the store that a folder of jobs has unless another one is named: beside the folder.

    A store inside the folder is taken where there is one, and made there if the folder is the current one and none is
    beside it: a user who writes `--jobs .` does not look for files outside.
    """
    from pathlib import Path

    path = Path(os.path.abspath(Path(folder).expanduser()))
    beside, inside = path.parent / _STORE_FILE, path / _STORE_FILE
    is_inside = inside.exists() or (path == Path.cwd() and not beside.exists())
    return inside if is_inside else beside


def _on_store(address: str, *, make: bool, in_memory: bool = False) -> Everytick:
    from everytick.app import Everytick
    from everytick.stores.addresses import checked_address, store_of

    if checked_address(address).startswith("memory:") and not in_memory:
        raise Refused("a store in memory ends with the process that has it: name one that others can reach")
    file = None if make or not address.startswith("sqlite:") else store_of(address).address.file
    if file is not None and not file.exists():
        text = f"there is no file {shown(str(file))}: correct the address, or make it with everytick db migrate"
        raise Refused(text, Exit.NOT_FOUND)
    return Everytick(address, name=NAME)


def store_application(address: str) -> Everytick:
    """Return an application without jobs on the store at this address, with the settings of this call."""
    return _configured(_on_store(address, make=False), state().settings)


def _configured(app: Everytick, settings: SettingsByName) -> Everytick:
    """Let settings from outside the code win over those in it."""
    from dataclasses import fields
    from pathlib import Path

    from everytick.config.settings import NODE_KEYS, SettingPlace
    from everytick.node.settings import node_settings

    if settings["jobs"].value is not None:
        app.jobs_folder = Path(settings["jobs"].value).expanduser().absolute()
        import_from_here()
    if settings["jobs_owner"].place > SettingPlace.BUILT_IN:
        app.jobs_owner = settings["jobs_owner"].value
    if settings["confirm_above"].place > SettingPlace.BUILT_IN:
        app.confirm_above = settings["confirm_above"].value
    if settings["api_targets"].place > SettingPlace.BUILT_IN:
        app.api_targets = frozenset(settings["api_targets"].value)
    given = {key: settings[key].value for key in NODE_KEYS if settings[key].place > SettingPlace.BUILT_IN}
    if given:
        own = {field.name: getattr(app.settings, field.name) for field in fields(app.settings)}
        app.settings = node_settings(**{**own, **given})
        if app.settings.timezone_data == "package":
            from everytick.schedules.timezones import use_packaged_zones

            use_packaged_zones()
    return app


def address_of_app(app: Everytick) -> StoreAddress:
    """Return where the application's store is. Nothing is opened or made."""
    from everytick.app.store_access import store_address

    return store_address(app)
