"""The application: define jobs, ask for things, ask about things."""

from everytick.app.application import Everytick

__all__ = ["Everytick"]
