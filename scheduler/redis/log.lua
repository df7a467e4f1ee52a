-- One step of a quota in any window: a log of the units that left within the latest one.
--
-- Times are whole microseconds; all numbers stay below 2^53, and so are exact as scores.
--
-- KEYS[1]  a sorted set: for each step "lane number units charged" at its time, and "used",
--          which is all of their units, as -1 - used so that it comes before all times
-- ARGV     expires, lane, number, lost, keep (see records.lua), window, limit, units, least,
--          returned ("member/";), charged ("number units;")
-- replies  now, what was done, living, granted, when to come again or 0, of (its member)

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local expires, lane, number, lost, keep = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local window, limit = tonumber(ARGV[6]), tonumber(ARGV[7])
local k, least = tonumber(ARGV[8]), tonumber(ARGV[9])
local key = KEYS[1]
local function text(n) return string.format('%.0f', n) end
if expires > 0 and now > expires then return {now, 'late'} end

local used = 0
local total = redis.call('ZSCORE', key, 'used')
if total then used = -1 - tonumber(total) end
local function parse(member)
  local l, n, units, charged = string.match(member, '^(%S+) (%d+) (%d+) (%d+)$')
  return l, tonumber(n), tonumber(units), tonumber(charged)
end

-- A clock that was set back counts as no time passed: what left later than now has left
-- just now.
for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. text(now), '+inf')) do
  redis.call('ZADD', key, text(now), member)
end
-- What has left a window ago counts no more.
local old = redis.call('ZRANGEBYSCORE', key, '0', text(now - window))
for _, member in ipairs(old) do
  local _, _, units, charged = parse(member)
  used = used - units - charged
end
if #old > 0 then redis.call('ZREMRANGEBYSCORE', key, '0', text(now - window)) end

-- shorten takes units of an entry back, if it is still there.
local function shorten(member, n)
  local at = redis.call('ZSCORE', key, member)
  if not at then return end
  local l, number, units, charged = parse(member)
  redis.call('ZREM', key, member)
  if units + charged > n then
    redis.call('ZADD', key, at, l .. ' ' .. text(number) .. ' ' .. text(units - n) .. ' ' .. text(charged))
  end
  used = used - n
end
-- What the lane did lately: a request that arrives twice is answered as it was the first time, and
-- of one that had no answer nothing is used.
local seen, processes, living = {}, {[string.match(lane, '^[^.]+')] = true}, 1
for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, text(now - keep), '+inf')) do
  local l, n, units = parse(member)
  local process = string.match(l, '^[^.]+')
  if not processes[process] then processes[process], living = true, living + 1 end
  if l == lane and n == number then return {now, 'done', living, units, 0, member} end
  if l == lane and n > number then return {now, 'late'} end
  if l == lane then
    seen[n] = true
    if lost > 0 and n >= lost then shorten(member, units) end
  end
end
for member, n in string.gmatch(ARGV[10], '(%S+ %d+ %d+ %d+)/(%d+);') do shorten(member, tonumber(n)) end
local charge = 0
for tag, n in string.gmatch(ARGV[11], '(%d+) (%d+);') do
  if not seen[tonumber(tag)] then charge = charge + tonumber(n) end
end

local granted = math.min(k, math.max(limit - used - charge, 0))
if granted < least then granted = 0 end
local member = lane .. ' ' .. text(number) .. ' ' .. text(granted) .. ' ' .. text(charge)
if granted + charge > 0 then
  redis.call('ZADD', key, text(now), member)
  used = used + granted + charge
end

-- If there is not enough, it is told when there will be.
local again = 0
if granted == 0 and k > 0 then
  local missing, from = used + math.max(least, 1) - limit, 0
  while missing > 0 and again >= 0 do
    local page = redis.call('ZRANGEBYSCORE', key, '0', '+inf', 'WITHSCORES', 'LIMIT', text(from), '64')
    if #page == 0 then break end
    for i = 1, #page, 2 do
      local _, _, units, charged = parse(page[i])
      missing, again = missing - units - charged, tonumber(page[i + 1]) + window
      if missing <= 0 then break end
    end
    from = from + 64
  end
end

-- Always: a server that cannot be written to is found to be away even if nothing is counted.
if used > 0 then
  redis.call('ZADD', key, text(-1 - used), 'used')
  redis.call('PEXPIRE', key, text(math.ceil(window / 1000) + 1))
else
  redis.call('DEL', key)
end
return {now, 'done', living, granted, again, member}
