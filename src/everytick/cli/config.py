"""`everytick config`: what is set, and by whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from everytick.cli.common_options import Noun, state
from everytick.cli.output import show_json, show_table
from everytick.cli.times import Times

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.group("config", cls=Noun, help="Show the configuration.")
def config_verb() -> None:
    """Show the configuration."""


@config_verb.command("show", help="Show every setting; with --origin, where each value came from.")
@click.option("--origin", is_flag=True, help="Show where each value came from.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document.")
def show(origin: bool, as_json: bool) -> None:
    """Show every setting."""
    found = list(_settings())
    if as_json:
        show_json({name: {"value": value, "origin": where} for name, value, where in found})
        return
    rows = found if origin else [row[:2] for row in found]
    show_table(["setting", "value", "origin"][: 3 if origin else 2], rows, Times(utc=True))


def _settings() -> Iterator[tuple[str, str, str]]:
    """Return each setting with its value for people and its origin. Code wins over the built-in value."""
    from everytick.cli.loading import loaded
    from everytick.config.settings import NODE_KEYS, SettingPlace, shown_value

    settings = state().settings
    code = None if settings["app"].value is None else loaded(settings["app"].value).settings
    for name, setting in settings.items():
        value, origin = setting.value, setting.origin
        if code is not None and name in NODE_KEYS and setting.place is SettingPlace.BUILT_IN:
            own = getattr(code, name)
            value, origin = (own, "application") if own != value else (value, origin)
        yield name, shown_value(name, value), origin
