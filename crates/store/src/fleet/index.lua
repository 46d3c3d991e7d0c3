-- Who is alive, and which breakers somebody has trouble with.
-- KEYS[1]: breakers by when they were last named; KEYS[2]: replicas by when they were last here.
-- ARGV: me, how far back to look in ms (0: all there is), then the names with trouble.
local ALIVE, KEPT, MOST = 1000, 600000, 2000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local text = function(value) return string.format('%.0f', value) end
redis.call('ZADD', KEYS[2], text(now), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', text(now - KEPT))
redis.call('PEXPIRE', KEYS[2], KEPT)
for at = 3, #ARGV do
    redis.call('ZADD', KEYS[1], text(now), ARGV[at])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now - KEPT))
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -MOST - 1)
redis.call('PEXPIRE', KEYS[1], KEPT)
local back = tonumber(ARGV[2])
local since = back == 0 and '-inf' or text(now - back)
return { text(now), text(redis.call('ZCOUNT', KEYS[2], text(now - ALIVE), '+inf')),
    redis.call('ZRANGEBYSCORE', KEYS[1], since, '+inf') }
