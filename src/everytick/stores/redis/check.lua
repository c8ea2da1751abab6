-- Write something if the store is there, to learn whether the server takes writes. It is gone after a second.
-- KEYS: 1 the head, 2 what is written. ARGV: 1 the epoch of the store. The answer is the epoch that the server has.
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch == ARGV[1] then
  redis.call('SET', KEYS[2], '1', 'EX', 1)
end
return epoch or ''
