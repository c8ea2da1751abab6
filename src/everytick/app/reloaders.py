"""Reloaders of development servers, as of `flask run --debug` and `manage.py runserver`.

Such a server is two processes. The parent imports the program once, watches its child and never loads an edit. The
child serves, and is started anew after each edit. A node in the parent would go on to run the code of the first start.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

WERKZEUG_CHILD, DJANGO_CHILD = "WERKZEUG_RUN_MAIN", "RUN_MAIN"
"""The variable that is `true` in the child, and only there."""

_RELOADERS = ("werkzeug.serving", "django.utils.autoreload")


class ReloaderParent:
    """What is known of this process: whether it was told to be such a parent, and whom to stop if it becomes one."""

    def __init__(self) -> None:
        self._is_logged = False
        self._is_listening = False
        self._stops: list[Callable[[], None]] = []

    def starts_no_node(self) -> bool:
        """Say whether this process is the parent of a reloader, and log it the first time."""
        if not (_is_flask_run() or _is_django_runserver()):
            return False
        self._log_once("no node is started in this one")
        return True

    def stop_before_reloading(self, stop: Callable[[], None]) -> None:
        """Call `stop` should this process start the child of a reloader later, as `app.run(debug=True)` does.

        At that moment the interpreter reports a new process with its environment to audit hooks. Nothing tells earlier.
        """
        if not any(module in sys.modules for module in _RELOADERS):
            return
        self._stops.append(stop)
        if not self._is_listening:
            self._is_listening = True
            sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" and self._stops and _starts_child(arguments[3]):
            self._log_once("the node of this one stops")
            stops, self._stops = self._stops, []
            for stop in stops:
                stop()

    def _log_once(self, consequence: str) -> None:
        if not self._is_logged:
            self._is_logged = True
            from logging import getLogger

            getLogger("everytick").info("a reloader runs this program in a process of its own: %s", consequence)


def _is_flask_run() -> bool:
    cli = sys.modules.get("flask.cli")
    if cli is None or os.environ.get(WERKZEUG_CHILD) == "true":
        return False
    from click import get_current_context

    context = get_current_context(silent=True)
    if context is None or context.command is not cli.run_command:
        return False
    told = context.params.get("reload")
    return bool(cli.get_debug_flag() if told is None else told)


def _is_django_runserver() -> bool:
    if "django" not in sys.modules or os.environ.get(DJANGO_CHILD) == "true":
        return False
    return sys.argv[1:2] == ["runserver"] and "--noreload" not in sys.argv


def _starts_child(environment: object) -> bool:
    """Tell whether a process with this environment is the child of a reloader, and this one is not."""
    names = [name for name in (WERKZEUG_CHILD, DJANGO_CHILD) if os.environ.get(name) != "true"]
    return isinstance(environment, dict) and any(environment.get(name) == "true" for name in names)


reloader_parent = ReloaderParent()
