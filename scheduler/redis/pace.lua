-- One step of a shared pace: takes positions back, reserves others, and writes what is left.
--
-- A position is TAT as it was before a unit. A call of several takes positions that lie within
-- the burst, or adjacent ones, and leaves (B-1)T before the last of them. Times are whole
-- microseconds, and frac/q of one more where a rate needs it, so that T is p/q exactly. All
-- numbers stay below 2^53, where a double holds every integer.
--
-- KEYS[1]  see records.lua; s is "now tat frac p q hold epoch", f what is free before TAT:
--          rows "us frac units", each T apart
-- ARGV[6]  p, q, burst, epoch, known, remaining (TAT as the process knows it), hold, even,
--          settle, quiet, returned ("number us frac units;"), charged ("number units;"),
--          cost, lead (how many of it have to be due), within (-1: whenever), rest, span
-- replies  now, what was done, epoch, hold, living, next, next_frac, tat, rows

local p, q, burst = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local cost, lead, within = tonumber(ARGV[18]), tonumber(ARGV[19]), tonumber(ARGV[20])
local rest, span = tonumber(ARGV[21]), tonumber(ARGV[22])

local function add(us, frac, n) -- n units later, or earlier
  local total = frac + n * p
  local left = total % q
  return us + (total - left) / q, left
end
local function less(us, frac, us2, frac2) return us < us2 or us == us2 and frac < frac2 end
local early, early_frac = add(0, 0, burst - 1)

local s_now, s_tat, s_frac, s_p, s_q, s_hold, epoch = string.match(field.s or '', '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+)$')
local tat, frac, hold, free = 0, 0, 0, {}
local begin = lane .. '-' .. text(number) .. '-' .. text(now)
if epoch then
  tat, frac, hold = tonumber(s_tat) - back, tonumber(s_frac), math.max(tonumber(s_hold) - back, 0)
  if tonumber(s_p) ~= p or tonumber(s_q) ~= q then
    -- A process has stated another rate. The fraction means nothing here, and no position fits.
    if frac > 0 then tat, frac = tat + 1, 0 end
    epoch = begin
  elseif back > 0 then
    epoch = begin
  elseif number == last then
    local e, h, l, n, n_frac, t, rows = string.match(reply, '^(%S+) (%d+) (%d+) (%d+) (%d+) (%d+) ?(.*)$')
    return {now, 'done', e, tonumber(h), tonumber(l), tonumber(n), tonumber(n_frac), tonumber(t), rows}
  else
    for us, f, n in string.gmatch(field.f or '', '(%d+) (%d+) (%d+);') do
      free[#free + 1] = {tonumber(us), tonumber(f), tonumber(n)}
    end
  end
else
  -- The key has expired, or was lost. The process may know what it said: if that has passed,
  -- nothing was lost.
  if foreign then redis.call('DEL', KEYS[1]) end
  epoch, tat = begin, math.min(tonumber(ARGV[10]), now + tonumber(ARGV[11]))
end

-- passed drops the positions of a row that lie before an instant.
local function passed(row, us, us_frac)
  if not less(row[1], row[2], us, us_frac) then return row end
  local n = math.max(math.floor(((us - row[1]) * q + us_frac - row[2]) / p) - 1, 0)
  local a, b = add(row[1], row[2], math.min(n, row[3]))
  while n < row[3] and less(a, b, us, us_frac) do
    n, a, b = n + 1, add(a, b, 1)
  end
  return {a, b, row[3] - n}
end

-- put makes a row free that was reserved in this epoch.
local function put(us, f, n)
  local a, b = add(us, f, n)
  if a == tat and b == frac then
    tat, frac = us, f -- none was reserved behind it: if it has passed, no T is lost
    return
  end
  local row = passed({us, f, n}, now, 0)
  if row[3] <= 0 or less(tat, frac, a, b) then return end
  local i = 1
  while free[i] and less(free[i][1], free[i][2], row[1], row[2]) do i = i + 1 end
  table.insert(free, i, row)
  for k = math.max(i - 1, 1), i do
    while free[k + 1] do
      a, b = add(free[k][1], free[k][2], free[k][3])
      if a ~= free[k + 1][1] or b ~= free[k + 1][2] then break end
      free[k][3] = free[k][3] + table.remove(free, k + 1)[3]
    end
  end
  if #free > 64 then table.remove(free, 1) end
end

-- not_before lets nothing leave before an instant, and no unit be saved up until then.
local function not_before(us)
  local a, b = add(us, 0, burst - 1)
  if less(tat, frac, a, b) then tat, frac = a, b end
  for i, row in ipairs(free) do free[i] = passed(row, a, b) end
end

if epoch == ARGV[9] then
  if last and lost > 0 and last >= lost and string.match(reply, '^%S+') == epoch then
    -- No answer came: what was reserved with it is not used.
    for us, f, n in string.gmatch(reply, '(%d+) (%d+) (%d+);') do put(tonumber(us), tonumber(f), tonumber(n)) end
  end
  for tag, us, f, n in string.gmatch(ARGV[16], '(%d+) (%d+) (%d+) (%d+);') do
    if new(tonumber(tag)) then put(tonumber(us), tonumber(f), tonumber(n)) end
  end
end
-- A process comes back from an outage. If none has asked for long, then all were cut off, and
-- all will be back only then.
local settle = tonumber(ARGV[14])
if settle > 0 and tat + tonumber(ARGV[15]) <= now then
  epoch = begin
  not_before(now + settle)
end
if tat < now then tat, frac = now, 0 end
if tonumber(ARGV[12]) > 0 then hold = math.max(hold, now + tonumber(ARGV[12])) end
if hold > now then not_before(hold) end
if ARGV[13] == '1' then not_before(now) end

local rows = {}
for _, row in ipairs(free) do
  row = passed(row, now, 0)
  if row[3] > 0 then rows[#rows + 1] = row end
end
free = rows
-- What is free at the end is TAT's again.
while #free > 0 do
  local row = free[#free]
  local a, b = add(row[1], row[2], row[3])
  if a ~= tat or b ~= frac then break end
  tat, frac = row[1], row[2]
  free[#free] = nil
end

local got = {}
-- take reserves n positions that follow each other in what is free, from the i-th one on.
local function take(i, n)
  local left = {}
  for _, row in ipairs(free) do
    local before = math.min(i, row[3])
    local here = math.min(n, row[3] - before)
    if before > 0 then left[#left + 1] = {row[1], row[2], before} end
    if here > 0 then
      local a, b = add(row[1], row[2], before)
      got[#got + 1] = {a, b, here}
      if before + here < row[3] then
        a, b = add(a, b, here)
        left[#left + 1] = {a, b, row[3] - before - here}
      end
    end
    i, n = i - before, n - here
  end
  free = left
  if n > 0 then
    got[#got + 1] = {tat, frac, n}
    tat, frac = add(tat, frac, n)
  end
end
-- position returns the i-th free one, from 0 on.
local function position(i)
  for _, row in ipairs(free) do
    if i < row[3] then return add(row[1], row[2], i) end
    i = i - row[3]
  end
  return add(tat, frac, i)
end

for tag, n in string.gmatch(ARGV[17], '(%d+) (%d+);') do
  if new(tonumber(tag)) or not last then take(0, tonumber(n)) end
end
got = {} -- they have left

-- due returns when the call may leave that takes positions from the i-th free one on, or nil if
-- they lie too far apart.
local function due(i)
  local first, first_frac = position(i)
  local us, f = position(i + cost - 1)
  local a, b = add(first, first_frac, math.max(burst, cost) - 1)
  if less(a, b, us, f) then return nil end
  us, f = position(i + lead - 1)
  return add(us, f, 1 - burst)
end

local next_us, next_frac
local ok, from = true, 0
if cost > 0 then
  local count = 0
  for _, row in ipairs(free) do count = count + row[3] end
  next_us, next_frac = due(count) -- behind all
  -- To begin within a row parts it from no row that its beginning is too far from.
  local at = 0
  from = count
  for _, row in ipairs(free) do
    local us, f = due(at)
    if us then
      next_us, next_frac, from = us, f, at
      break
    end
    at = at + row[3]
  end
  ok = within < 0 or next_us < now + within or next_us == now + within and next_frac == 0
  ok = ok and tat < now + 2251799813685248
  if ok then take(from, cost) end
end
if ok and rest > 0 then
  -- What waits behind it gets what can be used soon after.
  local us, f = position(0)
  if #got > 0 then us, f = add(got[#got][1], got[#got][2], got[#got][3] - 1) end
  local n = 0
  for _, row in ipairs(free) do
    if row[1] > us + span then break end
    n = n + math.min(row[3], math.floor((us + span - row[1]) * q / p) + 1)
  end
  if tat <= us + span then n = n + math.floor((us + span - tat) * q / p) + 1 end
  if cost == 0 then n = math.max(n, 1) end
  if n > 0 then take(0, math.min(rest, n)) end
end
if ok then
  next_us, next_frac = position(0)
  next_us, next_frac = add(next_us, next_frac, 1 - burst)
end
next_us = math.max(next_us, 0)

local function list(rows)
  local s = {}
  for _, row in ipairs(rows) do s[#s + 1] = text(row[1]) .. ' ' .. text(row[2]) .. ' ' .. text(row[3]) .. ';' end
  return table.concat(s)
end
local until_us = now
if #got > 0 then until_us = add(got[#got][1], got[#got][2], got[#got][3]) end
redis.call('HSET', KEYS[1], 'f', list(free))
local state = {text(now), text(tat), text(frac), text(p), text(q), text(hold), epoch}
local said = {epoch, text(hold), text(living), text(next_us), text(next_frac), text(tat), list(got)}
write(table.concat(state, ' '), table.concat(said, ' '), until_us, math.max(tat, hold))
return {now, 'done', epoch, hold, living, next_us, next_frac, tat, list(got)}
