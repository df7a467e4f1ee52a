-- One step of a shared schedule: reads TAT, reserves up to k units behind it, writes it.
--
-- Times are whole microseconds, and frac/q of one more where a rate needs it, so that T
-- is p/q exactly. All numbers stay below 2^53, where a double holds every integer. They
-- are written with %.0f: tostring would keep 14 digits.
--
-- KEYS[1]  the state: tat, frac, q, when it was written, until when all are held
-- KEYS[2]  what this very request was told before, if it was sent twice
-- ARGV     p, q, early, early_frac, k, within, tail, tail_frac, back, back_frac,
--          known, settle, quiet, hold, even, ttl, burst, known_now, expires
-- replies  now, tat, frac, granted, hold; with granted -1 nothing was done

local p, q = tonumber(ARGV[1]), tonumber(ARGV[2])
local early, early_frac = tonumber(ARGV[3]), tonumber(ARGV[4])
local k, within = tonumber(ARGV[5]), tonumber(ARGV[6])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])

-- What lay in the buffers of a server that hung is of no use by now.
if tonumber(ARGV[19]) > 0 and now > tonumber(ARGV[19]) then return {now, 0, 0, -1, 0} end

-- A client that lost the reply asks again. It gets the same run, not another one.
local told = redis.call('GET', KEYS[2])
if told then
  local tat, frac, granted, hold = string.match(told, '^(%d+) (%d+) (%d+) (%d+)$')
  return {now, tonumber(tat), tonumber(frac), tonumber(granted), tonumber(hold)}
end

-- add returns an instant that lies n units after another.
local function add(us, frac, n)
  local total = frac + n * p
  local rest = total % q
  return us + (total - rest) / q, rest
end

local tat, frac, hold, changed = 0, 0, 0, false
-- What is no state, as something else has written the key, counts as none.
local state = redis.pcall('GET', KEYS[1])
local s_tat, s_frac, s_q, s_now, s_hold
if type(state) == 'string' then
  s_tat, s_frac, s_q, s_now, s_hold = string.match(state, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
end
if s_tat then
  tat, frac, hold = tonumber(s_tat), tonumber(s_frac), tonumber(s_hold)
  if tonumber(s_q) ~= q then
    -- A process has stated another rate. The fraction means nothing here.
    if frac > 0 then tat = tat + 1 end
    frac = 0
  end
  -- A clock that was set back counts as no time passed: a call that waits is not locked
  -- out for as long as the step. That is written down whatever becomes of this call, or
  -- time would not pass for the next one either.
  local ahead = tonumber(s_now) - now
  if ahead > 0 then
    tat, hold, changed = tat - ahead, math.max(hold - ahead, 0), true
  end
else
  -- The key has expired, or was lost. The process that asks may know what it said, and when: if
  -- that TAT has passed, nothing was lost.
  local known, ahead = tonumber(ARGV[11]), tonumber(ARGV[18]) - now
  if ahead > 0 then known = known - ahead end
  if known > now then tat = known end
end

-- Unused units come back if no other process has reserved any behind them.
if ARGV[7] ~= '' and tat == tonumber(ARGV[7]) and frac == tonumber(ARGV[8]) then
  tat, frac, changed = tonumber(ARGV[9]), tonumber(ARGV[10]), true
end

-- settle: a process comes back from an outage. If none has asked for long, then all
-- were cut off, and all will be back only then.
local settle = tonumber(ARGV[12])
if settle > 0 and tat + tonumber(ARGV[13]) <= now then
  tat, frac, changed = now + settle + early, early_frac, true
end

if tat < now then tat, frac = now, 0 end
local function not_before(us)
  us = us + early
  if tat < us or tat == us and frac < early_frac then
    tat, frac, changed = us, early_frac, true
  end
end
if tonumber(ARGV[14]) > 0 then
  hold = math.max(hold, now + tonumber(ARGV[14]))
  not_before(hold)
end
if ARGV[15] == '1' then not_before(now) end

local granted = k
if within >= 0 and k > 0 then
  -- All of them within that time, or none.
  local lead = math.max(tonumber(ARGV[17]) - k, 0)
  local due, due_frac = add(tat, frac, 0)
  local e, e_frac = add(0, 0, lead)
  due = due - e - now - within
  if due > 0 or due == 0 and due_frac > e_frac then granted = 0 end
end
if tat > now + 2251799813685248 then granted = 0 end

local after, after_frac = add(tat, frac, granted)
if granted > 0 or changed then
  -- Written and dated at once. A PX of 0 is an error, and none would be for ever.
  local ttl = math.max(math.ceil((after - now) / 1000) + 1, 1)
  redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f %.0f %.0f', after, after_frac, q, now, hold), 'PX', string.format('%.0f', ttl))
end
-- Always: whatever is sent twice is answered as it was the first time, and a server that
-- cannot be written to is found to be away even if nothing is to be reserved.
redis.call('SET', KEYS[2], string.format('%.0f %.0f %.0f %.0f', tat, frac, granted, hold), 'PX', ARGV[16])
return {now, tat, frac, granted, hold}
