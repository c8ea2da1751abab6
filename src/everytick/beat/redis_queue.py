"""A queue of plain Redis lists, one for each priority, that takes every job once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from everytick.beat.definition import Priority
from everytick.beat.records import DEFAULT_PREFIX, score
from everytick.beat.redis_client import RedisScript, ScriptCall, called, connected
from everytick.errors import EverytickError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everytick.beat.queues import EnqueuedJob
    from everytick.beat.redis_client import BeatRedis

_PUSH = RedisScript("""
local answers = {}
for item = 1, #ARGV, 4 do
  local last = redis.call('HGET', KEYS[1], ARGV[item + 1])
  if last and tonumber(last) >= tonumber(ARGV[item + 2]) then
    answers[#answers + 1] = 0
  else
    local pushed = redis.pcall('LPUSH', KEYS[1 + ARGV[item]], ARGV[item + 3])
    if type(pushed) == 'table' then
      answers[#answers + 1] = pushed['err']
    else
      redis.call('HSET', KEYS[1], ARGV[item + 1], ARGV[item + 2])
      answers[#answers + 1] = 1
    end
  end
end
return cjson.encode(answers)
""")
"""KEYS: the last times, the lists. ARGV for each job: which list, id of the schedule, time, the job."""


_PRIORITIES = tuple(Priority)


class NotPushed(EverytickError):
    """Redis refused a job."""

    code = "not_pushed"


class RedisQueue:
    """Lists of JSON objects. Workers take from their right ends: `BRPOP` with the lists in the order of `lists`.

    The times of one schedule come in order. So the queue keeps the last time of each schedule beside the lists, and
    leaves out every job whose time is not later: a beat that repeats itself, after a crash or a pause of whatever
    length, adds nothing.
    """

    def __init__(self, redis: BeatRedis, prefix: str = DEFAULT_PREFIX) -> None:
        self._client, self._is_ours = connected(redis)
        self._prefix = prefix

    @property
    def lists(self) -> list[str]:
        """The keys of the lists, the most urgent first."""
        return [self._list(priority) for priority in Priority]

    async def enqueue(self, job: EnqueuedJob) -> bool:
        """Put the job into the list of its priority; return False if the queue has had it."""
        [answer] = await self._push([job])
        if isinstance(answer, str):
            raise NotPushed(answer)
        return bool(answer)

    async def enqueue_batch(self, jobs: Sequence[EnqueuedJob]) -> Sequence[BaseException | None]:
        """Put the jobs into their lists in one question."""
        return [NotPushed(answer) if isinstance(answer, str) else None for answer in await self._push(jobs)]

    async def close(self) -> None:
        """Close the connections, unless the client was given."""
        if self._is_ours:
            await self._client.aclose()

    async def _push(self, jobs: Sequence[EnqueuedJob]) -> list[int | str]:
        """Return for each job 1 if it is new, 0 if the queue has had it, and else what Redis says."""
        arguments: list[str | int] = []
        for job in jobs:
            place = _PRIORITIES.index(job.priority) + 1
            arguments += (place, job.schedule_id, score(job.scheduled_at), job.as_json())
        [answer] = await called(
            self._client, [ScriptCall(_PUSH, [f"{self._prefix}:enqueued", *self.lists], *arguments)]
        )
        if isinstance(answer, Exception):
            raise answer
        numbers: list[int | str] = json.loads(answer)
        return numbers

    def _list(self, priority: Priority) -> str:
        return f"{self._prefix}:queue:{priority}"
