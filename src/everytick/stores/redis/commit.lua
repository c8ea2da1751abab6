-- Write what one verb has changed, if nothing was written since the copy that the verb worked on.
-- KEYS: 1 the head, 2 the log, 3 the writer whose turn it is: one that lost too often asks for a turn, and the others
-- wait for as long as that key lasts.
-- Other keys begin with ARGV[6], which has the hash tag of these: they lie in their slot.
-- ARGV: 1 the epoch of the store, 2 the id of the last entry that the copy has,
--       3 the entry: a line for each command that changes a row, its words between tabs, the second one a path,
--       4 how many entries the log keeps, 5 the bell's channel, or an empty text, 6 the prefix of all keys,
--       7 the id of the entry: the number after the last one, and what is random, so that no other entry ever has it,
--       8 the writer's name, 9 for how many milliseconds it wants the next turn, or 0,
--       10 lines like those of the entry, for the sets by which rows are found; the log does not keep them.
-- The answer begins with 1 if it was written, 0 if not, 2 if it is another writer's turn; then come the id of the last
-- entry, the server's time in seconds and microseconds, and the entries from the number of the copy's last one on. If
-- that one is not the first of them, the log no longer has it, or never had: a server that lost its last second gives
-- its number to another entry.
local function split(text, mark)
  -- A plain search: patterns look at each character, which takes longer than all else here.
  local found, at, upto = {}, 1, string.find(text, mark, 1, true)
  while upto do
    found[#found + 1] = string.sub(text, at, upto - 1)
    at = upto + 1
    upto = string.find(text, mark, at, true)
  end
  found[#found + 1] = string.sub(text, at)
  return found
end
local function carry_out(lines)
  if lines == '' then
    return
  end
  for _, line in ipairs(split(lines, '\n')) do
    local words = split(line, '\t')
    words[2] = ARGV[6] .. words[2]
    redis.call(unpack(words))
  end
end
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
  return {code, last, now[1], now[2], redis.call('XRANGE', KEYS[2], string.match(ARGV[2], '%d+'), '+')}
end
carry_out(ARGV[3])
carry_out(ARGV[10])
if turn then
  redis.call('DEL', KEYS[3])
end
redis.call('HSET', KEYS[1], 'last', ARGV[7])
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[4], ARGV[7], 'changes', ARGV[3])
if ARGV[5] ~= '' then
  redis.call('PUBLISH', ARGV[5], ARGV[7])
end
return {1, ARGV[7], now[1], now[2], {}}
