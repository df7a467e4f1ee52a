-- One step of a quota per fixed window: counts units in the window of the server's clock.
--
-- Times are whole microseconds; all numbers stay below 2^53.
--
-- KEYS[1]  the state: when its window began, what is used in it, when it was written
-- KEYS[2]  what this very request was told before, if it was sent twice
-- ARGV     window, shift, limit, k, least, charge, back, back_of, id, ttl, expires
-- replies  now, granted (-1: nothing was done), end or when to come again, window

local window, limit = tonumber(ARGV[1]), tonumber(ARGV[3])
local k, least, charge = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])

if tonumber(ARGV[11]) > 0 and now > tonumber(ARGV[11]) then return {now, -1, 0, 0} end

local told = redis.call('GET', KEYS[2])
if told then
  local granted, at, start = string.match(told, '^(%d+) (%d+) (%-?%d+)$')
  return {now, tonumber(granted), tonumber(at), tonumber(start)}
end

local start, used = now - (now + tonumber(ARGV[2])) % window, 0
local over, changed = start + window, false
local state = redis.call('GET', KEYS[1])
if state then
  local s_start, s_used, s_now = string.match(state, '^(%-?%d+) (%d+) (%d+)$')
  if not s_start then return redis.error_reply('ERR key ' .. KEYS[1] .. ' holds no state of a quota') end
  -- A clock that was set back counts as no time passed: the window that had begun goes on
  -- for as long as it would have, and then to the end of the one that it ends in.
  local began, ahead = tonumber(s_start), tonumber(s_now) - now
  if ahead > 0 then began, changed = began - ahead, true end
  if began + window > start then
    if began + window > over then over = over + window end
    start, used = began, tonumber(s_used)
  else
    changed = false
  end
end
if tonumber(ARGV[8]) == start then used = math.max(used - tonumber(ARGV[7]), 0) end
used = used + charge

local granted = math.min(k, math.max(limit - used, 0))
if granted < least then granted = 0 end
used = used + granted
if changed or granted > 0 or charge > 0 or tonumber(ARGV[7]) > 0 then
  redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f', start, used, now), 'PX', string.format('%.0f', math.max(math.ceil((over - now) / 1000) + 1, 1)))
end
-- Always, as for a pace.
redis.call('SET', KEYS[2], string.format('%.0f %.0f %.0f', granted, over, start), 'PX', ARGV[10])
return {now, granted, over, start}
