"""A form that is sent twice is carried out once, whichever user sends it and however close together."""

import asyncio

import pytest

from everytick.web.submissions import Submissions


class Counted:
    """A deed that counts how often it was done, and ends when it is told to."""

    def __init__(self) -> None:
        self.times, self.may_end = 0, asyncio.Event()
        self.fails = False

    async def __call__(self) -> int:
        self.times += 1
        number = self.times
        await self.may_end.wait()
        if self.fails:
            raise ValueError("refused")
        return number


async def test_two_requests_at_once_are_one_deed() -> None:
    forms, deed = Submissions[int](), Counted()
    first = asyncio.create_task(forms.once("ann", "k", deed))
    second = asyncio.create_task(forms.once("ann", "k", deed))
    await asyncio.sleep(0)
    deed.may_end.set()

    assert (await first, await second) == (1, 1)
    assert await forms.once("ann", "k", deed) == 1
    assert deed.times == 1


async def test_a_key_belongs_to_a_person_and_no_key_is_no_form() -> None:
    forms, deed = Submissions[int](), Counted()
    deed.may_end.set()

    assert [
        await forms.once(who, key, deed) for who, key in (("ann", "k"), ("ben", "k"), ("ann", ""), ("ann", ""))
    ] == [
        1,
        2,
        3,
        4,
    ]


async def test_a_deed_that_was_refused_is_done_again() -> None:
    forms, deed = Submissions[int](), Counted()
    deed.fails = True
    deed.may_end.set()
    with pytest.raises(ValueError, match="refused"):
        await forms.once("ann", "k", deed)
    deed.fails = False

    assert await forms.once("ann", "k", deed) == 2


async def test_a_request_that_goes_away_does_not_end_the_deed() -> None:
    forms, deed = Submissions[int](), Counted()
    gone = asyncio.create_task(forms.once("ann", "k", deed))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    deed.may_end.set()

    assert await forms.once("ann", "k", deed) == 1


async def test_only_the_last_thousand_are_remembered() -> None:
    forms, deed = Submissions[int](), Counted()
    deed.may_end.set()
    for number in range(1_002):
        await forms.once("ann", str(number), deed)

    assert await forms.once("ann", "1001", deed) == 1_002
    assert await forms.once("ann", "0", deed) == 1_003
