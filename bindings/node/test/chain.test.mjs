// Chains: fallback, waits, budget, cache.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Breaker, Cache, Chain, CircuitOpenError, Clock, SettingsError, StreamError } from "fuseline";

const SMALL = { trip: [{ rule: "consecutive", failures: 2 }], cooldown: "10s", jitter: 0 };
const fresh = (options) => new Breaker("openai", { ...SMALL, ...options });
const down = Object.assign(new Error("down"), { status: 503 });
const never = () => new Promise(() => {});

test("a chain goes on to the next, skips the open, and tells the shortest wait", async () => {
  const [first, second] = [fresh(), new Breaker("groq", { ...SMALL, cooldown: "5s" })];
  const chain = new Chain([[first, "large"], [second, "small"]]);
  let down = new Set(["large"]);
  const asked = [];
  const ask = async (model) => {
    asked.push(model);
    if (down.has(model)) throw Object.assign(new Error(`${model} is down`), { status: 503 });
    return `an answer of ${model}`;
  };
  for (let call = 0; call < 3; call += 1) assert.equal(await chain.execute(ask), "an answer of small");
  assert.deepEqual(asked, ["large", "small", "large", "small", "small"]);
  down = new Set(["large", "small"]);
  await assert.rejects(chain.execute(ask), { message: "small is down" });
  await assert.rejects(chain.execute(ask), { message: "small is down" });
  assert.equal(chain.isHealthy(), false);
  await assert.rejects(chain.execute(ask), (error) => error instanceof CircuitOpenError && error.breaker === "groq");
});

test("a chain hands on what says that the request is at fault, and goes on from an answer that is a failure", async () => {
  const chain = new Chain([["chain's first", 1], [fresh({ check: () => "empty_response" }), 2], [fresh(), 3]]);
  const wrong = Object.assign(new Error("no such model"), { status: 404 });
  let asked = 0;
  await assert.rejects(chain.execute(async () => { asked += 1; throw wrong; }), wrong);
  assert.equal(asked, 1);
  const busy = Object.assign(new Error("busy"), { status: 529 });
  assert.equal(await chain.execute(async (target) => { if (target === 1) throw busy; return target; }), 3);
});

test("a chain waits for the first that may be back, and no longer than it is told", async () => {
  const breaker = fresh({ cooldown: 30 });
  breaker.acquire().failure("timeout");
  breaker.acquire().failure("timeout");
  const chain = new Chain([[breaker, 1]], { maxWait: "2s" });
  assert.equal(await chain.execute(async (target) => target), 1);
  breaker.forceOpen("10s");
  await assert.rejects(chain.execute(async () => 1), { reason: "forced" });
  assert.throws(() => new Chain([]), /targets is empty/);
});

test("a chain's wait ends with its signal", async () => {
  const breaker = fresh();
  breaker.forceOpen("1s");
  const stop = new AbortController();
  const call = new Chain([[breaker, 1]], { maxWait: "2s" }).execute(async () => 1, stop);
  const began = performance.now();
  stop.abort();
  await assert.rejects(call, { name: "AbortError" });
  assert.ok(performance.now() - began < 500, "at once");
});

test("a budget ends the call: the signal is aborted, no further target is asked, and who had next to no time has not failed", async () => {
  const clock = Clock.manual();
  const [first, second] = [fresh({ clock }), fresh({ clock })];
  const chain = new Chain([[first, 1], [second, 2]], { budget: 20 });
  const asked = [];
  const silent = (target, signal) => {
    asked.push(target, signal);
    return never();
  };
  await assert.rejects(chain.execute(silent), { name: "TimeoutError", message: "no answer within the budget of 20 ms" });
  assert.deepEqual([asked[0], asked.length], [1, 2]);
  assert.equal(asked[1].reason.name, "TimeoutError");
  assert.deepEqual([first.getStatus().run, second.getStatus().run, first.isHealthy()], [0, 0, true]);
  const slow = (_, signal) => {
    clock.advance(20_000);
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  await assert.rejects(chain.execute(slow), { name: "TimeoutError" });
  assert.deepEqual(first.getStatus().kinds, { timeout: 1 }, "it was waited for in vain");
});

test("a budget is one for all targets, and leaves a stream that has begun alone", async () => {
  const chain = new Chain([[fresh(), 1], [fresh(), 2], [fresh(), 3]], { budget: 60 });
  let asked = 0;
  const failing = async () => {
    asked += 1;
    await new Promise((resolve) => setTimeout(resolve, 40));
    throw down;
  };
  await assert.rejects(chain.execute(failing), { name: "TimeoutError" });
  assert.equal(asked, 2);
  async function* words(_, signal) {
    for (const word of ["a", "b"]) {
      await new Promise((resolve) => setTimeout(resolve, 40));
      signal.throwIfAborted();
      yield word;
    }
  }
  const heard = [];
  for await (const word of await chain.execute(words)) heard.push(word);
  assert.deepEqual(heard, ["a", "b"]);
  const stop = new AbortController();
  const stream = await chain.execute(words, stop);
  assert.equal((await stream.next()).value, "a");
  stop.abort();
  await assert.rejects(stream.next(), { name: "AbortError" }, "its caller may still leave it");
});

test("who aborts a call with a budget says nothing, and the wait for a target is no longer than the budget", async () => {
  const breaker = fresh();
  const chain = new Chain([[breaker, 1]], { budget: "5s", maxWait: "1m" });
  const stop = new AbortController();
  const call = chain.execute((_, signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))), stop);
  stop.abort();
  await assert.rejects(call, { name: "AbortError" });
  assert.equal(breaker.getStatus().run, 0);
  breaker.forceOpen("10s");
  await assert.rejects(chain.execute(async () => 1), { reason: "forced" });
});

test("the last good answer is given to the same request, and to no other", async () => {
  const clock = Clock.manual();
  const chain = new Chain([[fresh({ clock }), 1], [fresh({ clock }), 2]], { cache: new Cache({ ttl: "1m", clock }), budget: 20 });
  const key = JSON.stringify(["user", "Why?"]);
  const good = await chain.answer(async (target) => `of ${target}`, { key });
  assert.deepEqual(good, { value: "of 1", breaker: "openai", ageMs: undefined });
  clock.advance(5_000);
  const fails = async () => {
    throw down;
  };
  const kept = { value: "of 1", breaker: undefined, ageMs: 5_000 };
  assert.deepEqual(await chain.answer(fails, { key }), kept, "failed by all");
  assert.deepEqual(await chain.answer(never, { key }), kept, "out of time");
  assert.equal(await chain.execute(fails, { key }), "of 1");
  assert.equal(chain.isHealthy(), false);
  assert.deepEqual(await chain.answer(fails, { key }), kept, "refused by all");
  await assert.rejects(chain.execute(fails, { key: "another" }), CircuitOpenError);
  await assert.rejects(chain.execute(fails), CircuitOpenError);
  clock.advance(55_001);
  await assert.rejects(chain.execute(async () => { throw down; }, { key }), { status: 503 }, "too old");
});

test("what is the request's own fault, an answer that is a failure, and a stream are not kept or covered up", async () => {
  const cache = new Cache();
  const breaker = fresh({ trip: [{ rule: "consecutive", failures: 9 }], check: (value) => (value === "" ? "empty_response" : undefined) });
  const chain = new Chain([[breaker, 1]], { cache });
  assert.equal(await chain.execute(async () => "", { key: "a" }), "");
  for await (const _ of await chain.execute(async function* () { yield 1; }, { key: "a" }));
  assert.equal(cache.size, 0);
  await chain.execute(async () => "good", { key: "a" });
  assert.equal(await chain.execute(async () => "", { key: "a" }), "good");
  const wrong = Object.assign(new Error("wrong"), { status: 400 });
  await assert.rejects(chain.execute(async () => { throw wrong; }, { key: "a" }), wrong);
});

test("a cache is bounded by bytes, and its keys are texts", async () => {
  const cache = new Cache({ maxBytes: 100, sizeOf: (_, value) => value.length });
  for (let number = 0; number < 10; number += 1) cache.keep(String(number), "x".repeat(30));
  assert.deepEqual([cache.size, cache.recall("6"), cache.recall("9").value.length], [3, undefined, 30]);
  cache.keep("9", "y".repeat(101));
  assert.equal(cache.recall("9"), undefined, "what is larger than all the room is not kept, nor what was there before");
  const usual = new Cache({ maxBytes: 100 });
  const round = {};
  round.self = round;
  const warned = new Promise((resolve) => process.once("warning", resolve));
  for (const [key, value] of Object.entries({ text: "x".repeat(40), long: "x".repeat(50), object: { a: 1 }, bytes: new Uint8Array(8), round })) {
    usual.keep(key, value);
  }
  assert.match((await warned).message, /circular/);
  assert.deepEqual(["text", "long", "object", "bytes", "round"].map((key) => usual.recall(key) !== undefined), [false, false, true, true, false]);
  for (const key of [7, null, ["user"], {}]) {
    assert.throws(() => usual.keep(key, 1), /key is (number|object|null), must be a text/);
  }
  await assert.rejects(new Chain([[fresh(), 1]]).execute(async () => 1, { key: {} }), TypeError);
});

test("options of chains and caches that cannot be are refused", () => {
  const targets = [[fresh(), 1]];
  assert.throws(() => new Chain(targets, { maxwait: 1 }), /maxwait is no setting, must be one of budget, cache, maxWait/);
  assert.throws(() => new Chain(targets, { budget: "soon" }), /budget is "soon", must be a duration/);
  assert.throws(() => new Chain(targets, { cache: new Map() }), /cache must be a Cache/);
  assert.throws(() => new Cache({ maxBytes: -1, sizeOf: 5 }), { problems: ["maxBytes is -1, must be a number of 0 or more", "sizeOf is number, must be a function"] });
  assert.throws(() => new Cache({ ttl: -1 }), SettingsError);
});

test("a stream that breaks in a chain is its own target's failure", async () => {
  const [first, second] = [fresh({ timeouts: { stall: 30 } }), fresh()];
  const stream = await new Chain([[first, 1], [second, 2]]).execute(async function* () {
    yield 1;
    await never();
  });
  await assert.rejects(async () => { for await (const _ of stream); }, StreamError);
  assert.deepEqual([first.getStatus().kinds, second.getStatus().kinds], [{ stream_stall: 1 }, {}]);
});
