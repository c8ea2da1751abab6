-- Make an empty store, unless there is one. KEYS: 1 the head. ARGV: 1 a new epoch, 2 the format of the rows.
-- The answer is the epoch, the format and the number of the last entry.
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'format', ARGV[2], 'number', '0')
end
return redis.call('HMGET', KEYS[1], 'epoch', 'format', 'number')
