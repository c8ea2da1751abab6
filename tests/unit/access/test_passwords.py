"""Passwords: argon2id, never the text itself, and a stored text that is no hash fits nothing."""

import pytest

from everytick.access.passwords import LONGEST_PASSWORD, SHORTEST_PASSWORD, Passwords, checked_password
from everytick.errors import InvalidSetting

PASSWORD = "correct horse battery"


async def test_a_password_is_stored_as_a_hash_of_argon2id_with_a_salt_of_its_own() -> None:
    passwords = Passwords()
    one, two = [await passwords.hashed(PASSWORD) for _ in range(2)]

    assert one.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert one != two
    assert PASSWORD not in one
    assert await passwords.fits(PASSWORD, one)
    assert not await passwords.fits(f"{PASSWORD} ", one)


@pytest.mark.parametrize("stored", [None, "", PASSWORD, "$argon2id$v=19$m=19456,t=2,p=1$"])
async def test_what_is_no_hash_fits_no_password(stored: str | None) -> None:
    """A user who signs in elsewhere has none."""
    assert not await Passwords().fits(PASSWORD, stored)


@pytest.mark.parametrize("text", ["x" * (SHORTEST_PASSWORD - 1), "x" * (LONGEST_PASSWORD + 1), "x" * 20 + "\ud800"])
def test_a_password_of_another_size_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        checked_password(text)

    assert text not in str(caught.value)
