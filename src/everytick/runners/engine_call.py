"""What a worker of Dask or Ray calls: it imports the function, calls it, and returns JSON.

It is sent to the worker as it stands here, so a worker needs no everytick. That is why it imports what it needs inside
and names nothing of this module. The node never unpickles a result or an exception of a task: both come as text.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from everytick.domain.durations import duration
from everytick.domain.outcome import Failed, Outcome
from everytick.errors import InvalidDuration
from everytick.runners.outcomes import bounded, succeeded


def call_there(path: str, allowed: Sequence[str], arguments: str) -> str:
    """Call the function at this place with these arguments, and return what came of it."""
    import importlib
    import json
    import traceback

    try:
        module, _, names = path.partition(":")
        function: Any = importlib.import_module(module)
        for name in names.split("."):
            function = getattr(function, name)
        home = str(function.__module__)
        if not any(home == package or home.startswith(package + ".") for package in allowed):
            raise PermissionError(f"'{path}' is only borrowed there: it belongs to '{home}'")
        args, kwargs = json.loads(arguments)
        return json.dumps({"result": function(*args, **kwargs)})
    except Exception as error:  # noqa: BLE001, whatever the task raises is its outcome
        kinds = [kind for kind in type(error).__mro__ if issubclass(kind, BaseException)]
        names_of = [f"{kind.__module__}.{kind.__qualname__}" for kind in kinds]
        told = "".join(traceback.format_exception(error)).rstrip("\n")
        after = getattr(error, "after", None) if type(error).__name__ == "TryAgain" else None
        return json.dumps({"error": told, "types": names_of, "after": None if after is None else str(after)})


def arguments_text(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the arguments of a call as `call_there` reads them."""
    return json.dumps([list(args), dict(kwargs)])


def outcome_of(text: str) -> Outcome:
    """Return the outcome that `call_there` tells of."""
    told = json.loads(text)
    if "error" not in told:
        return succeeded(told["result"])
    kinds = tuple(told["types"])
    try:
        after = None if told["after"] is None else duration(told["after"])
    except InvalidDuration:
        after = None
    gives_up = "everytick.errors.GiveUp" in kinds
    return Failed(bounded(told["error"]), kinds, give_up=gives_up, try_again_after=after)
