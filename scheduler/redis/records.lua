-- The head of each script whose state is a hash. It tells what time it is and what the lane was
-- told last: a lane is who sends requests, one after the other, with rising numbers. A request
-- that arrives twice is answered as it was the first time, and one that comes after a later one,
-- or too late, does nothing.
--
-- KEYS[1]  a hash: "s" is the state, "p:<process>.<lane>" is "number until reply"
-- ARGV     expires, lane, number, lost (of the first request that had no answer, or 0), keep

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local expires, lane, number, lost, keep = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
-- %.0f, as tostring would keep 14 digits.
local function text(n) return string.format('%.0f', n) end

if expires > 0 and now > expires then return {now, 'late'} end

local field, foreign = {}, redis.call('TYPE', KEYS[1]).ok
foreign = foreign ~= 'hash' and foreign ~= 'none'
if not foreign then
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do field[all[i]] = all[i + 1] end
end

-- When the clock was set back, no time has passed. The state tells when it was written.
local back = 0
if field.s then back = math.max(tonumber(string.match(field.s, '^(%d+) ') or 0) - now, 0) end

local last, reply, gone = nil, nil, {}
local processes, living = {}, 1
processes[string.match(lane, '^[^.]+')] = true
for name, told in pairs(field) do
  local process = string.match(name, '^p:([^.]+)%.')
  if process then
    local n, till, said = string.match(told, '^(%d+) (%d+) (.*)$')
    if name == 'p:' .. lane then last, reply = tonumber(n), said end
    if tonumber(till) - back <= now then
      gone[#gone + 1] = name
    else
      if back > 0 then redis.call('HSET', KEYS[1], name, n .. ' ' .. text(tonumber(till) - back) .. ' ' .. said) end
      if not processes[process] then processes[process], living = true, living + 1 end
    end
  end
end
if last and number < last then return {now, 'late'} end
for _, name in ipairs(gone) do redis.call('HDEL', KEYS[1], name) end

-- new reports whether what was first told in a request is told for the first time. If what the
-- lane was told is not known any more, that is never so for what may have been told before.
local function new(tag) return tag == number or last ~= nil and tag > last end

-- write keeps the state until some time at least, and the reply until the lane matters no more.
local function write(state, said, till, over)
  till = math.max(till, now) + keep
  redis.call('HSET', KEYS[1], 's', state, 'p:' .. lane, text(number) .. ' ' .. text(till) .. ' ' .. said)
  redis.call('PEXPIRE', KEYS[1], text(math.ceil((math.max(till, over) - now) / 1000) + 1))
end
