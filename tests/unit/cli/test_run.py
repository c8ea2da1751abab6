"""`everytick run`: whether and where the dashboard and the API are served beside the node."""

from pathlib import Path
from typing import Any

import pytest

from everytick import Everytick
from everytick.app.serving import Listening
from tests.unit.cli.conftest import Cli


@pytest.mark.parametrize(
    ("options", "variables", "expected"),
    [
        ((), {}, ("127.0.0.1", 8484)),
        (("--web-address", "0.0.0.0", "--web-port", "0"), {}, ("0.0.0.0", 0)),
        (("--no-web",), {}, None),
        (("--no-web", "--web-port", "0"), {}, None),
        ((), {"EVERYTICK_WEB": "off"}, None),
    ],
)
def test_the_node_has_its_dashboard_on_this_host_unless_it_is_told_otherwise(
    tmp_path: Path,
    plain: Cli,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    variables: dict[str, str],
    expected: tuple[str, int] | None,
) -> None:
    begun: list[Listening | None] = []

    def run(self: Everytick, *, web: Listening | None, **more: Any) -> None:
        begun.append(web)

    monkeypatch.setattr(Everytick, "run_or_raise", run)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    (tmp_path / "jobs").mkdir()
    done = plain("run", "--jobs", "jobs", "--store", "memory://", *options)

    assert done.code == 0, done.err
    [web] = begun
    assert (None if web is None else (web.host, web.port)) == expected
