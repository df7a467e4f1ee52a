-- One step of a quota per fixed window: counts units in the window of the server's clock.
--
-- Times are whole microseconds; all numbers stay below 2^53.
--
-- KEYS[1]  see records.lua; s is "now start used epoch"
-- ARGV[6]  window, shift, limit, units, least, returned ("number units of;"),
--          charged ("number units;")
-- replies  now, what was done, living, granted, end, of (where they were taken)

if foreign then return redis.error_reply('ERR key ' .. KEYS[1] .. ' holds no state of a quota') end
local window, limit = tonumber(ARGV[6]), tonumber(ARGV[8])
if number == last then
  local l, granted, over, of = string.match(reply, '^(%d+) (%d+) (%d+) (%S+)$')
  return {now, 'done', tonumber(l), tonumber(granted), tonumber(over), of}
end

local start, used, epoch = now - (now + tonumber(ARGV[7])) % window, 0, lane .. '-' .. text(number)
local over = start + window
local s_now, s_start, s_used, s_epoch = string.match(field.s or '', '^(%d+) (%-?%d+) (%d+) (%S+)$')
if s_now then
  -- A clock that was set back counts as no time passed: the window that had begun goes on
  -- for as long as it would have, and then to the end of the one that it ends in.
  local began = tonumber(s_start) - back
  if began + window > start then
    if began + window > over then over = over + window end
    start, used, epoch = began, tonumber(s_used), s_epoch
  end
end
local of = epoch .. '/' .. text(start)
local function less(n) used = math.max(used - n, 0) end
if last and lost > 0 and last >= lost then
  -- No answer came: what was granted with it is not used.
  local granted, where = string.match(reply, '^%d+ (%d+) %d+ (%S+)$')
  if where == of then less(tonumber(granted)) end
end
for tag, n, where in string.gmatch(ARGV[11], '(%d+) (%d+) (%S-);') do
  if where == of and new(tonumber(tag)) then less(tonumber(n)) end
end
for tag, n in string.gmatch(ARGV[12], '(%d+) (%d+);') do
  if new(tonumber(tag)) or not last then used = used + tonumber(n) end
end

local granted = math.min(tonumber(ARGV[9]), math.max(limit - used, 0))
if granted < tonumber(ARGV[10]) then granted = 0 end
used = used + granted
write(text(now) .. ' ' .. text(start) .. ' ' .. text(used) .. ' ' .. epoch,
  text(living) .. ' ' .. text(granted) .. ' ' .. text(over) .. ' ' .. of, now, over)
return {now, 'done', living, granted, over, of}
