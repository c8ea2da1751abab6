"""The Lua texts by which a beat reads and writes its records: each is one moment for every other beat.

A batch is one call, since a client spends most of its time on single commands. Each item of a batch stands alone: what
is wrong with one of them is its answer, and the others are carried out. Answers are JSON. Numbers that must stay exact
come as text.
"""

from everytick.beat.redis_client import RedisScript

LOOK = RedisScript("""
local now = ARGV[1]
if now == '' then
  local time = redis.call('TIME')
  now = string.format('%.0f', time[1] * 1000000 + time[2])
end
return {now, redis.call('GET', KEYS[2]), redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)}
""")
"""KEYS: index, epoch. ARGV: the time, or nothing for the server's own."""

HOLD = RedisScript("""
local answers, fields = {}, {'decided_through', 'last_run', 'definition', 'defined_at', 'run_count'}
for key = 1, #KEYS, 2 do
  local answer
  local taken = redis.pcall('SET', KEYS[key], ARGV[1], 'NX', 'PX', ARGV[2])
  if taken == false then
    answer = {'locked'}
  elseif taken['err'] then
    answer = {'refused', taken['err']}
  else
    local found = redis.pcall('HMGET', KEYS[key + 1], unpack(fields))
    if found['err'] then answer = {'unreadable', found['err']} else answer = {'held', found} end
  end
  answers[#answers + 1] = answer
end
return cjson.encode(answers)
""")
"""KEYS: lock and record of each schedule. ARGV: token, life of the locks in milliseconds."""

_STILL_THE_SAME = """
local function is_same(state, fence)
  return (redis.call('HGET', state, 'decided_through') or redis.call('HGET', state, 'last_run') or '') == fence
end
local function release(lock, token)
  if redis.call('GET', lock) == token then redis.call('DEL', lock) end
end
"""

COMMIT = RedisScript(
    _STILL_THE_SAME
    + """
local function record(state, index, item)
  if not is_same(state, item.fence) then return 0 end
  if item.run ~= '' then
    local counted = redis.pcall('HINCRBY', state, 'run_count', 1)
    if type(counted) == 'table' then return counted['err'] end
    redis.call('HSET', state, 'last_run', item.run, 'last_job_id', item.job_id, 'last_success', item.success_at)
  end
  redis.call('HSET', state, 'decided_through', item.through)
  if redis.call('HGET', state, 'definition') ~= item.definition then
    redis.call('HSET', state, 'definition', item.definition, 'defined_at', item.decided_at)
  end
  if item.look_at == '' then
    redis.call('ZREM', index, item.id)
    redis.call('HDEL', state, 'next_run')
  else
    redis.call('ZADD', index, item.look_at, item.id)
    redis.call('HSET', state, 'next_run', item.next_run)
  end
  return 1
end
local answers = {}
for number, item in ipairs(cjson.decode(ARGV[1])) do
  answers[number] = record(KEYS[2 * number], KEYS[1], item)
  release(KEYS[2 * number + 1], item.token)
end
return cjson.encode(answers)
"""
)
"""KEYS: index, then record and lock of each schedule. ARGV: what to record, as JSON."""

FAIL = RedisScript(
    _STILL_THE_SAME
    + """
release(KEYS[2], ARGV[2])
if not is_same(KEYS[1], ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'last_error', ARGV[3])
return 1
"""
)
"""KEYS: record, lock. ARGV: fence, token, error."""

RESTORE = RedisScript("""
local found = redis.call('HGET', KEYS[1], 'decided_through')
if found and found >= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'decided_through', ARGV[2], 'next_run', ARGV[3])
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
return 1
""")
"""KEYS: record, index. ARGV: id, through when it is decided, its next time, when to look at it."""

FORGET = RedisScript("""
local found = redis.call('ZSCORE', KEYS[1], ARGV[1])
if found and tonumber(found) <= tonumber(ARGV[2]) then return redis.call('ZREM', KEYS[1], ARGV[1]) end
return 0
""")
"""KEYS: index. ARGV: id, since when it must have been due."""
