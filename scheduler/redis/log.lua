-- One step of a quota in any window: a log of the units that left within the latest one.
--
-- Times are whole microseconds; all numbers stay below 2^53, and so are exact as scores.
--
-- KEYS[1]  a sorted set: for each step "id units" at its time, and "used", which is all
--          of their units, as -1 - used so that it comes before all times
-- KEYS[2]  what this very request was told before, if it was sent twice
-- ARGV     window, shift, limit, k, least, charge, back, back_of, id, ttl, expires
-- replies  now, granted (-1: nothing was done), when to come again or 0, 0

local window, limit = tonumber(ARGV[1]), tonumber(ARGV[3])
local k, least, charge = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local back = tonumber(ARGV[7])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local function text(n) return string.format('%.0f', n) end

if tonumber(ARGV[11]) > 0 and now > tonumber(ARGV[11]) then return {now, -1, 0, 0} end

local told = redis.call('GET', KEYS[2])
if told then
  local granted, at = string.match(told, '^(%d+) (%d+)$')
  return {now, tonumber(granted), tonumber(at), 0}
end

local used = 0
local total = redis.call('ZSCORE', KEYS[1], 'used')
if total then used = -1 - tonumber(total) end
local function units(member) return tonumber(string.match(member, ' (%d+)$')) end

-- A clock that was set back counts as no time passed: what left later than now has left
-- just now.
local later = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. text(now), '+inf')
for _, member in ipairs(later) do redis.call('ZADD', KEYS[1], text(now), member) end

-- What has left a window ago counts no more.
local old = redis.call('ZRANGEBYSCORE', KEYS[1], '0', text(now - window))
if #old > 0 then
  for _, member in ipairs(old) do used = used - units(member) end
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '0', text(now - window))
end

-- What comes back shortens the entry of its step.
if back > 0 then
  local at = redis.call('ZSCORE', KEYS[1], ARGV[8])
  if at then
    local rest = units(ARGV[8]) - back
    redis.call('ZREM', KEYS[1], ARGV[8])
    if rest > 0 then
      redis.call('ZADD', KEYS[1], text(tonumber(at)), string.gsub(ARGV[8], ' %d+$', '') .. ' ' .. text(rest))
    end
    used = used - back
  end
end

local granted = math.min(k, math.max(limit - used - charge, 0))
if granted < least then granted = 0 end
if granted + charge > 0 then
  redis.call('ZADD', KEYS[1], text(now), ARGV[9] .. ' ' .. text(granted + charge))
  used = used + granted + charge
end

-- If there is not enough, it is told when there will be.
local again = 0
if granted == 0 and k > 0 then
  local missing, from = used + math.max(least, 1) - limit, 0
  while missing > 0 and again >= 0 do
    local page = redis.call('ZRANGEBYSCORE', KEYS[1], '0', '+inf', 'WITHSCORES', 'LIMIT', text(from), '64')
    if #page == 0 then break end
    for i = 1, #page, 2 do
      missing, again = missing - units(page[i]), tonumber(page[i + 1]) + window
      if missing <= 0 then break end
    end
    from = from + 64
  end
end

if granted + charge + back > 0 or #old + #later > 0 then
  if used > 0 then
    redis.call('ZADD', KEYS[1], text(-1 - used), 'used')
    redis.call('PEXPIRE', KEYS[1], text(math.ceil(window / 1000) + 1))
  else
    redis.call('DEL', KEYS[1])
  end
end
-- Always, as for a pace.
redis.call('SET', KEYS[2], text(granted) .. ' ' .. text(again), 'PX', ARGV[10])
return {now, granted, again, 0}
