"""Django, where a task belongs to a project of it: set up before its modules are imported, no connection kept too long.

Nothing of Django is imported unless the process or its environment says that it is used.
"""

import os
import sys
from logging import getLogger

_log = getLogger("everytick.runners")

SETTINGS_MODULE = "DJANGO_SETTINGS_MODULE"


def is_set_up() -> bool:
    """Say whether this process has set Django up by the settings that a variable names, so that others can too."""
    apps = sys.modules.get("django.apps")
    return SETTINGS_MODULE in os.environ and apps is not None and bool(apps.apps.ready)


def set_up() -> None:
    """Set Django up if a variable names its settings: before that, no module with models can be imported."""
    if not os.environ.get(SETTINGS_MODULE):
        return
    try:
        import django
    except ModuleNotFoundError:
        return
    django.setup()


def close_old_connections() -> None:
    """Close this thread's database connections that are broken or too old, as Django does around each request.

    Only Django's own server and handlers do so by themselves. A thread that lives as long as a node would keep a
    connection that its server has closed long ago, and every later query of the thread would fail.
    """
    database, conf = sys.modules.get("django.db"), sys.modules.get("django.conf")
    if database is None or conf is None or not conf.settings.configured:
        return  # imported by a library at most: without settings there is no connection
    try:
        database.close_old_connections()
    except Exception:  # noqa: BLE001 - a connection that cannot be closed is no failure of the task
        _log.exception("an old database connection of Django could not be closed; the task goes on")
