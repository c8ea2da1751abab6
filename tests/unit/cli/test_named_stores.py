"""Names of several stores: given before the address, or taken from it."""

from pathlib import Path

import pytest

from everytick.cli.exits import Refused
from everytick.cli.named_stores import is_named, name_of, named_stores


@pytest.mark.parametrize(
    ("given", "is_so"),
    [
        ("shop=postgresql://db/app?schema=shop", True),
        ("postgresql://db/app?schema=shop", False),
        ("sqlite:///a=b.db", False),
        ("=sqlite:///a.db", True),
    ],
)
def test_a_name_stands_before_the_scheme(given: str, is_so: bool) -> None:
    assert is_named(given) is is_so


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("sqlite:////srv/bank.db", "bank"),
        ("postgresql://u:p@db/app", "app"),
        ("postgresql://u:p@db/app?schema=shop", "shop"),
        ("redis://cache/0?prefix=mail", "mail"),
    ],
)
def test_a_store_without_a_name_is_called_as_its_address_ends(address: str, name: str) -> None:
    assert name_of(address) == name


@pytest.mark.parametrize("name", ["", "static", "a/b", "ü", "x" * 41, ".."])
def test_a_name_that_cannot_be_a_path_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="write --store NAME=URL"):
        named_stores([f"{name}=memory://"] if "/" not in name else [f"memory://h/{name}?schema=a%2Fb"])


def test_the_words_of_a_refusal_hold_no_password(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        named_stores(["postgresql://u:secret-word@db/a%20b"])
    assert "secret-word" not in str(refused.value)
