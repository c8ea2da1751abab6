-- Return the server's time and what was written since the copy that asks.
-- KEYS: 1 the head, 2 the log. ARGV: 1 the epoch of the store, 2 the id of the last entry that the copy has.
-- The answer is that of commit.lua.
local epoch, last = unpack(redis.call('HMGET', KEYS[1], 'epoch', 'last'))
local now = redis.call('TIME')
if epoch ~= ARGV[1] then
  return {-1, epoch or '', now[1], now[2], {}}
end
if last == ARGV[2] then
  return {1, last, now[1], now[2], {}}
end
return {0, last, now[1], now[2], redis.call('XRANGE', KEYS[2], string.match(ARGV[2], '%d+'), '+')}
