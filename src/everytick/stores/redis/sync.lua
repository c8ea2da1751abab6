-- Return the server's time and what was written since the copy that asks.
-- KEYS: 1 the head, 2 the log, 3 the writer whose turn it is. ARGV: 1 the epoch of the store, 2 the id of the last entry
-- that the copy has, 3 the name of who asks. The answer is that of commit.lua; it never begins with 1.
local epoch, last = unpack(redis.call('HMGET', KEYS[1], 'epoch', 'last'))
local now = redis.call('TIME')
if epoch ~= ARGV[1] then
  return {-1, epoch or '', now[1], now[2], {}}
end
local turn = redis.call('GET', KEYS[3])
local code = (turn and turn ~= ARGV[3]) and 2 or 0
if last == ARGV[2] then
  return {code, last, now[1], now[2], {}}
end
return {code, last, now[1], now[2], redis.call('XRANGE', KEYS[2], string.match(ARGV[2], '%d+'), '+')}
