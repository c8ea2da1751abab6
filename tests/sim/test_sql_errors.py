"""A database that refuses: single items, whole batches, every write for some seconds, everything for some seconds."""

from typing import ClassVar

import pytest

from tests.sim.laws import lived, seeds
from tests.sim.world import FAULTS, World

SQL_FAULTS = ("refuse_items", "refuse_items", "refuse_nearly_all", "fail_batches", "read_only", "break_schema")


class Refusing(World):
    """A world whose database answers with errors, beside everything else that goes wrong."""

    faults: ClassVar[tuple[str, ...]] = (*FAULTS, *SQL_FAULTS)

    async def refuse_items(self) -> None:
        """For a while nothing can be written about some jobs, or only what says nothing about their occurrences."""
        names = self.chance.sample(sorted(self.words), self.chance.choice([1, 1, 3]))
        await self._refuse(set(names))

    async def refuse_nearly_all(self) -> None:
        """For a while one job only can be written about."""
        await self._refuse(set(self.words) - {self.chance.choice(sorted(self.words))})

    async def _refuse(self, names: set[str]) -> None:
        until = self.loop.time() + self.chance.choice([2, 20, 70])
        self.database.takes_little = self.chance.random() < 0.5
        for record in await self.store.list():
            if record.job.name in names:
                self.database.refused_until[record.job.id] = until

    async def fail_batches(self) -> None:
        """The next batches fail, each once."""
        self.database.failing_batches = self.chance.choice([1, 3, 10])

    async def read_only(self) -> None:
        """The database takes no write for some seconds, as during a fail-over."""
        self.database.read_only_until = self.loop.time() + self.chance.choice([1, 8, 30])

    async def break_schema(self) -> None:
        """A table is missing for some seconds, until it is restored."""
        self.database.broken_until = self.loop.time() + self.chance.choice([2, 10, 40])


class Picky(Refusing):
    """A world in which nothing goes wrong but single items."""

    faults: ClassVar[tuple[str, ...]] = ("refuse_items", "fail_batches")
    patience: ClassVar[float] = 12.0
    """For how many seconds a job may be due: two polls and a look."""
    put_off: ClassVar[float] = 60.0
    """For how many seconds a job whose plan was refused is left alone."""

    async def look(self) -> None:
        """No job waits for another whose plans are refused."""
        await super().look()
        now = await self.store.now()
        for record in await self.store.list():
            refused_until = self.database.refused_until.get(record.job.id, -self.put_off)
            if record.wake_at is not None and self.loop.time() > refused_until + self.put_off + self.patience:
                late = (now - record.wake_at).total_seconds()
                assert late < self.patience, f"{record.job.name} has been due for {late} seconds"


@pytest.mark.parametrize("seed", seeds(*range(4)))
def test_a_database_that_answers_with_errors_loses_and_doubles_nothing(seed: int) -> None:
    """C-46, S1-020, G9: every decision is written in the end, and every occurrence ends."""
    lived(seed, Refusing)


@pytest.mark.parametrize("seed", seeds(*range(2)))
def test_what_is_refused_disturbs_nothing_else(seed: int) -> None:
    """C-46: the jobs that can be written about go on as if nothing were."""
    lived(seed, Picky)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_a_database_that_answers_with_errors_loses_and_doubles_nothing_at_length(seed: int) -> None:
    lived(seed, Refusing)
    lived(seed, Picky)
