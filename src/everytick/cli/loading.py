"""The application that a module holds: `module:object`, imported from the current folder or from what is installed."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from everytick.cli.exits import Refused
from everytick.errors import EverytickError, shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from everytick.app import Everytick


def loaded(named: str) -> Everytick:
    """Return the application `module:object`, or that of `module` if it has only one."""
    module, _, attribute = named.partition(":")
    if not module or named.endswith(":") or module.endswith(".py") or "/" in module:
        wanted = os.path.splitext(os.path.basename(module))[0] or "module"
        raise Refused(f"'{shown(named)}' names no application: write module:object, like {shown(wanted)}:tick")
    import_from_here()
    _set_up_django()
    found = _imported(module, named)
    return _only_one(found, module) if not attribute else _attribute(found, module, attribute)


def import_from_here() -> None:
    """Let modules be found in the current folder, as `python -m` does."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)


def _set_up_django() -> None:
    """Set Django up where DJANGO_SETTINGS_MODULE names its settings: a project's modules can be imported then."""
    from everytick.runners.django_project import SETTINGS_MODULE, set_up

    try:
        set_up()
    except (Exception, SystemExit) as error:
        named = shown(os.environ[SETTINGS_MODULE])
        why = f"{type(error).__name__}: {shown(str(error), 500)}"
        text = f"Django cannot be set up with '{named}'{_last_line(error)}: {why}; correct or unset {SETTINGS_MODULE}"
        raise Refused(f"{text} (--debug shows the traceback)", Exit.INVALID_FILE) from error


def _imported(module: str, named: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            text = f"there is no module '{shown(module)}' here or among the installed ones: is this its folder?"
            raise Refused(text) from error
        raise _broken(module, error) from error
    except SystemExit as error:
        text = f"the module '{shown(module)}' ends the process when it is imported: put that under __main__"
        raise Refused(text, Exit.INVALID_FILE) from error
    except Exception as error:
        raise _broken(module, error) from error


def _broken(module: str, error: Exception) -> Refused:
    kind = "" if isinstance(error, EverytickError) else f"{type(error).__name__}: "
    place = _last_line(error)
    text = f"the module '{shown(module)}' cannot be imported{place}: {kind}{shown(str(error), 500)}"
    return Refused(f"{text} (--debug shows the traceback)", Exit.INVALID_FILE)


def _last_line(error: BaseException) -> str:
    """Return the last line of the traceback that is in the user's own code."""
    import traceback

    if isinstance(error, SyntaxError):
        return f", {error.filename}:{error.lineno}"
    inside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    own = [frame for frame in frames if not os.path.abspath(frame.filename).startswith(inside)]
    return f", {own[-1].filename}:{own[-1].lineno}" if own else ""


def _attribute(module: Any, name: str, attribute: str) -> Everytick:
    from everytick.app import Everytick
    from everytick.domain.names import did_you_mean

    found = module
    try:
        for part in attribute.split("."):
            found = getattr(found, part, None)
    except Exception as error:
        raise _broken(name, error) from error
    if isinstance(found, Everytick):
        return found
    applications = [key for key, value in vars(module).items() if isinstance(value, Everytick)]
    what = "has no such name" if found is None else f"holds there a {type(found).__name__}, not an Everytick"
    near = did_you_mean(attribute, applications) or (f"; it has: {', '.join(applications)}" if applications else "")
    raise Refused(f"'{shown(name)}:{shown(attribute)}': the module {what}{near}")


def _only_one(module: Any, name: str) -> Everytick:
    from everytick.app import Everytick

    found = {id(value): (key, value) for key, value in vars(module).items() if isinstance(value, Everytick)}
    if len(found) == 1:
        [(_, value)] = found.values()
        return value
    if not found:
        raise Refused(f"the module '{shown(name)}' holds no Everytick: name the module that makes it")
    names = " or ".join(f"{name}:{key}" for key, _ in found.values())
    raise Refused(f"the module '{shown(name)}' holds {len(found)} applications: write {shown(names)}")
