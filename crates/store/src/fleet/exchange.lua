-- One replica's turn with one breaker. What it does is told, and modelled, in server.rs.
-- KEYS[1]: the breaker. ARGV: me, sent, counts, offer (version, state, until, body, token, command), ask (verb, token, length, good).
local FRESH, QUIET, COUNTED, KEPT = 1000, 1000, 1000, 600000
local key, me = KEYS[1], ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local number = function(text) return tonumber(text) or 0 end
local text = function(value) return string.format('%.0f', value) end

local STATES = { open = true, closed = true, forced_open = true, forced_closed = true }

-- What is not ours, or damaged, is begun anew: replicas that know better tell it again.
local function is_sound(held)
    if number(held.version) == 0 then return true end
    local is_json, body = pcall(cjson.decode, held.body)
    return STATES[held.state] and tonumber(held.ends) and is_json and type(body) == 'table' and type(body.by) == 'string'
        and type(body.since) == 'number' and type(body.episodes) == 'number' and type(body.observed) == 'number'
        and type(body.threshold) == 'number'
end

local held, counts = {}, {}
local is_ours = redis.call('TYPE', key).ok == 'hash'
local all = is_ours and redis.call('HGETALL', key) or {}
for at = 1, #all, 2 do
    local who = string.match(all[at], '^c:(.*)$')
    if who then counts[who] = all[at + 1] else held[all[at]] = all[at + 1] end
end
if not is_ours or not is_sound(held) then
    redis.call('DEL', key)
    held = {}
end
local version, token, lease_ends = number(held.version), number(held.token), number(held.lease_ends)
local good, quiet_until, holder = number(held.good), number(held.quiet_until), held.holder
local state, ends, body = held.state, number(held.ends), held.body
local taken = 0

if math.abs(now - number(ARGV[2])) <= FRESH then
    counts[me] = text(now) .. ' ' .. ARGV[3]
    redis.call('HSET', key, 'c:' .. me, counts[me])

    local offered, fence = number(ARGV[4]), number(ARGV[8])
    local waits = lease_ends > now and not (holder == me and fence == token) and ARGV[9] ~= '1'
    if offered > version and not waits and not (fence > 0 and fence < token) then
        if version == 0 and ARGV[9] == '1' then quiet_until = now + QUIET end
        taken, version, state, ends, body = 1, offered, ARGV[5], number(ARGV[6]), ARGV[7]
        if fence > 0 then token, holder = fence, me end
        lease_ends, good = 0, 0
    end

    local verb, asked, length, brought = ARGV[10], number(ARGV[11]), number(ARGV[12]), number(ARGV[13])
    if verb == 'want' then
        if lease_ends > now and holder == me then
            lease_ends = now + length
        elseif state == 'open' and ends <= now and lease_ends <= now and quiet_until <= now then
            token, holder, lease_ends = math.max(token, asked) + 1, me, now + length
        end
    elseif verb == 'keep' then
        if state == 'open' and (asked > token or asked == token and holder == me) then
            token, holder, lease_ends, good = asked, me, now + length, math.max(good, brought)
        end
    elseif verb == 'back' then
        if asked == token and holder == me then
            lease_ends, good = 0, math.max(good, brought)
        end
    end

    if taken == 1 or verb ~= '' then
        redis.call('HSET', key, 'version', text(version), 'state', state or '', 'ends', text(ends), 'body', body or '',
            'token', text(token), 'holder', holder or '', 'lease_ends', text(lease_ends), 'good', text(good),
            'quiet_until', text(quiet_until))
    end
    redis.call('PEXPIRE', key, math.max(KEPT, ends - now + KEPT))
end

local reply = { text(now), text(taken), text(version), state or '', text(ends), body or '', text(token),
    lease_ends > now and holder or '', text(lease_ends), text(good) }
for who, told in pairs(counts) do
    local at, what = string.match(told, '^(%d+) (.*)$')
    at = at or '0'
    if number(at) + COUNTED > now then
        local last = #reply
        reply[last + 1], reply[last + 2], reply[last + 3] = who, at, what
    elseif number(at) + KEPT <= now then
        redis.call('HDEL', key, 'c:' .. who)
    end
end
return reply
