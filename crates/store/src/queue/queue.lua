-- The queue that a fleet shares. What each verb does is told, and asked of every queue alike, in queue.rs.
-- KEYS: calls (hash, JSON by id), requests, results (hashes by id), order (sorted set of those that wait), ends (sorted set of
-- all by when they end), names (hash, id by digest), sums (hash).
-- ARGV: the time, empty for the server's own; max_calls, max_bytes, expires, ttl, lease, lane_places; what a row costs, sends
-- until others go first; the verb; what it needs.
local calls, requests, results, order, ends, names, sums = unpack(KEYS)
local MAX_CALLS, MAX_BYTES, EXPIRES, TTL, LEASE, PLACES, ROW, PATIENCE =
    tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]),
    tonumber(ARGV[8]), tonumber(ARGV[9])
local verb = ARGV[10]
local time = redis.call('TIME')
local now = tonumber(ARGV[1]) or time[1] * 1000 + math.floor(time[2] / 1000)
local text = function(number) return string.format('%.0f', number) end

local function read(id)
    local found = redis.call('HGET', calls, id)
    return found and cjson.decode(found)
end

local function write(id, call)
    redis.call('HSET', calls, id, cjson.encode(call))
end

-- How many bytes there are more of, or fewer.
local function count(bytes)
    return redis.call('HINCRBY', sums, 'bytes', text(bytes))
end

local function forget(id, call)
    for _, key in ipairs({ calls, requests, results }) do redis.call('HDEL', key, id) end
    for _, key in ipairs({ order, ends }) do redis.call('ZREM', key, id) end
    if call.name ~= '' then redis.call('HDEL', names, call.name) end
    count(-call.size)
end

-- A call does not wait any more: its request makes room for what came of it.
local function settle(id, call, state, result)
    redis.call('HDEL', requests, id)
    redis.call('ZREM', order, id)
    if result ~= '' then redis.call('HSET', results, id, result) end
    local size = #result + ROW
    count(size - call.size)
    call.state, call.size, call.leased = state, size, 0
    redis.call('ZADD', ends, text(now + TTL), id)
    write(id, call)
end

local function sweep()
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', text(now))) do
        local call = read(id)
        if not call then
            redis.call('ZREM', ends, id)
        elseif call.state ~= 'waiting' then
            forget(id, call)
        elseif call.leased <= now then
            -- Who asks again means a new call.
            if call.name ~= '' then redis.call('HDEL', names, call.name) end
            call.name = ''
            settle(id, call, 'expired', '')
            redis.call('HINCRBY', sums, 'expired', 1)
        end
    end
end

-- Every call that waits, in order, with its id.
local function waiting()
    local found = {}
    for _, id in ipairs(redis.call('ZRANGE', order, 0, -1)) do
        local call = read(id)
        if call then found[#found + 1] = { id, call } end
    end
    return found
end

local function holds(call, token)
    return call and call.state == 'waiting' and call.token == tonumber(token) and call.leased > 0
end

local verbs = {}

function verbs.submit(id, lane, tenant, name, request)
    sweep()
    -- Its first answer was lost.
    if read(id) then return { 'kept' } end
    local known = name ~= '' and redis.call('HGET', names, name)
    if known then return { 'known', known } end
    local size = #request + ROW
    local bytes = tonumber(redis.call('HGET', sums, 'bytes') or 0)
    if redis.call('ZCARD', order) >= MAX_CALLS or bytes + size > MAX_BYTES then return { 'full' } end
    redis.call('HSET', requests, id, request)
    if name ~= '' then redis.call('HSET', names, name, id) end
    redis.call('ZADD', order, redis.call('HINCRBY', sums, 'seq', 1), id)
    redis.call('ZADD', ends, text(now + EXPIRES), id)
    count(size)
    write(id, { lane = lane, tenant = tenant, name = name, state = 'waiting', size = size, sends = 0, strikes = 0,
        token = 0, leased = 0 })
    return { 'kept' }
end

function verbs.look()
    sweep()
    local expired, lanes, by_lane = redis.call('HGET', sums, 'expired') or '0', {}, {}
    redis.call('HDEL', sums, 'expired')
    local all = waiting()
    for _, found in ipairs(all) do
        local call = found[2]
        local lane = by_lane[call.lane]
        if not lane then
            lane = { under_way = 0, free = 0 }
            by_lane[call.lane], lanes[#lanes + 1] = lane, call.lane
        end
        local is_leased = call.leased > now
        lane.under_way = lane.under_way + (is_leased and 1 or 0)
        lane.free = lane.free + (is_leased and 0 or 1)
    end
    local ready = {}
    for _, name in ipairs(lanes) do
        local lane = by_lane[name]
        if lane.free > 0 and lane.under_way < PLACES then ready[#ready + 1] = name end
    end
    return { text(#all), redis.call('HGET', sums, 'bytes') or '0', expired, ready }
end

function verbs.take(lane)
    local under_way, best, best_id = 0, nil, nil
    local turn = function(call) return math.floor(call.sends / PATIENCE) end
    for _, found in ipairs(waiting()) do
        local id, call = found[1], found[2]
        if call.lane == lane then
            if call.leased > now then
                under_way = under_way + 1
            elseif tonumber(redis.call('ZSCORE', ends, id)) > now and (not best or turn(call) < turn(best)) then
                best, best_id = call, id
            end
        end
    end
    if under_way >= PLACES or not best then return {} end
    best.sends, best.token, best.leased = best.sends + 1, best.token + 1, now + LEASE
    write(best_id, best)
    return { best_id, text(best.token), redis.call('HGET', requests, best_id) or '', text(best.sends),
        text(best.strikes) }
end

function verbs.keep(id, token)
    local call = read(id)
    if not holds(call, token) then return { '0' } end
    call.leased = now + LEASE
    write(id, call)
    return { '1' }
end

function verbs.give_back(id, token, unsent, strike)
    local call = read(id)
    if not holds(call, token) then return { '0' } end
    call.leased, call.sends, call.strikes = 0, call.sends - tonumber(unsent), call.strikes + tonumber(strike)
    write(id, call)
    return { '1' }
end

function verbs.finish(id, result)
    local call = read(id)
    if not call or call.state ~= 'waiting' then return { '0' } end
    settle(id, call, 'done', result)
    return { '1' }
end

function verbs.find(id, tenant)
    sweep()
    local call = read(id)
    if not call or call.tenant ~= tenant then return {} end
    local state, ahead = call.state, 0
    if state == 'waiting' and call.leased > now then
        state = 'sending'
    elseif state == 'waiting' then
        for _, found in ipairs(waiting()) do
            if found[1] == id then break end
            if found[2].lane == call.lane then ahead = ahead + 1 end
        end
    end
    return { state, text(call.sends), redis.call('ZSCORE', ends, id), text(ahead), redis.call('HGET', results, id) or '' }
end

function verbs.remove(id, tenant)
    local call = read(id)
    if not call or call.tenant ~= tenant then return { '0' } end
    forget(id, call)
    return { '1' }
end

-- Asked here, for in a cluster it is about the node that has the queue.
function verbs.is_durable()
    return { string.find(redis.call('INFO', 'persistence'), 'aof_enabled:1', 1, true) and '1' or '0' }
end

local told = verbs[verb](unpack(ARGV, 11))
-- Nothing stays longer than the last call and its result.
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, text(EXPIRES + TTL + LEASE + 3600000)) end
return told
