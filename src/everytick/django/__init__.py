"""Django: the application of a project, made from its setting EVERYTICK.

    # settings.py
    INSTALLED_APPS = [..., "everytick.django"]
    EVERYTICK = {"store": "postgresql://…"}

    # shop/jobs.py
    from everytick.django import tick

Nothing of Django is imported before one of the names below is used.
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from everytick.app import Everytick
    from everytick.django.project import trigger_on_commit

    tick: Everytick

__all__ = ["tick", "trigger_on_commit"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'everytick.django' has no attribute {name!r}")
    from everytick.django import project

    found = project.application() if name == "tick" else project.trigger_on_commit
    return globals().setdefault(name, found)
