-- Write what one verb has changed, if nothing was written since the copy that the verb worked on.
-- KEYS: 1 the head, 2 the log, 3 the writer whose turn it is, if somebody lost too often: others wait, for a moment only.
-- Other keys begin with ARGV[6], which has the hash tag of these: they lie in their slot.
-- ARGV: 1 the epoch of the store, 2 the id of the last entry that the copy has,
--       3 the entry: by path, the fields of a hash, null for each that is deleted, or null for a whole hash,
--       4 how many entries the log keeps, 5 the bell's channel, or an empty text, 6 the prefix of all keys,
--       7 the id of the entry: the number after the last one, and what is random, so that no other entry ever has it,
--       8 the writer's name, 9 for how many milliseconds it wants the next turn, or 0,
--       then the members of sets, by fours: ZADD, ZREM, SADD or SREM, the path, the score or nothing, the member.
-- The answer begins with 1 if it was written, 0 if not, 2 if it is another writer's turn; then come the id of the last entry, the server's time in seconds
-- and microseconds, and the entries from the last one of the copy on. If that one is not the first of them, the log no
-- longer has it, or never had: a server that lost its last second gives its number to another entry.
local epoch, last = unpack(redis.call('HMGET', KEYS[1], 'epoch', 'last'))
local now = redis.call('TIME')
if epoch ~= ARGV[1] then
  return {-1, epoch or '', now[1], now[2], {}}
end
local turn = redis.call('GET', KEYS[3])
if last ~= ARGV[2] or (turn and turn ~= ARGV[8]) then
  if not turn and ARGV[9] ~= '0' then
    redis.call('SET', KEYS[3], ARGV[8], 'PX', ARGV[9])
    turn = ARGV[8]
  end
  local code = (turn and turn ~= ARGV[8]) and 2 or 0
  return {code, last, now[1], now[2], redis.call('XRANGE', KEYS[2], ARGV[2], '+')}
end
for path, fields in pairs(cjson.decode(ARGV[3])) do
  local key = ARGV[6] .. path
  if fields == cjson.null then
    redis.call('DEL', key)
  else
    for field, text in pairs(fields) do
      if text == cjson.null then
        redis.call('HDEL', key, field)
      else
        redis.call('HSET', key, field, text)
      end
    end
  end
end
for at = 10, #ARGV, 4 do
  local command, key = ARGV[at], ARGV[6] .. ARGV[at + 1]
  if command == 'ZADD' then
    redis.call('ZADD', key, ARGV[at + 2], ARGV[at + 3])
  else
    redis.call(command, key, ARGV[at + 3])
  end
end
if turn then
  redis.call('DEL', KEYS[3])
end
redis.call('HSET', KEYS[1], 'last', ARGV[7])
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[4], ARGV[7], 'changes', ARGV[3])
if ARGV[5] ~= '' then
  redis.call('PUBLISH', ARGV[5], ARGV[7])
end
return {1, ARGV[7], now[1], now[2], {}}
