"""Reading what has ended long ago into the copy: what a verb asked for, or is known to need."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from everytick.domain.decisions import Plan
from everytick.domain.durations import MICROSECOND
from everytick.domain.lookups import ExistingIds, IdRange, OccurrenceStatuses
from everytick.domain.questions import (
    RUNS_MEASURED,
    Alike,
    Buckets,
    Counts,
    Coverage,
    LastRuns,
    Lengths,
    Question,
    QuestionBatch,
    TimeWindow,
)
from everytick.stores.redis.codec import micros, moment_of
from everytick.stores.redis.connections import RedisConnections
from everytick.stores.redis.ended_rows import OLDER, Cold
from everytick.stores.redis.entries import Changes
from everytick.stores.redis.replica import JOB, OCCURRENCE, Replica

AT_ONCE = 500
"""How many hashes are read by one round trip."""

AT_FIRST = 20
"""How many of its newest occurrences are read of each job when a copy is made."""

_OLDEST_PRUNED = 200
"""How many old occurrences of a job are looked at by one call of `prune`."""

_MOST_LENGTHS = 100
"""Of how many jobs the lengths of runs are read exactly; of more they are those of the runs that are held."""

_EARLIEST = datetime.min.replace(tzinfo=UTC)


class EndedReader:
    """Reads rows of one store."""

    def __init__(self, connections: RedisConnections) -> None:
        self._connections, self._key = connections, connections.address.key

    # ----------------------------------------------------------------------------------------------------- reading

    async def rows(self, paths: Sequence[str]) -> Changes:
        """Return the rows of these paths that exist."""
        rows: Changes = {}
        for some in parts(paths):
            answers: Iterable[Mapping[str, str]] = await self._many(("hgetall", path) for path in some)
            rows |= {path: dict(fields) for path, fields in zip(some, answers, strict=True) if fields}
        return rows

    async def named(self, paths: Sequence[str]) -> list[str]:
        """Return those of these paths of jobs and occurrences that a set of the store names now."""
        sets = ("open" if OCCURRENCE in path else "jobs" for path in paths)
        asked = [("sismember", name, path.removeprefix(JOB)) for name, path in zip(sets, paths, strict=True)]
        return [path for path, is_named in zip(paths, await self._many(asked), strict=True) if is_named]

    async def _many(self, commands: Iterable[tuple[Any, ...]]) -> Any:
        """Return the answers to these commands, each a name, a path and arguments, in one round trip."""
        pipeline = self._connections.client.pipeline(transaction=False)
        for name, path, *arguments in commands:
            getattr(pipeline, name)(self._key(path), *arguments)
        return await self._connections.asked(pipeline.execute())

    async def begin(self, replica: Replica, job_ids: Sequence[str]) -> None:
        """Read what has not ended, and the newest occurrences of each job."""
        [open_] = await self._many([("smembers", "open")])
        replica.take(await self.rows([JOB + path for path in sorted(open_)]))
        for some in parts(job_ids):
            newest = await self._many(("zrevrange", _line(id_), 0, AT_FIRST - 1, True) for id_ in some)
            await self._hold_newest(replica, some, newest, AT_FIRST, replica.leave_cold)

    async def _hold_newest(
        self,
        replica: Replica,
        job_ids: Sequence[str],
        newest: Sequence[Sequence[tuple[str, float]]],
        count: int,
        then: Callable[[str, datetime | None], None],
    ) -> None:
        """Hold the newest occurrences of jobs, each with its instant in microseconds. `then` hears from when on."""
        read = list(zip(job_ids, newest, strict=True))
        replica.hold(await self.rows([_path(job_id, id_) for job_id, line in read for id_, _ in line]))
        for job_id, line in read:
            # Others may stand at the instant of the last one.
            then(job_id, moment_of(int(line[-1][1])) + MICROSECOND if len(line) == count else None)

    # ------------------------------------------------------------------------------------------- what a verb asked for

    async def answer(self, replica: Replica, asked: Cold) -> None:
        """Read what a verb has asked for."""
        if asked.id_:
            await self.know(replica, [asked.id_, *replica.filled_with(asked.id_)])
        elif asked.is_all:
            await self.warm(replica, [asked.job_id], _EARLIEST)
        elif asked.down_to is not None:
            await self.warm(replica, [asked.job_id], asked.down_to)
        else:
            await self._older(replica, asked.job_id)

    async def know(self, replica: Replica, ids: Iterable[str]) -> None:
        """Read the occurrences of these ids that exist; the copy knows of the others that they do not."""
        unknown = list(dict.fromkeys(replica.unknown(ids)))
        for some in parts(unknown):
            answers = await self._many(("zrangebylex", "ids", f"[{id_}:", f"[{id_};", 0, 1) for id_ in some)
            members = [member.partition(":") for answer in answers for member in answer]
            replica.hold(await self.rows([_path(job_id, id_) for id_, _, job_id in members]))
            replica.note_absent({*some} - {id_ for id_, _, _ in members})

    async def warm(self, replica: Replica, job_ids: Collection[str] | None, down_to: datetime) -> None:
        """Read the occurrences of these jobs, or of all, from this instant on."""
        cold = replica.cold_jobs(job_ids, down_to)
        bound = "-inf" if down_to == _EARLIEST else str(micros(down_to))
        for some in parts(cold):
            lines = await self._many(("zrangebyscore", _line(id_), bound, f"({micros(at)}") for id_, at in some)
            paths = [_path(job_id, id_) for (job_id, _), members in zip(some, lines, strict=True) for id_ in members]
            replica.hold(await self.rows(paths))
            for id_, _ in some:
                replica.warm(id_, None if down_to == _EARLIEST else down_to)

    async def _older(self, replica: Replica, job_id: str) -> None:
        """Read some more occurrences of a job, older than those that the copy holds."""
        at = replica.warm_from(job_id)
        if at is None:
            return
        line = _line(job_id)
        [older] = await self._many([("zrevrangebyscore", line, f"({micros(at)}", "-inf", 0, OLDER, True)])
        if len(older) < OLDER:
            replica.hold(await self.rows([_path(job_id, id_) for id_, _ in older]))
            replica.warm(job_id, None)
            return
        last = int(older[-1][1])
        # All that stand at the instant of the last one, so that the next call goes on before it.
        [beside] = await self._many([("zrangebyscore", line, last, last)])
        ids = dict.fromkeys([*(id_ for id_, _ in older), *beside])
        replica.hold(await self.rows([_path(job_id, id_) for id_ in ids]))
        replica.warm(job_id, moment_of(last))

    # --------------------------------------------------------------------------------- what verbs are known to need

    async def for_plans(self, replica: Replica, plans: Sequence[Plan]) -> None:
        """Read what the commit of plans asks for: whether what they create exists, and what they end or repeat."""
        ids: list[str] = []
        for plan in plans:
            ids += [creation.id for creation in plan.creations]
            ids += [creation.replay_of for creation in plan.creations if creation.replay_of is not None]
            ids += [*plan.releases, *plan.cancels, *(ending.id for ending in plan.endings)]
            ids += () if plan.filling is None else plan.filling.ids
        await self.know(replica, ids)

    async def for_question(self, replica: Replica, question: Question[Any]) -> None:
        """Read what a question about many jobs looks at."""
        match question:
            case QuestionBatch():
                for part in question.questions:
                    await self.for_question(replica, part)
            case TimeWindow():
                await self.warm(replica, question.job_ids, question.after)
            case Coverage():
                await self.warm(replica, [question.job_id], question.after)
            case Buckets():
                await self.warm(replica, question.job_ids, question.known_from(await replica.verbs.now()))
            case Counts():
                asked = None if question.job_id is None else [question.job_id]
                await self.warm(replica, asked, question.after or _EARLIEST)
            case LastRuns():
                await self._newest(replica, question.job_ids, question.count)
            case Lengths() if not self.is_broad(replica, question):
                await self._newest(replica, question.job_ids, RUNS_MEASURED)
            case OccurrenceStatuses() | ExistingIds():
                await self.know(replica, question.occurrence_ids)
            case IdRange():
                await self.know(replica, await self._in_range(question))
            case Alike():
                await self._failed(replica, question.since)

    def is_broad(self, replica: Replica, question: Question[Any]) -> bool:
        """Whether a question is about so many jobs that it is answered from what is held of their histories."""
        if isinstance(question, QuestionBatch):
            return any(self.is_broad(replica, part) for part in question.questions)
        return isinstance(question, Lengths) and len(replica.cold_jobs(question.job_ids, _EARLIEST)) > _MOST_LENGTHS

    async def _newest(self, replica: Replica, job_ids: Collection[str] | None, count: int) -> None:
        """Read the newest occurrences of these jobs, or of all."""
        cold = [id_ for id_, _ in replica.cold_jobs(job_ids, _EARLIEST)]
        for some in parts(cold):
            newest = await self._many(("zrevrange", _line(id_), 0, count, True) for id_ in some)
            await self._hold_newest(replica, some, newest, count + 1, replica.warm)

    async def _failed(self, replica: Replica, since: datetime) -> None:
        """Read the occurrences that have failed after this moment."""
        [failed] = await self._many([("zrangebyscore", "failed", f"({micros(since)}", "+inf")])
        unknown = {*replica.unknown(path.partition(OCCURRENCE)[2] for path in failed)}
        replica.hold(await self.rows([JOB + path for path in failed if path.partition(OCCURRENCE)[2] in unknown]))

    async def oldest(self, replica: Replica, job_id: str, limit: int) -> None:
        """Read the oldest occurrences of a job."""
        if replica.warm_from(job_id) is None:
            return
        [oldest] = await self._many([("zrange", _line(job_id), 0, limit)])
        replica.hold(await self.rows([_path(job_id, id_) for id_ in oldest]))
        if len(oldest) <= limit:
            replica.warm(job_id, None)

    async def for_pruning(self, replica: Replica) -> None:
        """Read old occurrences of jobs that keep theirs for a time."""
        old = replica.prunable()
        for some in parts(old):
            lines = await self._many(
                ("zrangebyscore", _line(id_), "-inf", micros(at), 0, _OLDEST_PRUNED) for id_, at in some
            )
            paths = [_path(job_id, id_) for (job_id, _), members in zip(some, lines, strict=True) for id_ in members]
            replica.hold(await self.rows(paths))

    async def _in_range(self, asked: IdRange) -> list[str]:
        """Return the ids of occurrences in a range, at most as many as are asked for."""
        [members] = await self._many([("zrangebylex", "ids", f"[{asked.first}", f"[{asked.last};", 0, asked.limit)])
        return [member.partition(":")[0] for member in members]


def _line(job_id: str) -> str:
    return f"{JOB}{job_id}/occurrences"


def _path(job_id: str, id_: str) -> str:
    return f"{JOB}{job_id}{OCCURRENCE}{id_}"


def parts(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """Give the items in parts that one round trip reads."""
    return (items[at : at + AT_ONCE] for at in range(0, len(items), AT_ONCE))
