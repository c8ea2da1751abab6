-- Make an empty store, unless there is one. KEYS: 1 the head, 2 and others what no store has without a head.
-- ARGV: 1 a new epoch, or nothing: then none is made, 2 the format of the rows.
-- The answer is the epoch, the format and the id of the last entry.
if ARGV[1] ~= '' and redis.call('EXISTS', unpack(KEYS)) == 0 then
  redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'format', ARGV[2], 'last', '0-0')
end
return redis.call('HMGET', KEYS[1], 'epoch', 'format', 'last')
